"""The commands that other commands run: `timeout 5 rm x`, `uv run`, `ssh host ...` and their like,
and `find` and `xargs` for what they find or read."""

from collections.abc import Callable
from itertools import dropwhile, takewhile

from ralph.guard.paths import FREE_PLACE, ROOT
from ralph.guard.rules.rule import Call, positional
from ralph.guard.shell.text import ANY, EACH, FREE, by_name, names, table, traces, unknown

# Flags that take a value; `1`: a word comes before the command.
_WRAPPERS = table("""
    command builtin nohup setsid unbuffer busybox toybox bunx pnpx fakeroot cross-env linux64:
    prlimit setpriv valgrind torsocks chronic firejail entr dbus-run-session systemd-inhibit:
    dumb-init tini catchsegv:
    chrt taskset faketime setarch chroot: 1
    exec: -a
    nice: -n --adjustment
    ionice: -c -n -p --class --classdata
    timeout: 1 -s -k --signal --kill-after
    gtimeout: 1 -s -k
    time: -f -o --format --output
    stdbuf: -i -o -e
    strace ltrace: -e -o -p -s
    caffeinate: -t -w
    npx: -p --package -c --call
    uvx: --from --with
    flock: 1 -w --timeout -E
    doas chpst: -u
    sudo: -u -g -h -p -C -U
    xvfb-run: -s -n
    dotenv: -f -e
    retry: -d -t
    perf: 1 -e -o -p -F -g
    rlwrap: -f -s -H
    proxychains proxychains4: -f
    ssh-agent: -a -t
    numactl: -N -m -C -p
    sshpass: -p -f -d -P
    cpulimit: -l -p -e
    sem: -j --id
    watchexec: -e -w -f -i -d --exts --watch
""")
_RUNNERS = table("""
    poetry uv pipenv hatch pdm rye conda pipx op doppler rustup: run
    bundle rbenv pyenv asdf direnv: exec
    npm mise: exec x
    pnpm yarn: exec dlx
    bun: x
""")
# Programs of a project that its package manager runs by their name alone.
_BY_MANAGER = names(
    "eas prisma knex sequelize typeorm drizzle-kit vercel netlify supabase firebase wrangler"
    " serverless sls cdk pulumi lerna changeset nx turbo"
)
_RUNNER_VALUED = names(
    "-p --package --with --python -n --name --directory --group --extra --env-file"
)
# Commands whose words are joined and given to a shell; of their own flags, those with a value.
_AS_TEXT = table("""
    watch: -n --interval
    ssh: 1 -i -p -l -o -F -J -L -R -D -W -b -c -E -e -m -Q -S -w
    screen: -S -t -c
""")
# Commands that give the text after one of these flags to a shell.
_TEXT_FLAGS = table("""
    flock su: -c --command
    nodemon: -x --exec
    nix-shell: --run --command
    entr: -s
    compgen complete: -C
""")
# `cmake -E` and the commands that do the same.
_BY_CMAKE = table("""
    rm remove remove_directory: rm
    copy copy_directory copy_if_different copy_directory_if_different copy_directory_if_newer: cp
    env environment: env
    rename: mv
    create_symlink: ln -s
    create_hardlink: ln
    touch: touch
    make_directory: mkdir
    tar: tar
    cat: cat
    chdir: env -C
    time: command
""")
_CONTAINER_VALUED = names(
    "-u -e -w --user --env --workdir -c -n --container --index -v --volume -p --publish --name"
    " --entrypoint -l --label --env-file"
)
_OF_CONTAINER = names("rm mv cp env printenv tee")
_TMUX_RUNS = names("new new-session new-window neww split-window send-keys send")
_FD_VALUED = names("-e -t -d -E -S -j -c --extension --type --exclude --max-depth")
_SCRIPT_VALUED = names("-c -qc -qec -eqc --command -I -O -B -E -m -o -t -T")
_XARGS_VALUED = names(
    "-I -n -P -L -s -a -d -E --max-args --max-procs --replace --delimiter --arg-file -j --jobs"
)
_FIND_RUNS = names("-exec -execdir -ok -okdir")
_PATTERNS = names("-name -iname -path -ipath -wholename -iwholename")
_NARROW = _PATTERNS | names(
    "-regex -iregex -mtime -mmin -newer -size -empty -ctime -atime -perm -user -amin -cmin -inum"
    " -samefile"
)
_MOST_ITEMS = 200


def only_runs(call: Call) -> bool:
    """True if its words are those of another command, which is judged by itself."""
    runs = not set(_RUNNERS.get(call.name, "").split()).isdisjoint(call.args[:1])
    return call.name in _WRAPPERS or call.name == "env" or runs


