"""The commands that other commands run: `timeout 5 rm x`, `find -exec`, `xargs` and their like."""

from ralph.core.danger_paths import FREE_PLACE, ROOT
from ralph.core.shell_text import ANY, FREE, NAMED, names, unknown

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.core.danger_rule import Call

# Flags that take a value, and how many words come before the command.
_WRAPPERS = {
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("-a", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p --class --classdata", 0),
    "timeout": ("-s -k --signal --kill-after", 1),
    "gtimeout": ("-s -k", 1),
    "time": ("-f -o --format --output", 0),
    "stdbuf": ("-i -o -e", 0),
    "chrt": ("", 1),
    "taskset": ("", 1),
    "strace": ("-e -o -p -s", 0),
    "ltrace": ("-e -o -p -s", 0),
    "unbuffer": ("", 0),
    "caffeinate": ("-t -w", 0),
    "busybox": ("", 0),
    "toybox": ("", 0),
    "npx": ("-p --package", 0),
    "bunx": ("", 0),
    "pnpx": ("", 0),
    "uvx": ("--from --with", 0),
    "flock": ("-w --timeout -E", 1),
    "doas": ("-u", 0),
    "sudo": ("-u -g -h -p -C -U", 0),
    "fakeroot": ("", 0),
    "xvfb-run": ("-s -n", 0),
    "dotenv": ("-f -e", 0),
    "cross-env": ("", 0),
    "faketime": ("", 1),
    "setarch": ("", 1),
    "linux64": ("", 0),
    "prlimit": ("", 0),
    "chroot": ("", 1),
    "setpriv": ("", 0),
    "retry": ("-d -t", 0),
    "chpst": ("-u", 0),
}
_RUNNERS = {
    "poetry": "run",
    "uv": "run",
    "pipenv": "run",
    "hatch": "run",
    "pdm": "run",
    "rye": "run",
    "bundle": "exec",
    "npm": "exec x",
    "pnpm": "exec dlx",
    "yarn": "exec dlx",
    "rbenv": "exec",
    "pyenv": "exec",
    "mise": "exec x",
    "conda": "run",
    "asdf": "exec",
    "op": "run",
    "doppler": "run",
    "rustup": "run",
    "bun": "x",
}
_RUNNER_VALUED = "-p --package --with --python -n --name --directory --group --extra --env-file"
_AS_TEXT = {"watch": "-n --interval", "ssh": "", "tmux": "", "script": "", "screen": "-S -t"}
_XARGS_VALUED = (
    "-I -n -P -L -s -a -d -E --max-args --max-procs --replace --delimiter --arg-file -j --jobs"
)
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_MOST_ITEMS = 200


def inner_commands(call: "Call") -> list[list[str]]:
    """The commands that a wrapper runs; none for others."""
    if call.name in _WRAPPERS:
        if call.name == "command" and call.words[:1] in (["-v"], ["-V"]):
            return []
        if call.name == "npx" and (text := call.value("-c", "--call")):
            return [["sh", "-c", text]]
        valued, skip = _WRAPPERS[call.name]
        return [after_flags(call.words, valued.split(), skip)]
    if call.name in _RUNNERS and call.args[:1] and call.args[0] in _RUNNERS[call.name].split():
        rest = call.words[call.words.index(call.args[0]) + 1 :]
        if call.name == "rustup":
            rest = rest[1:]
        return [after_flags(rest, _RUNNER_VALUED.split(), 0)]
    if call.name == "git":
        return _by_git(call)
    if call.name in ("docker", "podman", "kubectl") and call.subs[:1] == ["exec"]:
        return [_in_container(call)]
    if call.name in _AS_TEXT:
        return _as_text(call)
    return _fd(call) if call.name in ("fd", "fdfind") else []


def after_flags(words: list[str], valued: list[str], skip: int) -> list[str]:
    """The words after flags, their values, assignments, and this many others."""
    place = 0
    while place < len(words):
        word = words[place]
        if word == "--":
            place += 1
            if not skip:
                break
        elif word[:1] == "-" and len(word) > 1:
            place += 2 if word in valued else 1
        elif skip:
            skip -= 1
            place += 1
        elif "=" in word and word.partition("=")[0].isidentifier():
            place += 1
        else:
            break
    return words[place:]


def _by_git(call: "Call") -> list[list[str]]:
    """`git submodule foreach` and `git bisect run`"""
    rest = [word for word in call.subs[2:] if word != "--recursive"]
    if call.subs[:2] == ["submodule", "foreach"] and rest:
        return [["sh", "-c", " ".join(rest)]]
    if call.subs[:2] == ["bisect", "run"]:
        return [call.words[call.words.index("run") + 1 :]]
    return []


def _in_container(call: "Call") -> list[str]:
    """`docker exec NAME COMMAND`: paths in there are not ours, but a shell's text is judged."""
    rest = after_flags(
        call.words[call.words.index("exec") + 1 :],
        ["-u", "-e", "-w", "--user", "--env", "--workdir", "-c", "-n"],
        1,
    )
    return (
        rest
        if rest[:1]
        and rest[0].rpartition("/")[2] not in ("rm", "mv", "cp", "env", "printenv", "tee")
        else []
    )


def _as_text(call: "Call") -> list[list[str]]:
    """Commands whose words are joined and given to a shell."""
    words = list(call.words)
    if call.name == "script":
        text = call.value("-c", "--command")
        return [["sh", "-c", text]] if text else []
    if call.name == "ssh":
        words = after_flags(
            words,
            [
                "-i",
                "-p",
                "-l",
                "-o",
                "-F",
                "-J",
                "-L",
                "-R",
                "-D",
                "-W",
                "-b",
                "-c",
                "-E",
                "-e",
                "-m",
                "-Q",
                "-S",
                "-w",
            ],
            1,
        )
    elif call.name == "tmux":
        words = _tmux(call)
    elif call.name == "screen":
        words = after_flags(words, ["-S", "-t", "-c"], 0)
    else:
        words = after_flags(words, _AS_TEXT[call.name].split(), 0)
    return [["sh", "-c", " ".join(words)]] if words else []


def _tmux(call: "Call") -> list[str]:
    if not call.args or call.args[0] not in (
        "new",
        "new-session",
        "new-window",
        "neww",
        "split-window",
        "send-keys",
        "send",
    ):
        return []
    rest = call.words[call.words.index(call.args[0]) + 1 :]
    words = after_flags(rest, ["-s", "-n", "-t", "-c", "-x", "-y", "-e", "-F"], 0)
    return [word for word in words if word not in ("Enter", "C-m", "C-c", "C-d", "Escape")]


def _fd(call: "Call") -> list[list[str]]:
    for place, word in enumerate(call.words):
        if word in ("-x", "-X", "--exec", "--exec-batch"):
            inner = [w.replace("{}", FREE) for w in call.words[place + 1 :] if w != ";"]
            return [inner if FREE in inner else [*inner, FREE]]
    return []


def xargs_commands(call: "Call", stdin: str | None) -> list[list[str]]:
    """What `xargs` or `parallel` runs, with what it is sent."""
    argv = after_flags(call.words, _XARGS_VALUED.split(), 0)
    if call.name == "parallel" and ":::" in argv:
        place = argv.index(":::")
        argv, stdin = argv[:place], "\n".join(argv[place + 1 :])
    if call.name == "parallel" and len(argv) == 1:
        argv = ["sh", "-c", argv[0]]
    argv = argv or ["echo"]
    text = ANY if stdin is None else stdin
    mark = call.value("-I", "--replace", "-i")
    if mark is None and call.name == "parallel":
        mark = "{}"
    lines = list(dict.fromkeys(text.splitlines()))[:_MOST_ITEMS] or [""]
    if mark is not None and any((mark or "{}") in word for word in argv):
        return [[word.replace(mark or "{}", line.strip()) for word in argv] for line in lines]
    items = text.split()
    return [[*argv, *([ANY] if unknown(text) else items)]]


def find_actions(call: "Call") -> list[list[str]]:
    """What `find` runs, and what it deletes, as commands."""
    starts, rest = find_starts(call.words)
    cwd = call.state.cwd
    kinds = {call.places.kind(start, cwd) for start in starts}
    free = kinds <= {FREE_PLACE, ROOT} and not any(
        call.places.is_git(start, cwd) or call.places.steers(start, cwd) for start in starts
    )
    named = next((rest[i + 1] for i, word in enumerate(rest[:-1]) if word == "-name"), NAMED)
    found = [FREE] if free else [f"{start.rstrip('/')}/{named}" for start in starts]
    made = []
    if "-delete" in rest:
        narrow = any(word in _NARROW for word in rest)
        made.append(["rm", "-rf", *(found if narrow or kinds == {FREE_PLACE} else starts)])
    for place, word in enumerate(rest):
        if word in _FIND_RUNS:
            made += _exec(
                rest[place + 1 :],
                found if any(w in _NARROW for w in rest[:place]) or ROOT not in kinds else starts,
            )
        if word in ("-fprint", "-fprintf", "-fls", "-fprint0") and place + 1 < len(rest):
            made.append(["tee", rest[place + 1]])
    return made


_NARROW = names(
    "-name -iname -path -ipath -wholename -regex -iregex -mtime -mmin -newer -size"
    " -empty -ctime -atime"
    " -perm -user -amin -cmin -inum -samefile"
)


def find_starts(words: list[str]) -> tuple[list[str], list[str]]:
    """Where `find` begins, and the rest of its words."""
    place = 0
    while place < len(words) and words[place] in ("-H", "-L", "-P"):
        place += 1
    end = place
    while end < len(words) and words[end][:1] not in ("-", "(", "!"):
        end += 1
    return words[place:end] or ["."], words[end:]


def _exec(words: list[str], found: list[str]) -> list[list[str]]:
    end = next((i for i, w in enumerate(words) if w in (";", "+")), len(words))
    argv = words[:end]
    return [[word.replace("{}", item) for word in argv] for item in found]
