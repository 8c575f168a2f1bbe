"""Code in other languages that stands in a command: `python -c`, `perl -e`, `awk`, a here-document.

It is not parsed: calls that run, delete or write are looked for, and what they are given. A call
with a literal is judged as the command that it stands for; one that nobody can tell is refused.
"""

import re

from ralph.guard.follow.code_names import LITERAL, own_names
from ralph.guard.follow.expand import is_secret
from ralph.guard.rules.files import change
from ralph.guard.rules.rule import STRICT, Call, Refused, positional
from ralph.guard.rules.secrets.files import is_credential, is_environment_file
from ralph.guard.shell.text import ANY, FREE

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.guard.follow.state import Caller

RUNS = (
    r"\b(?:os\.system|os\.popen\w*|subprocess\.(?:run|call|check_call|check_output"
    r"|Popen|getoutput|getstatusoutput)"
    r"|os\.spawn\w*|os\.exec\w+|os\.posix_spawnp?|create_subprocess_(?:shell|exec)|pty\.spawn|execSync|execFileSync|execFile|spawnSync"
    r"|spawn|Open3\.\w+"
    r"|shell_exec|passthru|proc_open|popen|IO\.popen|os\.execute|Kernel\.(?:system|exec|spawn)|system"
    r"|do shell script|Deno\.run"
    r"|Bun\.spawn\w*|Deno\.Command|exec\.Command|qx)\b|(?<![\w.\"'/-])sh(?=\s*\(?\s*[\"'])"
)
RUNS_ELSEWHERE = r"(?:(?<=child_process\.)|(?<=\)\.)|(?<=cp\.)|(?<![\w.]))exec\b"
_RUNS_UNKNOWN = r"\brunpy\.run_\w+\s*\(\s*[^'\"\s]|\b(?:exec|system)\s+[$@]\w"
DELETES = (
    r"(?<![\w.$>])(?:move|rename)(?=\s*\(?\s*['\"]/)|\.rm(?=\s*\()|(?<![\w.$])rm(?=\s*\(\s*['\"])|\b(?:rmtree|os\.remove|os\.unlink|os\.rmdir|os\.removedirs|rmSync|unlinkSync"
    r"|rmdirSync|fs\.rm|fs\.unlink|fs\.rmdir"
    r"|rimraf(?:\.sync)?|removeSync|emptyDirSync|FileUtils\.(?:rm\w*|remove\w*|mv|move)"
    r"|File\.(?:delete|unlink|rename)|renameSync|fs\.rename|RemoveAll|remove_dir_all|Dir\.(?:rmdir|delete)"
    r"|remove_tree|Deno\.remove\w*|unlink|rmdir|os\.truncate|os\.rename|os\.replace|shutil\.move)\b"
)
_WRITES = (
    r"\b(?:write_text|write_bytes|writeFile\w*|appendFile\w*|(?:File|IO)\.write"
    r"|file_put_contents|createWriteStream"
    r"|os\.chmod|os\.chown|os\.symlink)\b"
    r"|\bopen\s*\([^)\n]*['\"][waxr]b?\+?[bt]?['\"]"
)
_COPIES = (
    r"\b(?:shutil\.copy\w*|copyFile(?:Sync)?|cpSync|FileUtils\.cp\w*)\s*\(?\s*[^,\n]*,\s*"
    rf"{LITERAL}"
)
_SHELL_OPEN = r"\bopen\s*\(?\s*[\w$ ]+,\s*['\"]\s*>>?\s*()()([^'\"]+)"  # as perl writes it
_SHELL_OPEN_APART = r"\bopen\s*\(?\s*[\w$ ]+,\s*['\"]\+?>>?['\"]\s*,\s*()()['\"]([^'\"]+)"
_OPENED = (
    rf"\b(?:open|File\.open|writeFile\w*|appendFile\w*|file_put_contents|(?:File|IO)\.write"
    rf"|createWriteStream|Path)\s*\(?\s*{LITERAL}"
)
_EVALUATES = r"(?<![\w.])(?:exec|eval|compile|execfile|__import__\(['\"]builtins['\"]\)\.\w+)\s*\("
_EVALUATES_ELSEWHERE = (
    r"(?<![\w.])(?:eval|assert|new\s+Function|vm\.run\w+|instance_eval|create_function)\s*[\(\"']"
)
_HIDES = (
    r"getattr\s*\(\s*(?:os|shutil|subprocess|sys|builtins|__import__)|__builtins__"
    r"|globals\(\)\s*\[|\bmarshal\.loads|__import__\([^'\")]*\)"
    r"|(?:__import__|import_module)\(\s*['\"][^'\"]*['\"]\s*\+|import_module\(\s*[^'\"\s]"
    r"|child_process['\"]\)\s*\[|\bccall\s*\("
)
_NETWORK = (
    r"urlopen|requests\.get|\bfetch\s*\(|https?\.get|Net::HTTP|LWP|open-uri"
    r"|file_get_contents\(['\"]http"
)
_SOCKETS = (
    r"\bsocket\b|fsockopen|TCPSocket|net\.(?:connect|Socket|createConnection)|IO::Socket|Socket;"
)
_SHELLS = r"dup2|/bin/(?:ba|z|da)?sh|pty\.spawn|\bexec\b|\bspawn\b|sh -i|cmd\.exe"
_DUMPS = (
    r"(?:print|dict|dumps|console\.log|stringify|puts|\bp|pp|var_dump|print_r|repr|str"
    r"|list)\s*\(?\s*(?:os\.environ|process\.env|ENV|\$_ENV|%ENV)(?:\.(?:items|copy"
    r"|inspect|to_h|to_a)\b(?:\(\))?)?\s*(?:[,)}]|$)"
)
_DUMPS_ALL = (
    r"\bfor\b[^\n]*\bin\s+(?:os\.)?environ(?:\.(?:items|values|keys)\(\))?\s*[:\])]"
    r"|\bfor\b[^\n]*\bin\s+process\.env\b(?!\.)"
    r"|Object\.(?:entries|values|assign)\(\s*(?:\{\}\s*,\s*)?process\.env\s*\)"
    r"|(?:keys|values|each)\s*\(?\s*%ENV|\bENV\.(?:each|map|to_a)"
    r"|getenv\(\s*\)|phpinfo\s*\(|Deno\.env\.toObject\b"
)
_SENDS = (
    r"requests\.(?:post|put|patch)|method\s*:\s*['\"](?:POST|PUT)|urlopen\s*\([^)]*\bdata\s*="
    r"|axios\.(?:post|put)|\.sendall?\s*\("
)
_READS_FILE = r"\bopen\s*\(|read_text|read_bytes|readFile|File\.read|file_get_contents"
_ELSEWHERE = r"https?://(?!localhost\b(?!\.)|127\.|\[::1\])"
_NAMED = (
    r"(?:environ(?:\.get)?\s*[\[\(]\s*['\"]|process\.env\.|process\.env\[['\"]"
    r"|(?:Deno|Bun)\.env\.(?:get\(\s*['\"])?"
    r"|ENV(?:\.fetch)?[\[\({]['\"]?|getenv\s*\(\s*['\"])(\w+)"
)
_HIDDEN_PATH = (
    r"expanduser|Path\.home|Dir\.home|pardir|dirname\(\s*os\.getcwd|homedir\(|\benviron\b|process\.env|\bENV\b|chr\("
    r"|fromCharCode|os\.sep\b|getenv|b64decode|fromhex|\bpack\b|\bargv\b|\bARGV\b"
)
_TOP = (
    *("/etc", "/usr", "/bin", "/sbin", "/var", "/home", "/root", "/boot", "/lib", "/opt", "/sys"),
    *("/dev/", "/proc", "/Users", "/System", "/Library", "~", "$HOME", "../.."),
)
_SERVES = r"Server\s*\(\s*\(\s*(?:''|\"\")|http\.server\.test\("
_MOST_ARGUMENTS = 4000