def inner_commands(call: Call) -> list[list[str]]:
    """The commands that a wrapper runs; none for others."""
    flags = _TEXT_FLAGS.get(call.name)
    if flags is not None and (text := call.value(*flags.split())):
        return [["sh", "-c", text]]
    if call.name in ("hyperfine", "concurrently"):
        return [["sh", "-c", word] for word in call.args]
    if call.name in _BY_NAME:
        return _BY_NAME[call.name](call)
    if call.name in _WRAPPERS:
        asks = call.name == "command" and call.words[:1] in (["-v"], ["-V"])
        valued = _WRAPPERS[call.name].split()
        return [] if asks else [after_flags(call.words, valued, skip="1" in valued)]
    first = "".join(call.args[:1])
    if first in _RUNNERS.get(call.name, "").split():
        rest = call.words[call.words.index(first) + 1 :]
        if call.name in ("npm", "pnpm"):
            return _by_npm(call, rest)
        return [after_flags(rest[call.name in ("rustup", "direnv") :], _RUNNER_VALUED)]
    if call.name in ("yarn", "pnpm", "bun") and first in _BY_MANAGER:
        return [call.words[call.words.index(first) :]]
    return []


def after_flags(
    words: list[str], valued: "list[str] | frozenset[str]", *, skip: int = 0
) -> list[str]:
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
        rest = after_flags(words, _RUNNER_VALUED)
        texts = {"-c", "--shell-mode"}.intersection(words[: len(words) - len(rest)])
        return [["sh", "-c", " ".join(rest)]] if texts else [rest]
    rest = after_flags(words, _RUNNER_VALUED | {"-c", "--call"})
    before = Call(["npx", *call.words[: len(call.words) - len(rest)]], call.state)
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
    words = call.words[call.words.index(subs[0]) + 1 :]
    rest = after_flags(words, _CONTAINER_VALUED, skip=1)
    name = rest[0].rpartition("/")[2] if rest else ""
    if call.name not in ("kubectl", "oc") and name in _OF_CONTAINER and "/" not in rest:
        return []
    return [rest]


def _as_text(call: Call) -> list[list[str]]:
    valued = _AS_TEXT[call.name].split()
    words = after_flags(call.words, valued, skip="1" in valued)
    return [["sh", "-c", " ".join(words)]] if words else []


def _by_tmux(call: Call) -> list[list[str]]:
    if _TMUX_RUNS.isdisjoint(call.args[:1]):
        return []
    rest = call.words[call.words.index(call.args[0]) + 1 :]
    words = after_flags(rest, ["-s", "-n", "-t", "-c", "-x", "-y", "-e", "-F"])
    words = [word for word in words if word not in ("Enter", "C-m", "C-c", "C-d", "Escape")]
    return [["sh", "-c", " ".join(words)]] if words else []


def _by_script(call: Call) -> list[list[str]]:
    """`script -c COMMAND FILE`; elsewhere `script FILE COMMAND`. What it shows goes to the file."""
    words = positional(call.words, _SCRIPT_VALUED)
    texts = [*call.values("--command"), *call.clustered("c", "IOBEmotT")]
    made = [["sh", "-c", text] for text in texts if text]
    return [*made, ["tee", *words[:1]], words[1:]]


def _by_coverage(call: Call) -> list[list[str]]:
    """`coverage run -m pytest`, `coverage run x.py`"""
    words = call.words[call.words.index("run") + 1 :] if call.args[:1] == ["run"] else []
    words = list(dropwhile(lambda word: word[:1] == "-" and word != "-m", words))
    return [["python", *words]] if words else []


def _by_fd(call: Call) -> list[list[str]]:
    """`fd -x COMMAND`; what it finds is free if it looks nowhere else than in the project."""
    for place, word in enumerate(call.words):
        if word in ("-x", "-X", "--exec", "--exec-batch"):
            starts = positional(call.words[:place], _FD_VALUED)[1:]
            starts += call.values("--search-path", "--base-directory")
            outer = [start for start in starts if not call.is_ours(start)]
            found = f"{outer[0]}/*" if outer else FREE
            inner = [w.replace("{}", found) for w in call.words[place + 1 :] if w != ";"]
            return [inner if found in "".join(inner) else [*inner, found]]
    return []


def _by_xargs(call: Call) -> list[list[str]]:
    """The commands that `xargs` or `parallel` runs, with what it is sent."""
    argv = after_flags(call.words, _XARGS_VALUED)
    text = ANY if call.state.stdin is None else call.state.stdin
    parallel = call.name == "parallel"
    if parallel:
        argv, text = _parallel(argv, text)
        if call.value("-a", "--arg-file") is not None:
            text = ANY
        if not argv:  # then every line is a command
            return [["sh", "-c", line] for line in text.splitlines() if line][:_MOST_ITEMS]
        if len(argv) == 1:
            argv = ["sh", "-c", argv[0]]
    argv = argv or ["echo"]
    mark = call.value("-I", "--replace", "-i")
    if mark is None and parallel:
        mark = "{}"
    lines = list(dict.fromkeys(text.splitlines()))[:_MOST_ITEMS] or [""]
    if mark is not None and any((mark or "{}") in word for word in argv):
        return [[word.replace(mark or "{}", line.strip()) for word in argv] for line in lines]
    if unknown(text):
        return [[*argv, f"{ANY}{traces(text)}"]]
    if call.given("--null --delimiter -0 -d/InPLsEa"):
        return [[*argv, *filter(None, text.replace("\\0", "\n").splitlines())]]
    return [[*argv, *text.split()]]


