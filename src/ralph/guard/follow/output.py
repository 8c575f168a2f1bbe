"""Predicts what a command prints: known texts, paths in the project, harmless words, anything."""

from collections.abc import Callable

from ralph.guard.follow.find_xargs import find_starts, is_narrow, patterns_of
from ralph.guard.follow.written_files import KEEPERS
from ralph.guard.paths import FREE_PLACE, ROOT
from ralph.guard.rules.files import ENDLESS_FILES
from ralph.guard.rules.processes import finds_hosts, is_host, narrowed
from ralph.guard.rules.rule import Call
from ralph.guard.rules.secrets.files import is_credential, may_be_key
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
    names,
    plain,
    traces,
    unknown,
    without,
)

# Commands that print nothing, a harmless word, what they read, or what the network sends.
_SILENT = names(
    "true false : mkdir touch rm chmod test [ cd export local declare typeset readonly wait sleep"
    " exit return break continue shopt umask ulimit kill mkfifo rmdir let hash set"
    # They print what a shell's setup is to evaluate.
    " ssh-agent direnv pyenv rbenv nodenv brew fnm mise conda opam starship luarocks dircolors nvm"
    " rtx keychain minikube zoxide goenv jenv volta"
)
_TAME = names(
    "date nproc uname wc uuidgen sha256sum md5sum shasum getconf arch cksum stat expr seq tput"
    " locale sw_vers lsof jobs"
)
_IDENTITY = names("whoami hostname id logname")
_FILTERS = names("sort uniq head tail grep egrep fgrep cat tac nl less more sponge pv")
_NETWORK = names("curl wget http https xh aria2c lynx w3m fetch nc ncat netcat socat")
_ESCAPES = dict(zip("ntr\\aefv", "\n\t\r\\\a\033\f\v", strict=True))
_CODERS = names(
    "base64 base32 xxd od hexdump gzip zip tar openssl gpg env printenv urlencode uuencode"
)
# What they print ends only if what they read does.
_PASSES_ON = _CODERS | names("tr fold cut sed awk gawk rev xz bzip2 zstd pigz")
_GIT_NAMES = names("branch describe rev-list merge-base symbolic-ref name-rev")


def output_of(call: Call) -> str:
    """The text that the command prints; ANY where nobody can tell."""
    name = call.name
    if name in _SILENT:
        return ""
    if name in _TAME:
        return f"{NAMED}\n"
    if name in _IDENTITY:
        return f"{NAMED}{WHO}\n"
    reader = _READERS.get(name)
    if reader is not None:
        return reader(call)
    if name in _NETWORK:
        return NET
    if name in _FILTERS:
        return narrowed(call, _filtered(call))
    return narrowed(call, _from_input(call, CODED if name in _CODERS else ANY))


def _from_input(call: Call, otherwise: str) -> str:
    """An unknown text; one made of input from the network came from there too."""
    read = call.state.stdin or ""
    kept = traces(read) if call.name in _PASSES_ON else without(traces(read), ENDLESS)
    return next((mark for mark in (NET, CODED) if mark in read), otherwise) + kept


def _echo(call: Call) -> str:
    words = list(call.words)
    escapes = False
    while words and words[0][:1] == "-" and words[0][1:] and not words[0][1:].strip("neE"):
        escapes = escapes or "e" in words[0]
        words = words[1:]
    text = " ".join(words)
    return f"{_unescaped(text) if escapes else text}\n"


def _printf(call: Call) -> str:
    if not call.words:
        return ""
    if call.words[0] == "--":
        return _printf(Call(["printf", *call.words[1:]], call.state, call.places))
    form, values = _unescaped(call.words[0]), call.words[1:]
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
        made.append("".join(p + _unescaped(v) for p, v in zip(pieces, [*batch, ""], strict=False)))
    return "".join(made)


def _unescaped(text: str) -> str:
    """The text with the escapes of `echo -e` and `printf` undone."""
    if "\\" not in text:
        return text
    made, place = [], 0
    while place < len(text):
        c = text[place]
        after = text[place + 1 : place + 2]
        if c != "\\" or not after:
            made.append(c)
            place += 1
        elif after in _ESCAPES:
            made.append(_ESCAPES[after])
            place += 2
        elif after in "x01234567":
            number, length = _number(text[place + 1 :])
            made.append(ANY if number in MARKS else number)
            place += 1 + length
        else:
            made.append(f"\\{after}")
            place += 2
    return "".join(made)


