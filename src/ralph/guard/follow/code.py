"""Code in other languages: what stands in a command (`python -c`, `perl -e`, `awk`, a
here-document), and what this script wrote and another program finds by its name.

It is not parsed: calls that run, delete or write are looked for, and what they are given. A call
with a literal is judged as the command that it stands for. One that nobody can tell is refused in
a command; in a file it passes, since such code calls what it is given.
"""

import re
from collections.abc import Iterable

from ralph.guard.follow.state import State
from ralph.guard.rules.files import change
from ralph.guard.rules.rule import STRICT, Call, Refused, positional
from ralph.guard.rules.secrets import is_credential, is_environment_file, is_secret, judge_reading
from ralph.guard.shell.nodes import Unfollowable
from ralph.guard.shell.text import ANY, FREE, NET, fits, names

# Patterns are compiled when they are needed: most commands hold no code.
LITERAL = r"""[fFrRbBuU]{0,2}(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`([^`]*)`)"""
_MODULES = "os|subprocess|shutil|pathlib|sys|socket|asyncio|runpy"
_STARRED = {
    "subprocess": "run call Popen check_call check_output getoutput",
    "os": "system popen remove unlink rmdir kill execv execvp posix_spawn posix_spawnp",
    "shutil": "rmtree move",
}
_GIVEN = (
    r"(?m)(?:^|[;{])\s*(?:(?:const|let|var|my|local)\s+)?[$@]?(\w+)\s*=\s*"
    rf"((?:(?:[\w.]*\.)?Path\()?{LITERAL}\)?|\[[^\[\]\n]*\])\s*(?=[;\n}}]|$)"
)
# Every way in which a name gets or changes its value.
_CHANGED = (
    r"\b(\w+)\b\s*(?:\[[^\]\n]*\]\s*)?(?:[-+*/.|&]|\|\|)?=(?![=~>])"
    r"|\b(?:for|as)\s+(\w+)|\b(\w+)\.(?:append|extend|insert|push)\b"
)
_USED = r"(?:(?<=[(,])|(?<=[(,] ))[$@]?(\w+)(?=\s*[,)])|(?<![\w.])(\w+)(?=\.(?:unlink|rm|write_))"
RUNS = (
    r"\b(?:system|spawn|popen|os\.popen\w*|os\.spawn\w*|os\.exec\w+|os\.posix_spawnp?"
    r"|subprocess\.(?:run|call|check_call|check_output|Popen|getoutput|getstatusoutput)"
    r"|create_subprocess_(?:shell|exec)|execSync|execFileSync|execFile|spawnSync|Open3\.\w+"
    r"|shell_exec|passthru|proc_open|Kernel\.exec|do shell script|Deno\.run|Deno\.Command"
    r"|Bun\.spawn\w*|exec\.Command|qx)\b|(?<![\w.\"'/-])sh(?=\s*\(?\s*[\"'])"
)
RUNS_ELSEWHERE = r"(?:(?<=child_process\.)|(?<=\)\.)|(?<=cp\.)|(?<![\w.]))exec\b"
_RUNS_UNKNOWN = r"\brunpy\.run_\w+\s*\(\s*[^'\"\s]|\b(?:exec|system)\s+[$@]\w"
DELETES = (
    r"(?<![\w.$>])(?:move|rename)(?=\s*\(?\s*['\"]/)|\.rm(?=\s*\()"
    r"|(?<![\w.$])rm(?=\s*\(\s*['\"])|\b(?:rmtree|unlink|rmdir|rmSync|unlinkSync|rmdirSync|fs\.rm"
    r"|rimraf(?:\.sync)?|removeSync|emptyDirSync|FileUtils\.(?:rm\w*|remove\w*|mv|move)"
    r"|File\.(?:delete|rename)|Dir\.delete|renameSync|fs\.rename|RemoveAll|remove_dir_all"
    r"|remove_tree|Deno\.remove\w*|os\.(?:remove|removedirs|truncate|rename|replace)|shutil\.move)\b"
)
_WRITES = (
    r"\b(?:write_text|write_bytes|writeFile\w*|appendFile\w*|(?:File|IO)\.write"
    r"|file_put_contents|createWriteStream|os\.chmod|os\.chown|os\.symlink)\b"
    r"|\bopen\s*\([^)\n]*['\"][waxr]b?\+?[bt]?['\"]"
)
_COPIES = (
    r"\b(?:shutil\.copy\w*|copyFile(?:Sync)?|cpSync|FileUtils\.cp\w*)\s*\(?\s*[^,\n]*,\s*"
    rf"{LITERAL}"
)
_SHELL_OPEN = r"\bopen\s*\(?\s*[\w$ ]+,\s*['\"]\s*>>?\s*([^'\"]+)"  # as perl writes it
_SHELL_OPEN_APART = r"\bopen\s*\(?\s*[\w$ ]+,\s*['\"]\+?>>?['\"]\s*,\s*['\"]([^'\"]+)"
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
# Programs and modules that run code which they find by its name.
_FINDERS = names(
    "pytest py.test unittest tox nox make gmake just task invoke pip pip3 uv poetry pdm hatch build"
    " npm pnpm yarn bun jest vitest mocha vite webpack rollup eslint node deno rake rspec bundle"
    " go cargo gulp grunt prove phpunit playwright cypress ava pre-commit"
)
_FOUND = names(
    "conftest.py test_*.py *_test.py tests.py setup.py noxfile.py tasks.py *.test.?s *.spec.?s"
    " *.test.?sx *.spec.?sx *.config.?s *.config.[cm]?s *.setup.?s [Gg]*file.?s Rakefile *.rake"
    " *_spec.rb *_test.rb build.rs *.go *.t"
)
_CODE_ENDINGS = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".rb", ".pl", ".pm", ".lua")
_OF_DIRECTORY = frozenset({"__init__", "__main__", "index"})
_IMPORTS = r"\b(?:import|from|require\w*|run_path|run_module|load|use)\b[^\n;]*"
_AT_HOME = rf"(?:{DELETES})\s*\(?[^)\n]*(?:expanduser|Path\.home|homedir\()"
_DELETED = rf"(?:{DELETES})\s*\(?\s*{LITERAL}"
_DELETED_PATH = (
    rf"Path\(\s*{LITERAL}\s*\)[^\n;]{{0,80}}\.(?:unlink|rmdir|rmtree|rename|replace)\s*\("
)
_WRITTEN = (
    rf"\bopen\s*\(\s*{LITERAL}\s*,\s*(?:mode\s*=\s*)?['\"][wax]",
    rf"Path\(\s*{LITERAL}\s*\)[^\n;]{{0,80}}\.write_\w+\s*\(",
    rf"(?:writeFile\w*|appendFile\w*|File\.write|os\.WriteFile|fs::write)\s*\(\s*{LITERAL}",
)
_READ = rf"\b(?:open|readFile\w*|File\.read|os\.ReadFile|expanduser)\s*\(\s*{LITERAL}"
_MOST_IN_FILE = 400


