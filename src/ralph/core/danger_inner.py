"""The commands that other commands run: `timeout 5 rm x`, `uv run`, `ssh host ...` and their like.

`find` and `xargs`, which run commands for what they find or read, are in `danger_each`.
"""

from ralph.core.danger_paths import FREE_PLACE, ROOT
from ralph.core.danger_rule import Call, positional
from ralph.core.shell_text import FREE, names

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Callable

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
    "npx": ("-p --package -c --call", 0),
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
    "perf": ("-e -o -p -F -g", 1),
    "valgrind": ("", 0),
    "rlwrap": ("-f -s -H", 0),
    "proxychains": ("-f", 0),
    "proxychains4": ("-f", 0),
    "torsocks": ("", 0),
    "chronic": ("", 0),
    "firejail": ("", 0),
    "entr": ("", 0),
    "dbus-run-session": ("", 0),
    "ssh-agent": ("-a -t", 0),
    "numactl": ("-N -m -C -p", 0),
    "sshpass": ("-p -f -d -P", 0),
    "systemd-inhibit": ("", 0),
    "cpulimit": ("-l -p -e", 0),
    "dumb-init": ("", 0),
    "tini": ("", 0),
    "catchsegv": ("", 0),
    "sem": ("-j --id", 0),
    "watchexec": ("-e -w -f -i -d --exts --watch", 0),
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
    "pipx": "run",
    "direnv": "exec",
    "op": "run",
    "doppler": "run",
    "rustup": "run",
    "bun": "x",
}
# Programs of a project that its package manager runs by their name alone.
_BY_MANAGER = names(
    "eas prisma knex sequelize typeorm drizzle-kit vercel netlify supabase firebase wrangler"
    " serverless sls cdk pulumi lerna changeset nx turbo"
)
_RUNNER_VALUED = "-p --package --with --python -n --name --directory --group --extra --env-file"
_AS_TEXT = {"watch": "-n --interval", "ssh": "", "tmux": "", "script": "", "screen": "-S -t"}
# Commands that give the text after one of these flags to a shell.
_TEXT_FLAGS = {
    "flock": "-c --command",
    "nodemon": "-x --exec",
    "nix-shell": "--run --command",
    "entr": "-s",
    "compgen": "-C",
    "complete": "-C",
    "su": "-c --command",
}
# `cmake -E` and the commands that do the same.
_BY_CMAKE = {
    **dict.fromkeys(("rm", "remove", "remove_directory"), "rm"),
    **dict.fromkeys(("copy", "copy_directory", "copy_if_different"), "cp"),
    **dict.fromkeys(("copy_directory_if_different", "copy_directory_if_newer"), "cp"),
    **dict.fromkeys(("env", "environment"), "env"),
    "rename": "mv",
    "create_symlink": "ln -s",
    "create_hardlink": "ln",
    "touch": "touch",
    "make_directory": "mkdir",
    "tar": "tar",
    "cat": "cat",
    "chdir": "env -C",
    "time": "command",
}
_EACH_A_TEXT = frozenset({"hyperfine", "concurrently"})
_IN_CONTAINER = frozenset({"docker", "podman", "kubectl", "docker-compose", "nerdctl", "oc"})
_CONTAINER_VALUED = (
    "-u -e -w --user --env --workdir -c -n --container --index -v --volume -p --publish --name"
    " --entrypoint -l --label --env-file"
)


def only_runs(call: Call) -> bool:
    """Whether its words are those of another command, which is judged by itself."""
    runner = _RUNNERS.get(call.name, "").split()
    return (
        call.name in _WRAPPERS
        or call.name == "env"
        or (call.args[:1] != [] and call.args[0] in runner)
    )


def inner_commands(call: Call) -> list[list[str]]:
    """The commands that a wrapper runs; none for others."""
    flags = _TEXT_FLAGS.get(call.name)
    if flags is not None and (text := call.value(*flags.split())):
        return [["sh", "-c", text]]
    if call.name in _EACH_A_TEXT:
        return [["sh", "-c", word] for word in call.args]
    if call.name in _BY_NAME:
        return _BY_NAME[call.name](call)
    if call.name in _WRAPPERS:
        if call.name == "command" and call.words[:1] in (["-v"], ["-V"]):
            return []
        valued, skip = _WRAPPERS[call.name]
        return [after_flags(call.words, valued.split(), skip)]
    if call.name in _RUNNERS and call.args[:1] and call.args[0] in _RUNNERS[call.name].split():
        rest = call.words[call.words.index(call.args[0]) + 1 :]
        if call.name in ("npm", "pnpm"):
            return _by_npm(call, rest)
        if call.name in ("rustup", "direnv"):
            rest = rest[1:]
        return [after_flags(rest, _RUNNER_VALUED.split(), 0)]
    if call.name in ("yarn", "pnpm", "bun") and _BY_MANAGER.intersection(call.args[:1]):
        return [call.words[call.words.index(call.args[0]) :]]
    return []


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