def _number(text: str) -> tuple[str, int]:
    """The character of `x41` or `101`, and how long that is."""
    digits, base, start, most = (
        ("0123456789abcdef", 16, 1, 2) if text[0] == "x" else ("01234567", 8, 0, 4)
    )
    end = start
    while end < len(text) and end - start < most and text[end].lower() in digits:
        end += 1
    return (chr(int(text[start:end], base) & 0xFF) if end > start else f"\\{text[0]}"), max(end, 1)


def _filtered(call: Call) -> str:
    """Lines of what is read: those of files that were written here, or of standard input."""
    files = [word for word in call.args if word != "-"]
    if call.name.endswith("grep"):
        if call.has("--files-with-matches", "--files-without-match") or call.has_letter(
            "lL", "efmABC"
        ):
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


def _paths(call: Call, starts: list[str], *, chosen: bool = True) -> str:
    """Paths below these; all of them, if none is chosen."""
    kinds = set(map(call.kind, starts))
    if any(is_credential(start, call.places, call.state.cwd) for start in starts):
        return f"{ANY}{VAULT}"
    if not kinds <= {FREE_PLACE, ROOT}:
        return ANY
    return f"{FREE}\n" if chosen or ROOT not in kinds else f"{FREE}{EACH}\n"


def _find(call: Call) -> str:
    starts, rest = find_starts(call.words)
    public = [pattern.endswith(".pub") for pattern in patterns_of(rest)]
    if public and all(public):
        return ANY
    if any(map(may_be_key, patterns_of(rest))):
        return f"{ANY}{VAULT}"
    return _paths(call, starts, chosen=is_narrow(rest))


def _fd(call: Call) -> str:
    return _paths(call, call.args[1:] or ["."], chosen=bool(call.args) or call.has_letter("e"))


def _rg(call: Call) -> str:
    if call.has("--files"):
        chosen = call.has("--glob", "--type") or call.has_letter("gt")
        return _paths(call, call.args or ["."], chosen=chosen)
    if call.has("--files-with-matches") or call.has_letter("lL", "egtTAB"):
        return _paths(call, call.args[1:] or ["."])
    return ANY if call.args[1:] or call.state.stdin is None else call.state.stdin


def _mktemp(call: Call) -> str:
    temps = call.places.where.temps
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
            return f"{call.places.where.project}/.git\n"
        top = call.has("--show-toplevel")
        return f"{call.places.where.project if top else NAMED}\n"
    some = call.has("--modified", "--deleted", "--unmerged") or call.has_letter("mdu")
    if sub == "ls-files" and not call.subs[1:] and not some:
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
    chosen = call.has("--filter", "--latest", "--last") or call.has_letter("fnl")
    return f"{ANY}{BOXES if lists and not chosen else ''}"


def _processes(call: Call) -> str:
    return f"{NAMED}{FOUND}{PARENT if finds_hosts(call) else ''}\n"


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


_READERS: dict[str, Callable[[Call], str]] = {
    **KEEPERS,
    **dict.fromkeys(("fd", "fdfind"), _fd),
    **dict.fromkeys(("docker", "podman"), _docker),
    **dict.fromkeys(("pgrep", "pidof"), _processes),
    **dict.fromkeys(("mktemp", "gmktemp"), _mktemp),
    **dict.fromkeys(("base64", "gbase64"), _base64),
    **dict.fromkeys(("realpath", "readlink"), _realpath),
    **dict.fromkeys(
        ("which", "command", "type"), lambda call: f"{call.args[-1]}\n" if call.args else ANY
    ),
    "echo": _echo,
    "printf": _printf,
    "find": _find,
    "ls": lambda call: _paths(call, call.args or ["."], chosen=False),
    "rg": _rg,
    "ps": lambda call: f"{ANY}{FOUND}{PARENT if is_host(call.value('-C') or '') else ''}",
    "yes": lambda _: f"{ANY}{ENDLESS}",
    "pwd": lambda call: f"{call.state.cwd}\n",
    "dirname": _dirname,
    "basename": _basename,
    "git": _git,
}