def own_names(code: str, *, python: bool) -> str:
    """The code with its modules', functions' and variables' names replaced by what they mean."""
    code = _unaliased(code) if python else _renamed(code)
    # The text itself stands where a variable is used that was given one, and only once.
    changed = [a or b or c for a, b, c in re.findall(_CHANGED, code)]
    given = {m[1]: m[2] for m in re.finditer(_GIVEN, code) if changed.count(m[1]) == 1}
    return re.sub(_USED, lambda m: given.get(m[1] or m[2], m[0]), code)


def _unaliased(code: str) -> str:
    """Python with the modules' own names instead of those that it gives them."""
    for module, alias in re.findall(r"\bimport\s+((?:\w+\.)*\w+)\s+as\s+(\w+)", code):
        code = re.sub(rf"(?<![\w.]){alias}\.", f"{module}.", code)
    for module, what in re.findall(rf"\bfrom\s+({_MODULES})\s+import\s+\(?([\w\s,*]+)", code):
        starred = _STARRED.get(module, "").split() if "*" in what else []
        for item in [*what.split(","), *starred]:
            words = item.split() or [""]
            name, alias = words[0], words[-1]
            if name.isidentifier():
                code = re.sub(rf"(?<![\w.]){alias}(?=\s*[\[(.)])", f"{module}.{name}", code)
    return re.sub(r"\((\w+(?:\.\w+)+)\)\s*\(", r"\1(", code)


