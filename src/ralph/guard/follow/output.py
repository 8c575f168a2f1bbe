"""Predicts what a command prints (known texts, paths in the project, harmless words, anything) and
what it puts into files: a later part of the script may run it."""

import re
from collections.abc import Callable
from itertools import takewhile

from ralph.guard.follow.code import LITERAL
from ralph.guard.follow.wrappers import Search
from ralph.guard.paths import FREE_PLACE, ROOT
from ralph.guard.rules.files import CURL_VALUED, ENDLESS_FILES, download_targets
from ralph.guard.rules.rule import Call, positional
from ralph.guard.rules.secrets import is_credential, may_be_key
from ralph.guard.rules.system import finds_hosts, is_host, narrowed
from ralph.guard.shell.text import (
    ANY,
    BOXES,
    CODED,
    EACH,
    ENDLESS,
    FOUND,
    FREE,
    MARKS,
    NAMED,
    NET,
    PARENT,
    READ,
    VAULT,
    WHO,
    by_name,
    names,
    plain,
    traces,
    unknown,
    without,
)
from ralph.guard.shell.words import printed

# Commands that print nothing, a harmless word, or what the network sends.
_PRINTED = by_name(
    {
        "true false : mkdir touch rm chmod test [ cd export local declare typeset readonly wait"
        " sleep exit return break continue shopt umask ulimit kill mkfifo rmdir let hash set"
        # They print what a shell's setup is to evaluate.
        " ssh-agent direnv pyenv rbenv nodenv brew fnm mise conda opam starship luarocks nvm"
        " dircolors rtx keychain minikube zoxide goenv jenv volta": "",
        "date nproc uname wc uuidgen sha256sum md5sum shasum getconf arch cksum stat expr seq"
        " tput locale sw_vers lsof jobs": f"{NAMED}\n",
        "whoami hostname id logname": f"{NAMED}{WHO}\n",
        "curl wget http https xh aria2c lynx w3m fetch nc ncat netcat socat": NET,
        "yes": f"{ANY}{ENDLESS}",
    }
)
_FILTERS = names("sort uniq head tail grep egrep fgrep cat tac nl less more sponge pv")
_CODERS = names(
    "base64 base32 xxd od hexdump gzip zip tar openssl gpg env printenv urlencode uuencode"
)
# What they print ends only if what they read does.
_PASSES_ON = _CODERS | names("tr fold cut sed awk gawk rev xz bzip2 zstd pigz")
_GIT_NAMES = names("branch describe rev-list merge-base symbolic-ref name-rev")
_SCRIPT_SET = (
    r"""\.scripts(?:\.([\w-]+)|\["([^"]+)"\])\s*\|?=\s*("(?:[^"\\]|\\.)*")"""  # as jq says it
)
_SUBSTITUTES = r"s([/|#,!@])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1"
_ADDS_LINES = r"(?s)(?:[\d$]+|/[^/]*/)?([aic])\s*\\?\n?(.*)"
_BODY = rf"(?:[rR]?(?:'''([\s\S]*?)'''|\"\"\"([\s\S]*?)\"\"\")|{LITERAL})"
_WRITES_TEXT = (
    rf"\bopen\(\s*{LITERAL}\s*,\s*['\"][wax]\w*['\"][^)\n]*\)\.write\(\s*{_BODY}",
    rf"\bopen\(\s*{LITERAL}\s*,\s*['\"][wax]\w*['\"][^)\n]*\)\s*as\s+\w+:\s*\w+\.write\(\s*{_BODY}",
    rf"Path\(\s*{LITERAL}\s*\)\.write_text\(\s*{_BODY}",
    rf"(?:writeFileSync|File\.write)\(\s*{LITERAL}\s*,\s*{_BODY}",
)
_MOST_EDITED = 1_000_000
# Characters that mean with a backslash in sed what they mean without one in Python.
_TURNED = "(){}|+?"