def judge_code(code: str, call: Call, caller: "Caller") -> None:
    """Refuse code that runs, deletes or writes what a command may not."""
    python = call.name.startswith(("python", "pypy"))
    code = own_names(code, python=python)
    texts = [a or b or c for a, b, c in re.findall(LITERAL, code)]
    _judge_hiding(code, python=python)
    if re.search(_SOCKETS, code) and re.search(_SHELLS, code):
        raise Refused("reverse-shell", "it joins a shell to a connection")
    _judge_secrets(code, texts, call)
    if re.search(_SENDS, code) and re.search(_READS_FILE, code) and re.search(_ELSEWHERE, code):
        raise Refused("exfiltration", "it sends what a file holds to another machine")
    if re.search(r"\bfork\b", code) and re.search(r"\bwhile\b|\bfor\b|\bloop\b", code):
        raise Refused("resource-bomb", "it starts itself over and over")
    if re.search(r"\bkill\s*\(?\s*-?(?:9\s*,\s*)?-?1\b", code):
        raise Refused("process-kill", "it ends every process")
    if re.search(r"\bkill\s*\(?\s*(?:os\.getppid|process\.ppid|Process\.ppid)", code):
        raise Refused("process-kill", "it ends the agent itself")
    _judge_runs(code, call, caller, python=python)
    _judge_files(code, texts, call)
    named = "0.0.0.0" in texts and re.search(r"bind|listen|run|serve|Server|host", code)  # noqa: S104
    if call.strict and (named or re.search(_SERVES, code)):
        raise Refused("exposure", "it serves every network; use 127.0.0.1", level=STRICT)


