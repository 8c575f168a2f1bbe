"""Rules of the guard: a category, a reason, and the commands that are refused for it.

Rules are rows of tables: programs, sub-commands and flags. A rule with a test reads more.
"""

from collections.abc import Callable

from ralph.guard.follow.state import State
from ralph.guard.paths import FREE_PLACE, ROOT, Places
from ralph.guard.shell.text import plain, shown, table

UNREADABLE = "unreadable"
CATEGORIES = (
    *("file-system", "device", "privilege", "permissions", "git-history", "force-push"),
    *("credentials", "exfiltration", "remote-code", "reverse-shell", "exposure", "resource-bomb"),
    *("persistence", "process-kill", "publish", "cloud", "database", "container"),
    *("shell-history", "guard", "power", "evasion", UNREADABLE),
)
# How much is refused: what hurts beyond the project, or local history and processes too.
STANDARD, STRICT = "standard", "strict"
LEVELS = (STANDARD, STRICT)
# Flags that take the next word, by command: what follows them is no sub-command.
_VALUED = table("""
    git: -C -c --git-dir --work-tree --namespace --exec-path --config-env
    docker: -H --host --context -c --config -l --log-level
    podman: --connection --url --log-level --root
    kubectl: -n --namespace --context --kubeconfig --cluster --user -s --server
    helm: -n --namespace --kube-context --kubeconfig
    aws: --profile --region --output --endpoint-url --query
    gcloud: --project --account --configuration --zone --region --format
    az: --subscription -o --output --query
    gh: -R --repo
    npm: --prefix -w --workspace
    pnpm: -C --dir --filter -F
    yarn: --cwd
    cargo: --manifest-path --config -Z -C
    systemctl: -M --machine -H --host -t --type
""")


class Refusal:
    """The reason why a command is refused, by which rule and from which level on; `command` is the
    part of it that is refused, and `pattern` what would allow just that."""

    def __init__(self, category: str, why: str, rule: str = "", level: str = STANDARD) -> None:
        assert category in CATEGORIES
        self.category, self.why, self.rule, self.level = category, why, rule, level
        self.command = self.pattern = ""

    def name(self, argv: list[str]) -> None:
        """Name the command that is refused, unless one within it is."""
        if self.command:
            return
        self.command = shown(" ".join(argv))
        clear = len(argv) > 1 and all(plain(word) and len(word.split()) == 1 for word in argv)
        self.pattern = self.command if clear else ""


class Refused(Exception):  # noqa: N818  it says what happened
    """A rule refuses; caught by the judge, and nowhere else."""

    def __init__(self, category: str, why: str, rule: str = "", level: str = STANDARD) -> None:
        super().__init__(why)
        self.refusal = Refusal(category, why, rule, level)


class Call:
    """A command as it would be run: its name without a directory, and its words."""

    def __init__(self, argv: list[str], state: State, places: Places) -> None:
        self.name = (argv[0].rpartition("/")[2] or argv[0]).removesuffix(".exe")
        self.words = argv[1:]
        self.state, self.places = state, places
        self.args = positional(self.words, frozenset())
        valued = _VALUED.get(self.name)
        self.subs = self.args if valued is None else positional(self.words, valued.split())
        self.shown = " ".join(argv)

    @property
    def strict(self) -> bool:
        """True if the level `strict` holds: it is chosen, or this is done on another machine."""
        return self.places.where.strict or self.state.far

    def kind(self, path: str) -> str:
        """The kind of place that a path leads to."""
        return self.places.kind(path, self.state.cwd)

    def is_ours(self, path: str) -> bool:
        """True if a path leads into the project, to the project itself or to a free place."""
        return self.kind(path) in (FREE_PLACE, ROOT)

    def whole(self, path: str) -> str:
        """The absolute path."""
        return self.places.absolute(path, self.state.cwd)

    def begins(self, *starts: str) -> bool:
        """True if a word begins with one of these."""
        return any(word.startswith(starts) for word in self.words)

    def mentions(self, *texts: str) -> bool:
        """True if one of these stands anywhere in a word."""
        return any(text in word for word in self.words for text in texts)

    def has(self, *flags: str) -> bool:
        """True if one of these flags is given; long ones may be cut short, as getopt lets them."""
        return any(_is_flag(word, flag) for word in before_dashes(self.words) for flag in flags)

    def has_letter(self, letters: str, valued: str = "") -> bool:
        """True if one of these letters is given, alone or in a cluster like `-rf`; letters of
        `valued` take the rest of their word."""
        for word in before_dashes(self.words):
            if word[:1] == "-" and word[1:2] not in ("", "-"):
                for letter in word[1:]:
                    if letter in letters:
                        return True
                    if letter in valued:
                        break
        return False

    def value(self, *flags: str) -> str | None:
        """The first of what `values` finds."""
        return next(iter(self.values(*flags)), None)

    def values(self, *flags: str) -> list[str]:
        """The values of these flags: the next word, or what follows after `=` or in the word."""
        found = []
        for place, word in enumerate(self.words):
            for flag in flags:
                if word == flag:
                    found.append("".join(self.words[place + 1 : place + 2]))
                elif word.startswith(f"{flag}="):
                    found.append(word[len(flag) + 1 :])
                elif not flag.startswith("--") and len(flag) == 2 and word.startswith(flag):
                    found.append(word[2:])
        return found

    def clustered(self, letter: str, valued: str) -> list[str]:
        """The values of a letter that may stand in a cluster, as in `-qO-`; letters of `valued`
        take the rest of their word."""
        found = []
        for place, word in enumerate(self.words):
            if word[:1] != "-" or word[1:2] == "-":
                continue
            for at, c in enumerate(word[1:], 1):
                if c == letter:
                    found.append(word[at + 1 :] or "".join(self.words[place + 1 : place + 2]))
                if c == letter or c in valued:
                    break
        return found