def _renamed(code: str) -> str:
    """JavaScript with the functions' own names, `const {execSync: run} = require(...)`, and Ruby
    with those of FileUtils."""
    for name, alias in re.findall(r"\b((?:exec|spawn|execFile)(?:Sync)?)\s*:\s*(\w+)", code):
        code = re.sub(rf"(?<![\w.]){alias}(?=\s*\()", name, code)
    if "include FileUtils" in code:
        code = re.sub(r"(?<![\w.:])(?=(?:rm\w*|remove\w*|mv|cp\w*)[\s(]+['\"])", "FileUtils.", code)
    return code


def judge_code(code: str, call: Call) -> None:
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
    _judge_runs(code, call, python=python)
    _judge_paths(code, texts, call)
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
    for text in dict.fromkeys(texts):
        if " " in text or "\n" in text:
            continue  # no such file has a name with blanks
        path = call.expanded(text)
        if text.startswith("/.") and re.search(r"HOME|homedir|expanduser|Dir\.home", code):
            path = call.expanded(f"~{text}")
        if is_credential(path, call.state) or is_environment_file(path):
            raise Refused("credentials", f"{text} holds credentials")
    if "env" not in code.lower() and "phpinfo" not in code:
        return
    printed = code.strip().removesuffix(";") in ("process.env", "ENV", "%ENV")  # node -p
    if printed or re.search(_DUMPS, code, re.MULTILINE) or re.search(_DUMPS_ALL, code):
        raise Refused("credentials", "it prints every variable of the environment")
    for name in re.findall(_NAMED, code):
        if is_secret(name):
            raise Refused("credentials", f"it reads {name}, a secret of the environment")


def _judge_runs(code: str, call: Call, *, python: bool) -> None:
    for match in _runs(code, python=python):
        argv = arguments(code[match.end() : match.end() + _MOST_ARGUMENTS])
        call.state.call(argv or [])
    for kind, *texts in re.findall(rf"\brun_(path|module)\s*\(\s*{LITERAL}", code):
        call.state.call(["python", *(["-m"] if kind == "module" else []), "".join(texts)])
    if re.search(_RUNS_UNKNOWN, code) and (python or call.name == "perl"):
        raise Refused("evasion", "it runs code or a command that nobody can tell")
    if call.name.startswith(("perl", "ruby", "php", "julia")):
        for text in re.findall(r"`([^`]*)`|%x[({]([^)}]*)[)}]", code):
            call.state.call(["sh", "-c", text[0] or text[1]])


def _runs(code: str, *, python: bool) -> "list[re.Match[str]]":
    """The calls that run a command."""
    return [*re.finditer(RUNS, code), *(() if python else re.finditer(RUNS_ELSEWHERE, code))]


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
    items = (item[0].strip() for item in re.findall(rf"\s*({LITERAL}|[^,]+)\s*", text))
    literals = (re.fullmatch(LITERAL, item) for item in items)
    return list(filter(None, (_text(literal) if literal else ANY for literal in literals)))


def _text(literal: "re.Match[str]") -> str:
    text = literal[1] or literal[2] or literal[3] or ""
    if "f" in literal[0][:2].lower() or literal[0][:1] == "`":
        text = re.sub(r"\$?\{[^}]*\}", ANY, text)
    return text.replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")


def _literals(pattern: str, code: str) -> list[str]:
    """The texts in quotes that a pattern finds."""
    return [group for match in re.finditer(pattern, code) for group in match.groups() if group]


def _judge_paths(code: str, texts: list[str], call: Call) -> None:
    for pattern in (_COPIES, _SHELL_OPEN, _SHELL_OPEN_APART):
        change(call, _literals(pattern, code), "overwrites", into=True)
    deletes, writes = re.search(DELETES, code), re.search(_WRITES, code)
    if not deletes and not writes:
        return
    verb = "deletes" if deletes else "overwrites"
    if deletes and re.search(_HIDDEN_PATH, code):
        raise Refused("file-system", "nobody can tell what it deletes")
    for text in texts:
        path = text.replace("$HOME", "~")
        path = call.expanded(path) if path[:2] in ("~", "~/") else path
        if "\n" in path or not path.startswith(("/", "..")):
            continue
        known = text.startswith(_TOP) and (deletes or "/" in text[2:])
        if known or (text in ("/", "..", "../") and deletes):
            change(call, [path], verb)
    named = _literals(_DELETED, code)
    named += _literals(_OPENED, code) if writes else []
    known_paths = [path for path in named if "{" not in path]
    change(call, known_paths, verb, into=not deletes)