def output_of(call: Call) -> str:
    """The text that the command prints; ANY where nobody can tell."""
    name = call.name
    if name in _READERS:
        return _READERS[name](call)
    if name in _PRINTED:
        return _PRINTED[name]
    if name in _FILTERS:
        return narrowed(call, _filtered(call))
    return narrowed(call, _from_input(call, CODED if name in _CODERS else ANY))


def _from_input(call: Call, otherwise: str) -> str:
    """An unknown text; one made of input from the network came from there too."""
    read = call.state.stdin or ""
    kept = traces(read) if call.name in _PASSES_ON else without(traces(read), ENDLESS)
    return next((mark for mark in (NET, CODED) if mark in read), otherwise) + kept


def _echo(call: Call) -> str:
    flags = list(takewhile(re.compile("-[neE]+").fullmatch, call.words))
    text = " ".join(call.words[len(flags) :])
    return f"{printed(text) if any('e' in flag for flag in flags) else text}\n"


def _printf(call: Call) -> str:
    if not call.words:
        return ""
    if call.words[0] == "--":
        return _printf(Call(["printf", *call.words[1:]], call.state))
    form, values = printed(call.words[0]), call.words[1:]
    specs = form.count("%") - 2 * form.count("%%")
    if specs == 0:
        return form.replace("%%", "%")
    if form.count("%s") + form.count("%b") != specs:
        digits = "%" not in form.replace("%d", "").replace("%02d", "").replace("%03d", "")
        return NAMED if digits and not any(map(unknown, [form, *values])) else ANY
    pieces = form.replace("%b", "%s").split("%s")
    made = []
    for start in range(0, max(len(values), 1), specs):
        batch = [*values[start : start + specs], *([""] * specs)][:specs]
        made.append("".join(p + printed(v) for p, v in zip(pieces, [*batch, ""], strict=False)))
    return "".join(made)


def _filtered(call: Call) -> str:
    """Lines of what is read: those of files that were written here, or of standard input."""
    files = [word for word in call.args if word != "-"]
    if call.name.endswith("grep"):
        if call.given("--files-with-matches --files-without-match -l -L/efmABC"):
            return _paths(call, files[1:] or ["."])
        files = [] if call.state.stdin is not None else files[1:]
    if call.name in ("head", "tail"):
        files = [f for f in files if not f.removeprefix("+").isdecimal()]
    if not files:
        return _some(call, ANY if call.state.stdin is None else call.state.stdin)
    known = [call.state.files.get(call.whole(file)) for file in files]
    texts = [text for text in known if text is not None]
    if len(texts) == len(known):
        return _some(call, "".join(texts))
    return _some(call, f"{ANY}{READ if ENDLESS_FILES.isdisjoint(files) else ENDLESS}")


def _some(call: Call, text: str) -> str:
    """`grep`, `head` and `tail` choose; others print all that they read."""
    chooses = call.name.endswith("grep") or call.name in ("head", "tail")
    return without(text, f"{EACH}{ENDLESS}") if chooses else text


def _paths(call: Call, starts: list[str], *, chosen: object = True) -> str:
    """Paths below these; all of them, if none is chosen."""
    kinds = set(map(call.kind, starts))
    if any(is_credential(start, call.state) for start in starts):
        return f"{ANY}{VAULT}"
    if not kinds <= {FREE_PLACE, ROOT}:
        return ANY
    return f"{FREE}\n" if chosen or ROOT not in kinds else f"{FREE}{EACH}\n"


def _find(call: Call) -> str:
    search = Search(call.words)
    if search.patterns and all(pattern.endswith(".pub") for pattern in search.patterns):
        return ANY
    if any(map(may_be_key, search.patterns)):
        return f"{ANY}{VAULT}"
    return _paths(call, search.starts, chosen=search.narrow)


def _rg(call: Call) -> str:
    if call.has("--files"):
        return _paths(call, call.args or ["."], chosen=call.given("--glob --type -g -t"))
    if call.given("--files-with-matches -l -L/egtTAB"):
        return _paths(call, call.args[1:] or ["."])
    return ANY if call.args[1:] or call.state.stdin is None else call.state.stdin