def _parallel(argv: list[str], text: str) -> tuple[list[str], str]:
    """`parallel COMMAND ::: ITEMS` and `:::: FILES`: the command, and the items as lines."""
    marks = [place for place, word in enumerate(argv) if word.rstrip("+") in (":::", "::::")]
    if not marks:
        return argv, text
    files = any(word.startswith("::::") for word in argv)
    items = [word for word in argv[marks[0] :] if word[:3] != ":::"]
    return argv[: marks[0]], ANY if files else "\n".join(items)


def _by_find(call: Call) -> list[list[str]]:
    """The commands that `find` runs; what it deletes is one too."""
    search = Search(call.words)
    found, rest = _found(call, search), search.expression
    made = [["rm", "-rf", *found]] if "-delete" in rest else []
    for place, word in enumerate(rest):
        if word in _FIND_RUNS:
            ends = [at for at, w in enumerate(rest) if at > place and w in (";", "+")]
            argv = rest[place + 1 : ends[0] if ends else len(rest)]
            made += [[word.replace("{}", item) for word in argv] for item in found]
        if word in ("-fprint", "-fprintf", "-fls", "-fprint0") and place + 1 < len(rest):
            made.append(["tee", rest[place + 1]])
    return made


def _found(call: Call, search: "Search") -> list[str]:
    """The paths that `find` finds: by its patterns, below where it starts, or all of that."""
    starts, kinds = search.starts, set(map(call.kind, search.starts))
    if ROOT in kinds and not search.narrow:
        return [f"{FREE}{EACH}", *(start for start in starts if kinds != {ROOT})]
    wholes = [call.whole(start) for start in starts]
    special = any(".git" in w.split("/") or call.where.steers(w) for w in wholes)
    if not search.patterns and kinds <= {FREE_PLACE, ROOT} and not special:
        return [FREE]
    return [
        pattern if pattern.startswith(start) else f"{start.rstrip('/')}/{pattern}"
        for start in starts
        for pattern in search.patterns or ["*"]
    ]


class Search:
    """The places where `find` starts, its expression, and the names and paths that it looks for. It
    is `narrow` if some are chosen, by a test that is not turned around, wherever it does something.
    """

    def __init__(self, words: list[str]) -> None:
        words = list(dropwhile(("-H", "-L", "-P").__contains__, words))
        starts = list(takewhile(lambda word: word[:1] not in ("-", "(", "!"), words))
        self.starts, self.expression = starts or ["."], words[len(starts) :]
        branches = self._branches()
        self.patterns = [pattern for branch in branches for pattern in branch.patterns]
        acting = [branch for branch in branches if branch.acts] or branches
        self.narrow = all(branch.narrow for branch in acting)
        if "(" in self.expression:
            self.narrow = any(branch.narrow for branch in branches)

    def _branches(self) -> "list[_Branch]":
        """The parts between `-o`, less those that say where not to look: `-path x -prune -o ...`"""
        branches = [_Branch()]
        turned = False
        for word, following in zip(self.expression, [*self.expression[1:], ""], strict=False):
            branch = branches[-1]
            if word in ("-o", "-or"):
                branches.append(_Branch())
            elif word in _FIND_RUNS or word == "-delete":
                branch.acts = True
            elif word == "-prune":
                branch.pruned = True
            elif not turned:
                branch.narrow |= word in _NARROW
                branch.patterns += [following] if word in _PATTERNS else []
            turned = word in ("!", "-not") or (turned and word == "(")
        return [branch for branch in branches if branch.acts or not branch.pruned]


class _Branch:
    def __init__(self) -> None:
        self.acts = self.narrow = self.pruned = False
        self.patterns: list[str] = []


_BY_NAME: dict[str, Callable[[Call], list[list[str]]]] = by_name(
    {
        "docker podman kubectl docker-compose nerdctl oc": _in_container,
        " ".join(_AS_TEXT): _as_text,
        "fd fdfind": _by_fd,
        "cmake cmake3": _by_cmake,
        "find gfind": _by_find,
        "xargs parallel": _by_xargs,
        "coverage": _by_coverage,
        "git": _by_git,
        "npx": lambda call: _by_npm(call, call.words),
        "script": _by_script,
        "tmux": _by_tmux,
    }
)