def _by_npm(call: Call, words: list[str]) -> list[list[str]]:
    """`npx`, `npm exec` and `pnpm exec`: a command, or with -c a text for a shell."""
    if call.name == "pnpm":  # its -c takes no value
        rest = after_flags(words, _RUNNER_VALUED.split(), 0)
        texts = [w in ("-c", "--shell-mode") for w in words[: len(words) - len(rest)]]
        return [["sh", "-c", " ".join(rest)]] if any(texts) else [rest]
    rest = after_flags(words, f"{_RUNNER_VALUED} -c --call".split(), 0)
    before = Call(["npx", *call.words[: len(call.words) - len(rest)]], call.state, call.places)
    text = before.value("-c", "--call")
    return [["sh", "-c", text]] if text else [rest]


def _by_cmake(call: Call) -> list[list[str]]:
    """`cmake -E` does what other commands do; `cmake -P` runs a script."""
    if call.words[:1] == ["-E"]:
        command = _BY_CMAKE.get("".join(call.words[1:2]))
        return [[*command.split(), *call.words[2:]]] if command else []
    script = call.value("-P")
    return [["sh", script]] if script else []


def _by_git(call: Call) -> list[list[str]]:
    """`git submodule foreach`, `git bisect run` and `git rebase --exec`"""
    rest = [word for word in call.subs[2:] if word != "--recursive"]
    if call.subs[:2] == ["submodule", "foreach"] and rest:
        return [["sh", "-c", " ".join(rest)]]
    if call.subs[:1] == ["rebase"]:
        return [["sh", "-c", text] for text in call.values("--exec", "-x")]
    if call.subs[:2] == ["bisect", "run"]:
        return [call.words[call.words.index("run") + 1 :]]
    return []


def _in_container(call: Call) -> list[list[str]]:
    """`docker exec NAME COMMAND`: files in there are not ours, but a shell's text is judged. A
    cluster's files are somebody's."""
    subs = call.subs[1:] if call.subs[:1] == ["compose"] else call.subs
    compose = call.name == "docker-compose" or call.subs[:1] == ["compose"]
    if not subs or subs[0] not in (("exec", "run") if compose else ("exec",)):
        return []
    rest = after_flags(
        call.words[call.words.index(subs[0]) + 1 :],
        _CONTAINER_VALUED.split(),
        1,
    )
    name = rest[0].rpartition("/")[2] if rest else ""
    if call.name not in ("kubectl", "oc") and name in _OF_CONTAINER and "/" not in rest:
        return []
    return [rest]


_OF_CONTAINER = frozenset({"rm", "mv", "cp", "env", "printenv", "tee"})


def _as_text(call: Call) -> list[list[str]]:
    """Commands whose words are joined and given to a shell."""
    words = list(call.words)
    if call.name == "script":
        return _by_script(call)
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


def _by_script(call: Call) -> list[list[str]]:
    """`script -c COMMAND FILE`; elsewhere `script FILE COMMAND`. What it shows goes to the file."""
    words = positional(call.words, ["-c", "-qc", "-qec", "-eqc", "--command", *_SCRIPT_VALUED])
    texts = [*call.values("--command"), *call.clustered("c", "IOBEmotT")]
    made = [["sh", "-c", text] for text in texts if text]
    return [*made, ["tee", *words[:1]], words[1:]]


_SCRIPT_VALUED = ("-I", "-O", "-B", "-E", "-m", "-o", "-t", "-T")


def _by_coverage(call: Call) -> list[list[str]]:
    """`coverage run -m pytest`, `coverage run x.py`"""
    words = call.words[call.words.index("run") + 1 :] if call.args[:1] == ["run"] else []
    while words and words[0][:1] == "-" and words[0] != "-m":
        words = words[1:]
    return [["python", *words]] if words else []


def _tmux(call: Call) -> list[str]:
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


def _fd(call: Call) -> list[list[str]]:
    for place, word in enumerate(call.words):
        if word in ("-x", "-X", "--exec", "--exec-batch"):
            found = _found_by_fd(call, call.words[:place])
            inner = [w.replace("{}", found) for w in call.words[place + 1 :] if w != ";"]
            return [inner if found in "".join(inner) else [*inner, found]]
    return []


_FD_VALUED = names("-e -t -d -E -S -j -c --extension --type --exclude --max-depth")


def _found_by_fd(call: Call, words: list[str]) -> str:
    """What it finds: free if it looks nowhere else than in the project."""
    starts = positional(words, _FD_VALUED)[1:]
    starts += call.values("--search-path", "--base-directory")
    outer = [s for s in starts if call.places.kind(s, call.state.cwd) not in (FREE_PLACE, ROOT)]
    return f"{outer[0]}/*" if outer else FREE


_BY_NAME: "dict[str, Callable[[Call], list[list[str]]]]" = {
    **dict.fromkeys(_IN_CONTAINER, _in_container),
    **dict.fromkeys(_AS_TEXT, _as_text),
    **dict.fromkeys(("fd", "fdfind"), _fd),
    **dict.fromkeys(("cmake", "cmake3"), _by_cmake),
    "coverage": _by_coverage,
    "git": _by_git,
    "npx": lambda call: _by_npm(call, call.words),
}