def _judge_hiding(code: str, *, python: bool) -> None:
    evaluates = _EVALUATES if python else _EVALUATES_ELSEWHERE
    plain = code
    if python and '"""' not in code and "'''" not in code:  # else quotes cannot be told apart
        plain = re.sub(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"", '""', code)
    if re.search(evaluates, plain):
        remote = re.search(_NETWORK, code)
        raise Refused("remote-code" if remote else "evasion", "it runs code that it makes or reads")
    if re.search(_HIDES, code):
        raise Refused("evasion", "it hides what it calls")


def _judge_secrets(code: str, texts: list[str], call: Call) -> None:
    home = call.places.where.home
    for text in dict.fromkeys(texts):
        if " " in text or "\n" in text:
            continue  # no such file has a name with blanks
        path = f"{home}{text[1:]}" if text.startswith("~/") else text
        if text.startswith("/.") and re.search(r"HOME|homedir|expanduser|Dir\.home", code):
            path = f"{home}{text}"
        if is_credential(path, call.places, call.state.cwd) or is_environment_file(path):
            raise Refused("credentials", f"{text} holds credentials")
    if "env" not in code.lower() and "phpinfo" not in code:
        return
    printed = code.strip().removesuffix(";") in ("process.env", "ENV", "%ENV")  # node -p
    if printed or re.search(_DUMPS, code, re.MULTILINE) or re.search(_DUMPS_ALL, code):
        raise Refused("credentials", "it prints every variable of the environment")
    for name in re.findall(_NAMED, code):
        if is_secret(name):
            raise Refused("credentials", f"it reads {name}, a secret of the environment")


def _judge_runs(code: str, call: Call, caller: "Caller", *, python: bool) -> None:
    found = [*re.finditer(RUNS, code), *(() if python else re.finditer(RUNS_ELSEWHERE, code))]
    for match in found:
        argv = arguments(code[match.end() : match.end() + _MOST_ARGUMENTS])
        caller.again(argv or [], call.state)
    for kind, *texts in re.findall(rf"\brun_(path|module)\s*\(\s*{LITERAL}", code):
        caller.again(["python", *(["-m"] if kind == "module" else []), "".join(texts)], call.state)
    if re.search(_RUNS_UNKNOWN, code) and (python or call.name == "perl"):
        raise Refused("evasion", "it runs code or a command that nobody can tell")
    if call.name.startswith(("perl", "ruby", "php", "julia")):
        for text in re.findall(r"`([^`]*)`|%x[({]([^)}]*)[)}]", code):
            caller.again(["sh", "-c", text[0] or text[1]], call.state)


def arguments(after: str) -> list[str] | None:
    """The command that a call is given; None if nothing is called here."""
    opened = re.match(r"\s*([({]?)\s*", after)
    assert opened is not None
    rest = after[opened.end() :]
    if not opened[1] and not re.match(LITERAL, rest):
        return None
    if rest[:1] == "[":
        return _items(rest[1:].partition("]")[0])
    literal = re.match(LITERAL, rest)
    if literal is None:
        raise Refused("evasion", "it runs a command that nobody can tell")
    text, tail = _text(literal), rest[literal.end() :].lstrip()
    if tail[:1] == ",":
        following = tail[1:].lstrip()
        if following[:1] == "[":
            return [text, *_items(following[1:].partition("]")[0])]
        words = _items(tail[1:].partition(")")[0].partition("\n")[0])
        if words and " " not in text:
            return [text, *[word for word in words if word != text]]
    if tail[:1] in ("+", ".", "%") and tail[:2] != ").":
        raise Refused("evasion", "it runs a command that it puts together")
    return ["sh", "-c", text]