def _mktemp(call: Call) -> str:
    temps = call.where.temps
    given = call.args[-1] if call.args else ""
    if given.startswith("/"):
        return f"{given}\n"
    return f"{temps[0]}/{NAMED}\n" if temps else ANY


def _dirname(call: Call) -> str:
    path = call.args[0] if call.args else ""
    if not plain(path):
        return f"{ANY}\n"
    return f"{path.rstrip('/').rpartition('/')[0] or ('/' if path.startswith('/') else '.')}\n"


def _basename(call: Call) -> str:
    path = call.args[0].rstrip("/").rpartition("/")[2] if call.args else ANY
    if len(call.args) > 1 and not unknown(path):
        path = path.removesuffix(call.args[1])
    return f"{FREE if path.startswith(FREE) else path}\n"


def _git(call: Call) -> str:
    sub = call.subs[0] if call.subs else ""
    if sub == "rev-parse":
        if call.has("--git-dir", "--absolute-git-dir", "--git-common-dir", "--git-path"):
            return f"{call.where.project}/.git\n"
        top = call.has("--show-toplevel")
        return f"{call.where.project if top else NAMED}\n"
    some = call.subs[1:] or call.given("--modified --deleted --unmerged -m -d -u")
    if sub == "ls-files" and not some:
        return f"{FREE}{EACH}\n"
    if sub == "ls-files" or (sub in ("diff", "show", "log") and call.has("--name-only")):
        return f"{FREE}\n"
    if sub == "grep" and call.has_letter("lL", "e"):
        return f"{FREE}\n"
    if sub in _GIT_NAMES or (sub == "log" and call.has("--format", "--pretty")):
        return f"{NAMED}\n"
    return f"{ANY}{READ}"


def _docker(call: Call) -> str:
    """The names of every container, unless some are chosen."""
    lists = {"ps", "images", "ls"}.intersection(call.subs[:2]) and call.subs[:1] != ["compose"]
    chosen = call.given("--filter --latest --last -f -n -l")
    return f"{ANY}{BOXES if lists and not chosen else ''}"


def _base64(call: Call) -> str:
    """The decoded text, if it is known what is read."""
    text = call.state.stdin
    decodes = call.has("--decode", "-d", "-D")
    if text is None or not plain(text) or not decodes:
        return _from_input(call, ANY if decodes else CODED)
    from binascii import Error, a2b_base64

    try:
        decoded = a2b_base64(text).decode("utf-8")
    except (Error, UnicodeDecodeError):
        return ANY
    return ANY if any(mark in decoded for mark in MARKS) else decoded


def _realpath(call: Call) -> str:
    path = call.args[-1] if call.args else ANY
    return f"{path if unknown(path) else call.whole(path)}\n"


def _downloaded(call: Call) -> str:
    targets = download_targets(call)
    urls = [word for word in call.args if "/" in word]
    named = call.name == "wget" or call.given(f"--remote-name -O/{CURL_VALUED}")
    if not targets and named:
        targets = [url.rpartition("/")[2].partition("?")[0] for url in urls]
    for target in targets:
        call.state.files[call.whole(target)] = NET
    return "" if targets and not {"-", "/dev/stdout"}.intersection(targets) else NET


def _copied(call: Call) -> str:
    """`cp` and `mv`, also of directories: what this script wrote is known by its new name too."""
    given = call.value("-t", "--target-directory")
    words = positional(call.words, ["-t", "--target-directory", "-m", "--mode", "-o", "-g"])
    *sources, target = [*words, given] if given else words or [""]
    files = call.state.files
    for source in sources:
        whole, name = call.whole(source), source.rstrip("/").rpartition("/")[2]
        for path, text in list(files.items()):
            inner = path[len(whole) :]
            if path.startswith(whole) and inner[:1] in ("", "/"):
                files[call.whole(f"{target}{inner}")] = text
                files[call.whole(f"{target}/{name}{inner}")] = text
    return ""