# Says whether a rule holds, or refuses by itself.
Test = Callable[[Call], bool | None]


class Rule:
    """Refuses a command of these programs when everything in its row holds, from its level on."""

    def __init__(self, category: str, level: str, why: str, row: str) -> None:
        self.category, self.level, self.why = category, level or STANDARD, why
        command, _, self.told = row.rstrip(")").partition(" (")
        programs, *words = command.split()
        self.programs = programs.split("|")
        self.steps = [word.split("|") for word in words if word[0] != "-"]
        self.flags = [word for word in words if word[0] == "-" and word[2:3] not in ("", "/")]
        lettered = "".join(word[1:] for word in words if word[0] == "-" and word[2:3] in ("", "/"))
        self.letters, _, self.valued = lettered.partition("/")
        self.test: Test | None = None
        self.unless: Test | None = None

    def titled(self, call: Call) -> str:
        """The name of the rule when it refuses this command."""
        given = [flag for flag in self.flags if call.has(flag)]
        lettered = [f"-{c}" for c in self.letters if call.has_letter(c, self.valued)]
        told = [f"({self.told})"] if self.told and self.told[0] != "_" else []
        return " ".join([call.name, *call.subs[: len(self.steps)], *(given or lettered)[:1], *told])

    def holds(self, call: Call) -> bool:
        """True if the command is one of those that it refuses."""
        if len(call.subs) < len(self.steps):
            return False
        if not all(word in step for word, step in zip(call.subs, self.steps, strict=False)):
            return False
        if self.flags or self.letters:
            lettered = bool(self.letters) and call.has_letter(self.letters, self.valued)
            if not lettered and not call.has(*self.flags):
                return False
        if self.test is not None and not self.test(call):
            return False
        return self.unless is None or call.strict or not self.unless(call)


def rules(text: str, *tests: Test, unless: Test | None = None, **named: Test) -> list[Rule]:
    """The rules of a table: a line with category, level and reason, and below it the commands that
    are refused for that reason, as one writes them:

        git-history strict: it deletes files that git does not know; delete them by name
            git clean --force -f/e (not dry)

    `|` stands between alternatives, and at the end of a line the row goes on. One of the flags has
    to be there; `-f/e` is a letter that may stand in a cluster, in which e takes the rest. The test
    in parentheses has to hold too; it is part of the rule's name unless it begins with `_`. Without
    a reason it is the test that refuses, with its own. `unless` frees commands at `standard`.
    """
    known = {test.__name__.strip("_"): test for test in tests} | named
    made = []
    category = level = why = row = ""
    for line in text.splitlines():
        if line[:1] not in ("", " "):
            head, _, why = line.partition(":")
            category, _, level = head.partition(" ")
        else:
            row += line.strip()
            if row[-1] != "|":
                rule = Rule(category, level, why.strip(), row)
                rule.test = known[rule.told.replace(" ", "_")] if rule.told else None
                rule.unless = unless
                made.append(rule)
                row = ""
    return made


def for_real(call: Call) -> bool:
    """True if it is done, and not only shown."""
    return not call.has("--dry-run", "--dryrun", "--help", "-h")


def before_dashes(words: list[str]) -> list[str]:
    """The words before `--`, after which there are no flags."""
    return words[: words.index("--")] if "--" in words else words


def positional(words: list[str], valued: "frozenset[str] | list[str]") -> list[str]:
    """The words that are neither flags nor values of these flags."""
    found: list[str] = []
    skip = False
    for place, word in enumerate(words):
        if word == "--":
            return found + words[place + 1 :]
        if skip or (word[:1] == "-" and word != "-"):
            skip = not skip and word in valued
            continue
        found.append(word)
    return found


def _is_flag(word: str, flag: str) -> bool:
    if not flag.startswith("--"):
        return word == flag
    head = word.partition("=")[0]
    return head == flag or (len(head) > 3 and head[:2] == "--" and flag.startswith(head))