def _items(text: str) -> list[str]:
    """Literals between commas; what is none could be anything."""
    items = []
    for item in re.findall(rf"\s*({LITERAL}|[^,]+)\s*", text):
        literal = re.fullmatch(LITERAL, item[0].strip())
        items.append(_text(literal) if literal else ANY)
    return [item for item in items if item]


def _text(literal: "re.Match[str]") -> str:
    text = literal[1] or literal[2] or literal[3] or ""
    if "f" in literal[0][:2].lower() or literal[0][:1] == "`":
        text = re.sub(r"\$?\{[^}]*\}", ANY, text)
    return text.replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")


def _literals(pattern: str, code: str) -> list[str]:
    """The texts in quotes that a pattern finds."""
    found = re.finditer(pattern, code)
    return [next((group for group in match.groups() if group), "") for match in found]


def _judge_files(code: str, texts: list[str], call: Call) -> None:
    for pattern in (_COPIES, _SHELL_OPEN, _SHELL_OPEN_APART):
        change(call, _literals(pattern, code), "overwrites", into=True)
    deletes, writes = re.search(DELETES, code), re.search(_WRITES, code)
    if not deletes and not writes:
        return
    verb = "deletes" if deletes else "overwrites"
    if deletes and re.search(_HIDDEN_PATH, code):
        raise Refused("file-system", "nobody can tell what it deletes")
    home = call.places.where.home
    for text in texts:
        path = text.replace("$HOME", "~")
        path = f"{home}{path[1:]}" if path[:2] in ("~", "~/") else path
        if "\n" in path or not path.startswith(("/", "..")):
            continue
        known = text.startswith(_TOP) and (deletes or "/" in text[2:])
        if known or (text in ("/", "..", "../") and deletes):
            change(call, [path], verb)
    named = _literals(rf"{DELETES}\s*\(?\s*{LITERAL}", code)
    named += _literals(_OPENED, code) if writes else []
    known_paths = [path for path in named if path and "{" not in path]
    change(call, known_paths, verb, into=not deletes)


def judge_awk(call: Call, caller: "Caller") -> None:
    """`awk`: what its program runs and where it writes."""
    program = "".join(
        positional(call.words, ["-i", "--include", "-v", "-F", "--assign", "--field-separator"])[:1]
    )
    if call.value("-f", "--file") is not None:
        return
    program = own_names(program, python=False)
    for text in re.findall(r"system\s*\(\s*([^)]*)\)", program):
        literal = re.fullmatch(LITERAL, text.strip())
        caller.again(["sh", "-c", _text(literal) if literal else ANY], call.state)
    for text in _piped_by_awk(program):
        inner = call.state.copy()
        inner.stdin = ANY
        caller.judge.text(text, inner)
    if re.search(r"\bin\s+ENVIRON", program):
        raise Refused("credentials", "it prints every variable of the environment")
    if "/inet/" in program:
        raise Refused("reverse-shell", "it opens a connection to another machine")
    change(call, re.findall(r'>>?\s*"([^"]*)"', program), "overwrites")


def _piped_by_awk(program: str) -> list[str]:
    """The commands that it reads from or prints to, also by a variable that holds their text."""
    ends = re.findall(r'("[^"]*"|\w+)\s*\|&?\s*getline|\|&?\s*("[^"]*"|\w+)', program)
    found = []
    for end in (a or b for a, b in ends):
        given = re.search(rf'(?<!\w){end}\s*=\s*"([^"]*)"\s*([;}}\n])?', program)
        if end[0] == '"':
            found.append(end[1:-1])
        elif given:
            found.append(given[1] if given[2] else f"{given[1]}{FREE}")
    return found


def judge_sed(call: Call) -> None:
    """`sed`: its commands that run others, and those that write files."""
    for script in [word for word in call.words if word[:1] != "-" or len(word) > 2][:3]:
        if re.match(r"\s*(?:\d+|\$|/[^/]*/)?\s*[0-9,$]*e(?:\s+\S|$)", script) or re.search(
            r"s([/|#,!])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1[gIip0-9]*e\s*(?:;|$)", script
        ):
            raise Refused("evasion", "sed would run a command")
        written = re.findall(r"(?:^|[/|#,;}\d$])\s*[wW]\s+(/\S+|~\S*|\.\.\S*)", script)
        change(call, written, "overwrites")
