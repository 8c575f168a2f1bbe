"""Commands that `find` and `xargs` run for everything that they find or read."""

from ralph.guard.follow.wrappers import after_flags
from ralph.guard.paths import FREE_PLACE, ROOT
from ralph.guard.rules.rule import Call
from ralph.guard.shell.text import ANY, EACH, FREE, names, traces, unknown

_XARGS_VALUED = names(
    "-I -n -P -L -s -a -d -E --max-args --max-procs --replace --delimiter --arg-file -j --jobs"
)
_FIND_RUNS = names("-exec -execdir -ok -okdir")
_FIND_PRINTS = names("-fprint -fprintf -fls -fprint0")
_PATTERNS = names("-name -iname -path -ipath -wholename -iwholename")
_NARROW = _PATTERNS | names(
    "-regex -iregex -mtime -mmin -newer -size -empty -ctime -atime -perm -user -amin -cmin -inum"
    " -samefile"
)
_MOST_ITEMS = 200


def xargs_commands(call: Call, stdin: str | None) -> list[list[str]]:
    """The commands that `xargs` or `parallel` runs, with what it is sent."""
    argv = after_flags(call.words, _XARGS_VALUED)
    text = ANY if stdin is None else stdin
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
    if call.has("--null", "--delimiter") or call.has_letter("0d", "InPLsEa"):
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


def find_actions(call: Call) -> list[list[str]]:
    """The commands that `find` runs; what it deletes is one too."""
    starts, rest = find_starts(call.words)
    found = _found(call, starts, rest)
    made = [["rm", "-rf", *found]] if "-delete" in rest else []
    for place, word in enumerate(rest):
        if word in _FIND_RUNS:
            ends = [at for at, w in enumerate(rest) if at > place and w in (";", "+")]
            argv = rest[place + 1 : ends[0] if ends else len(rest)]
            made += [[word.replace("{}", item) for word in argv] for item in found]
        if word in _FIND_PRINTS and place + 1 < len(rest):
            made.append(["tee", rest[place + 1]])
    return made


def _found(call: Call, starts: list[str], rest: list[str]) -> list[str]:
    """The paths that it finds: by its patterns, below where it starts, or all of that."""
    cwd, kinds = call.state.cwd, set(map(call.kind, starts))
    if ROOT in kinds and not is_narrow(rest):
        return [f"{FREE}{EACH}", *(start for start in starts if kinds != {ROOT})]
    patterns = patterns_of(rest)
    if patterns:
        return [_below(start, pattern) for start in starts for pattern in patterns]
    special = any(call.places.is_git(s, cwd) or call.places.steers(s, cwd) for s in starts)
    if kinds <= {FREE_PLACE, ROOT} and not special:
        return [FREE]
    return [_below(start, "*") for start in starts]


def _below(start: str, pattern: str) -> str:
    return pattern if pattern.startswith(start) else f"{start.rstrip('/')}/{pattern}"


def is_narrow(rest: list[str]) -> bool:
    """True if some are chosen, by a test that is not turned around, wherever something is done."""
    branches = _branches(rest)
    acting = [branch for branch in branches if branch.acts] or branches
    if "(" in rest:
        return any(branch.narrow for branch in branches)
    return all(branch.narrow for branch in acting)


def patterns_of(rest: list[str]) -> list[str]:
    """The names and paths that it looks for."""
    return [pattern for branch in _branches(rest) for pattern in branch.patterns]


class _Branch:
    """The tests and actions between two `-o`: does it choose, and does it do something?"""

    def __init__(self) -> None:
        self.acts = self.narrow = self.pruned = False
        self.patterns: list[str] = []

    def take(self, word: str, following: str) -> None:
        """A test that what is found passes."""
        self.narrow = self.narrow or word in _NARROW
        self.patterns += [following] if word in _PATTERNS else []


def _branches(rest: list[str]) -> list[_Branch]:
    """The branches of an expression, without those that only say where not to look: `-path x
    -prune -o ...`"""
    branches = [_Branch()]
    turned = False
    for word, following in zip(rest, [*rest[1:], ""], strict=False):
        if word in ("-o", "-or"):
            branches.append(_Branch())
        elif word in _FIND_RUNS or word == "-delete":
            branches[-1].acts = True
        elif word == "-prune":
            branches[-1].pruned = True
        elif not turned:
            branches[-1].take(word, following)
        turned = word in ("!", "-not") or (turned and word == "(")
    return [branch for branch in branches if branch.acts or not branch.pruned]


def find_starts(words: list[str]) -> tuple[list[str], list[str]]:
    """The places where `find` begins, and the rest of its words."""
    place = 0
    while place < len(words) and words[place] in ("-H", "-L", "-P"):
        place += 1
    end = place
    while end < len(words) and words[end][:1] not in ("-", "(", "!"):
        end += 1
    return words[place:end] or ["."], words[end:]