def _tee(call: Call) -> str:
    text = ANY if call.state.stdin is None else call.state.stdin
    for path in call.args:
        whole = call.whole(path)
        before = call.state.files.get(whole, "") if call.has_letter("a") else ""
        call.state.files[whole] = before + text
    return text


def _sets_scripts(call: Call) -> str:
    """`jq '.scripts.x = "..."'`: of the file that it makes, the scripts are known."""
    found = [match for word in call.args[:1] for match in re.findall(_SCRIPT_SET, word)]
    made = f"{ANY}{READ}" if call.args[1:] else call.state.stdin or ANY
    source = next((mark for mark in (NET, CODED) if mark in made), f"{ANY}{traces(made)}")
    return "".join([source, *(script_entry(a or b, text) for a, b, text in found)])


def script_entry(name: str, quoted: str) -> str:
    """A script as a package.json has it; the text is in quotes already."""
    return f'\n{{"scripts": {{"{name}": {quoted}}}}}\n'


def edit(call: Call) -> None:
    """`sed -i` of a file that this script wrote: simple substitutions and lines that are added."""
    scripts = call.values("-e", "--expression")
    words = [word for word in call.args if word not in scripts]
    scripts, paths = (scripts, words) if scripts else (words[:1], words[1:])
    for whole in map(call.whole, paths):
        text = call.state.files.get(whole)
        if text is not None and all(map(plain, scripts)):
            for script in scripts:
                text = _edited(text, script)
            call.state.files[whole] = text


def _edited(text: str, script: str) -> str:
    """The text after one command; as it was where we do not know that command."""
    lines = re.fullmatch(_ADDS_LINES, script)
    if lines:
        return f"{lines[2]}\n{text}" if lines[1] == "i" else f"{text}\n{lines[2]}\n"
    for match in re.finditer(_SUBSTITUTES, script):
        pattern = "".join(_turned(piece) for piece in re.findall(r"\\.|[^\\]", match[2]))
        if len(re.findall(r"[*+?{]", pattern)) > 1 or len(match[3]) * len(text) > _MOST_EDITED:
            return text  # it could take too long, or become too much
        new = match[3].replace("\\n", "\n").replace("\\t", "\t")
        new = re.sub(r"\\([^\d])", r"\1", new)
        try:
            text = re.sub(pattern, new.replace("\\", "\\\\"), text, flags=re.MULTILINE)
        except re.error:
            return text
    return text


def _turned(piece: str) -> str:
    """A piece of sed's pattern as Python writes it."""
    if piece in _TURNED:
        return f"\\{piece}"
    return piece[1] if piece[0] == "\\" and piece[1] in _TURNED else piece


def remember(code: str, call: Call) -> None:
    """The texts that code in another language writes into files."""
    for pattern in _WRITES_TEXT:
        for match in re.finditer(pattern, code):
            path, *_, text = [group for group in match.groups() if group is not None]
            known = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
            call.state.files[call.whole(path)] = known


_READERS: dict[str, Callable[[Call], str]] = by_name(
    {
        "cp mv install ln": _copied,
        "curl wget": _downloaded,
        "jq gojq jaq": _sets_scripts,
        "fd fdfind": lambda c: _paths(c, c.args[1:] or ["."], chosen=c.args or c.given("-e")),
        "docker podman": _docker,
        "pgrep pidof": lambda c: f"{NAMED}{FOUND}{PARENT if finds_hosts(c) else ''}\n",
        "mktemp gmktemp": _mktemp,
        "base64 gbase64": _base64,
        "realpath readlink": _realpath,
        "which command type": lambda c: f"{c.args[-1]}\n" if c.args else ANY,
        "tee": _tee,
        "echo": _echo,
        "printf": _printf,
        "find": _find,
        "ls": lambda c: _paths(c, c.args or ["."], chosen=False),
        "rg": _rg,
        "ps": lambda c: f"{ANY}{FOUND}{PARENT if is_host(c.value('-C') or '') else ''}",
        "pwd": lambda c: f"{c.state.cwd}\n",
        "dirname": _dirname,
        "basename": _basename,
        "git": _git,
    }
)