def judge_awk(call: Call) -> None:
    """`awk`: what its program runs and where it writes."""
    program = "".join(
        positional(call.words, ["-i", "--include", "-v", "-F", "--assign", "--field-separator"])[:1]
    )
    if call.value("-f", "--file") is not None:
        return
    program = own_names(program, python=False)
    for text in re.findall(r"system\s*\(\s*([^)]*)\)", program):
        literal = re.fullmatch(LITERAL, text.strip())
        call.state.call(["sh", "-c", _text(literal) if literal else ANY])
    for text in _piped_by_awk(program):
        inner = call.state.copy()
        inner.stdin = ANY
        inner.text(text)
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


def judge_finding(call: Call) -> None:
    """Refuse a program that would find and run what this script wrote, if that is refused."""
    module = call.value("-m") or ""
    python = call.name.startswith("python")
    name = module if python else call.name
    if name.partition(".")[0] in _FINDERS:
        found = [path for path in call.state.files if fits(path.rpartition("/")[2], *_FOUND)]
        _judge_files(found, call, set())
    if python and module:
        judge_imports(f"import {module}", call)


def judge_imports(code: str, call: Call) -> None:
    """Refuse code that loads what this script wrote, if that is refused."""
    _judge_files(_imported(code, call), call, set())


def _imported(code: str, call: Call) -> list[str]:
    """The written files that a code loads: by their names, wherever they lie."""
    found = []
    for path in call.state.files:
        if path.endswith(_CODE_ENDINGS):
            directory, _, name = path.rpartition("/")
            stem = name.rpartition(".")[0]
            stem = directory.rpartition("/")[2] if stem in _OF_DIRECTORY else stem
            if re.search(rf"{_IMPORTS}(?<![\w-]){re.escape(stem)}(?![\w-])", code):
                found.append(path)
    return found


def _judge_files(paths: Iterable[str], call: Call, seen: set[str]) -> None:
    for path in paths:
        if path not in seen and path not in call.state.calling:
            seen.add(path)
            text = call.state.files[path]
            inner = Call([call.name], call.state.copy())
            inner.state.calling = (*call.state.calling, path)
            with naming(path, text):
                _judge_found(text, inner, python=path.endswith(".py"))
            _judge_files(_imported(text, call), inner, seen)


class naming:  # noqa: N801  used like a function
    """Judges what a written file holds: a refusal names the file; nothing from the network runs."""

    def __init__(self, path: str, text: str) -> None:
        self.name = path.rpartition("/")[2]
        self.remote = NET in text

    def __enter__(self) -> None:
        if self.remote:
            raise Refused("remote-code", f"{self.name} from the network would be run")

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, Refused) and not error.reason.startswith("in "):
            error.reason = f"in {self.name}, which it wrote: {error.reason}"


def _judge_found(code: str, call: Call, *, python: bool) -> None:
    code = own_names(code, python=python)
    for match in _runs(code, python=python):
        # Git in a directory of its own may do what it likes.
        after = code[match.end() : match.end() + _MOST_IN_FILE]
        try:
            argv = [word.replace(ANY, FREE) for word in arguments(after) or []]
        except Refused:
            continue  # nobody can tell the command
        if argv[:1] != ["git"] or not re.search(r"\bcwd\b|\bchdir\b", after.partition("\n\n")[0]):
            judge_told(argv, call.state.copy())
    if re.search(_AT_HOME, code):
        raise Refused("file-system", "it deletes in the home directory")
    for patterns, verb in (((_DELETED, _DELETED_PATH), "deletes"), (_WRITTEN, "overwrites")):
        for pattern in patterns:
            change(call, _outer_paths(pattern, code, call), verb, into=verb != "deletes")
    for path in _outer_paths(_READ, code, call):
        judge_reading(path, call.state)


def _outer_paths(pattern: str, code: str, call: Call) -> list[str]:
    """The paths that a pattern finds, those that lead out of the project by their beginning."""
    texts = map(call.expanded, _literals(pattern, code))
    return [text for text in texts if text.startswith(("/", "..")) and "{" not in text]


def judge_told(argv: list[str], state: State) -> None:
    """Judge a command that stands in a written file, as far as it can be followed."""
    try:
        state.call(argv)
    except Unfollowable:
        return
    except Refused as refused:
        if refused.category != "evasion":
            raise
