"""Rules of the guard: a category, a reason, and the commands that are refused for it.

Rules are rows of tables: programs, sub-commands and flags. A rule with a test reads more.
"""

import re
from collections.abc import Callable

from ralph.guard.follow.state import State
from ralph.guard.paths import FREE_PLACE, ROOT
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


class Verdict:
    """The answer on a command: it may run, unless it is `Refused`."""

    allowed = True
    category = reason = rule = level = ""
    command = pattern = ""  # the part that is refused, and what would allow just that


class Refused(Verdict, Exception):  # noqa: N818  it says what happened
    """A rule refuses, for this reason and from this level on; caught by the judge, which answers
    with it, and nowhere else."""

    allowed = False

    def __init__(self, category: str, reason: str, rule: str = "", level: str = STANDARD) -> None:
        assert category in CATEGORIES
        super().__init__(reason)
        self.category, self.reason, self.rule, self.level = category, reason, rule, level

    def name(self, argv: list[str]) -> None:
        """Name the command that is refused, unless one within it is."""
        if self.command:
            return
        self.command = shown(" ".join(argv))
        clear = len(argv) > 1 and all(plain(word) and len(word.split()) == 1 for word in argv)
        self.pattern = self.command if clear else ""


class Call:
    """A command as it would be run: its name without a directory, and its words."""

    def __init__(self, argv: list[str], state: State) -> None:
        self.name = (argv[0].rpartition("/")[2] or argv[0]).removesuffix(".exe")
        self.words = argv[1:]
        self.state, self.where = state, state.where
        self.kind, self.whole = state.kind, state.whole
        self.args = positional(self.words, [])
        self.subs = positional(self.words, _VALUED.get(self.name, "").split())
        self.shown = " ".join(argv)

    @property
    def strict(self) -> bool:
        """True if the level `strict` holds: it is chosen, or this is done on another machine."""
        return self.where.strict or self.state.far

    def is_ours(self, path: str) -> bool:
        """True if a path leads into the project, to the project itself or to a free place."""
        return self.kind(path) in (FREE_PLACE, ROOT)

    def expanded(self, path: str) -> str:
        """The path with the home directory for a `~` that it begins with."""
        return f"{self.where.home}{path[1:]}" if path[:1] == "~" else path

    def there(self, *flags: str) -> State:
        """The state in the directory that these flags name."""
        inner = self.state.copy()
        for place in self.values(*flags):
            inner.cwd = inner.whole(place)
        return inner

    def begins(self, *starts: str) -> bool:
        """True if a word begins with one of these."""
        return any(word.startswith(starts) for word in self.words)

    def mentions(self, *texts: str) -> bool:
        """True if one of these stands anywhere in a word."""
        return any(text in word for word in self.words for text in texts)

    def says(self, *texts: str) -> bool:
        """True if one of these stands in its words, in capitals or not."""
        said = " ".join(self.words).lower()
        return any(text in said for text in texts)

    @property
    def texts(self) -> list[str]:
        """All that the program is told: its words and standard input."""
        return [*self.words, self.state.stdin or ""]

    def has(self, *flags: str) -> bool:
        """True if one of these flags is given; long ones may be cut short, as getopt lets them."""
        return any(_is_flag(word, flag) for word in before_dashes(self.words) for flag in flags)

    def has_letter(self, letters: str, valued: str = "") -> bool:
        """True if one of these letters is given, alone or in a cluster like `-rf`; letters of
        `valued` take the rest of their word."""
        return bool(in_clusters(before_dashes(self.words), letters, valued))

    def given(self, flags: str) -> str:
        """The first of these flags that is given, or nothing: `--force -f/e`. Single letters may
        stand in a cluster, in which e takes the rest of the word."""
        lettered = "".join(flag[1:] for flag in flags.split() if flag[2:3] in ("", "/"))
        letters, _, valued = lettered.partition("/")
        found = [flag for flag in flags.split() if flag[2:3] not in ("", "/") and self.has(flag)]
        found += [f"-{letter}" for letter in letters if self.has_letter(letter, valued)]
        return "".join(found[:1])

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
        return in_clusters(self.words, letter, valued)


# Says whether a rule holds, or refuses by itself.
Test = Callable[[Call], object]


class Rule:
    """Refuses a command of these programs when everything in its row holds, from its level on."""

    def __init__(
        self, category: str, level: str, why: str, row: str, tests: dict[str, Test]
    ) -> None:
        self.category, self.level, self.why = category, level or STANDARD, why.strip()
        command, _, self.told = row.rstrip(")").partition(" (")
        programs, *words = command.split()
        self.programs = programs.split("|")
        self.steps = [word.split("|") for word in words if word[0] != "-"]
        self.flags = " ".join(word for word in words if word[0] == "-")
        self.test = tests[self.told.replace(" ", "_")] if self.told else None
        self.unless = tests.get("unless")

    def titled(self, call: Call) -> str:
        """The name of the rule when it refuses this command."""
        told = f"({self.told})" if self.told and self.told[0] != "_" else ""
        words = [call.name, *call.subs[: len(self.steps)], call.given(self.flags), told]
        return " ".join(filter(None, words))

    def holds(self, call: Call) -> bool:
        """True if the command is one of those that it refuses."""
        return (
            len(call.subs) >= len(self.steps)
            and all(word in step for word, step in zip(call.subs, self.steps, strict=False))
            and (not self.flags or bool(call.given(self.flags)))
            and (self.test is None or bool(self.test(call)))
            and (self.unless is None or call.strict or not self.unless(call))
        )


def rules(text: str, *tests: Test, **named: Test) -> list[Rule]:
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
    category = level = why = ""
    for line in re.sub(r"\|\n +", "|", text).splitlines():
        if line[0] != " ":
            head, _, why = line.partition(":")
            category, _, level = head.partition(" ")
        else:
            made.append(Rule(category, level, why, line.strip(), known))
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
        if not skip and (word[:1] != "-" or word == "-"):
            found.append(word)
        else:
            skip = not skip and word in valued
    return found


def in_clusters(words: list[str], letters: str, valued: str) -> list[str]:
    """The value after the first of these letters in each cluster of flags: the rest of the word, or
    the next word."""
    found = []
    for word, following in zip(words, [*words[1:], ""], strict=False):
        for at, c in enumerate(word[1:], 1) if word[:1] == "-" and word[1:2] != "-" else ():
            if c in letters:
                found.append(word[at + 1 :] or following)
            if c in letters + valued:
                break
    return found


def _is_flag(word: str, flag: str) -> bool:
    if not flag.startswith("--"):
        return word == flag
    head = word.partition("=")[0]
    return head == flag or (len(head) > 3 and head[:2] == "--" and flag.startswith(head))
