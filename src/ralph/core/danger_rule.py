"""What a rule of the guard is: a category, a reason, and when it holds for a command.

Most rules are data: names of commands, sub-commands and flags. A rule with a test reads more.
"""

from ralph.core.shell_text import plain, shown

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.core.danger_paths import Places
    from ralph.core.danger_state import State

FILES, DEVICE, PRIVILEGE, PERMISSIONS = "file-system", "device", "privilege", "permissions"
GIT, PUSH, CREDENTIALS, EXFILTRATION = "git-history", "force-push", "credentials", "exfiltration"
REMOTE, REVERSE, EXPOSURE, BOMB = "remote-code", "reverse-shell", "exposure", "resource-bomb"
PERSISTENCE, KILL, PUBLISH, CLOUD = "persistence", "process-kill", "publish", "cloud"
DATABASE, CONTAINER, HISTORY, GUARD = "database", "container", "shell-history", "guard"
POWER, EVASION, UNREADABLE = "power", "evasion", "unreadable"
CATEGORIES = (
    *(FILES, DEVICE, PRIVILEGE, PERMISSIONS, GIT, PUSH, CREDENTIALS, EXFILTRATION, REMOTE, REVERSE),
    *(EXPOSURE, BOMB, PERSISTENCE, KILL, PUBLISH, CLOUD, DATABASE, CONTAINER, HISTORY, GUARD),
    *(POWER, EVASION, UNREADABLE),
)
# How much is refused: what hurts beyond the project, or local history and processes too.
STANDARD, STRICT = "standard", "strict"
LEVELS = (STANDARD, STRICT)
# Flags that take the next word, by command: what follows them is no sub-command.
_VALUED = {
    "git": "-C -c --git-dir --work-tree --namespace --exec-path --config-env",
    "docker": "-H --host --context -c --config -l --log-level",
    "podman": "--connection --url --log-level --root",
    "kubectl": "-n --namespace --context --kubeconfig --cluster --user -s --server",
    "helm": "-n --namespace --kube-context --kubeconfig",
    "aws": "--profile --region --output --endpoint-url --query",
    "gcloud": "--project --account --configuration --zone --region --format",
    "az": "--subscription -o --output --query",
    "gh": "-R --repo",
    "npm": "--prefix -w --workspace",
    "pnpm": "-C --dir --filter -F",
    "yarn": "--cwd",
    "cargo": "--manifest-path --config -Z -C",
    "terraform": "",
    "systemctl": "-M --machine -H --host -t --type",
}


class Refusal:
    """Why a command is refused, by which rule and from which level on; `command` is the part of it
    that is, and `pattern` what would allow just that."""

    __slots__ = ("category", "command", "level", "pattern", "rule", "why")

    def __init__(self, category: str, why: str, rule: str = "", level: str = STANDARD) -> None:
        self.category, self.why, self.rule, self.level = category, why, rule, level
        self.command = self.pattern = ""

    def name(self, argv: list[str]) -> None:
        """It is this command that is refused, unless one within it is."""
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
    """One command as it would be run: its name without a directory, and its words."""

    __slots__ = ("args", "name", "places", "shown", "state", "subs", "words")

    def __init__(self, argv: list[str], state: "State", places: "Places") -> None:
        self.name = (argv[0].rpartition("/")[2] or argv[0]).removesuffix(".exe")
        self.words = argv[1:]
        self.state, self.places = state, places
        self.args = positional(self.words, frozenset())
        valued = _VALUED.get(self.name)
        self.subs = self.args if valued is None else positional(self.words, valued.split())
        self.shown = " ".join(argv)

    @property
    def strict(self) -> bool:
        """Whether the level `strict` holds: it is chosen, or this is done on another machine."""
        return self.places.where.strict or self.state.far

    def has(self, *flags: str) -> bool:
        """Whether one of these flags is given; long ones may be cut short, as getopt lets them."""
        return any(_is_flag(word, flag) for word in before_dashes(self.words) for flag in flags)

    def has_letter(self, letters: str, valued: str = "") -> bool:
        """Whether one of these letters is given, alone or in a cluster like `-rf`; letters of
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
        """What follows each of these flags, as its own word, after `=`, or in the same word."""
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
        """What follows a letter that may stand in a cluster, as in `-qO-`; letters of `valued`
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


class Rule:
    """Refuses a command of these names when everything that is given holds, from this level on."""

    __slots__ = ("category", "flags", "letters", "level", "names", "sub", "test", "valued", "why")

    def __init__(
        self,
        category: str,
        why: str,
        names: str,
        *,
        sub: str = "",
        flags: str = "",
        letters: str = "",
        valued: str = "",
        test: "Callable[[Call], bool] | None" = None,
        level: str = STANDARD,
    ) -> None:
        self.category, self.why, self.names, self.level = category, why, names.split(), level
        self.sub = [step.split("|") for step in sub.split()]
        self.flags, self.letters, self.valued, self.test = flags.split(), letters, valued, test

    def titled(self, call: Call) -> str:
        """What it is called when it refuses this command."""
        given = [flag for flag in self.flags if call.has(flag)]
        lettered = [f"-{c}" for c in self.letters if call.has_letter(c, self.valued)]
        flags = (given or lettered)[:1]
        test = self.test.__name__.strip("_").replace("_", " ") if self.test else ""
        said = [] if test in ("", "<lambda>", "holds") else [f"({test})"]
        return " ".join([call.name, *call.subs[: len(self.sub)], *flags, *said])

    def holds(self, call: Call) -> bool:
        """Whether the command is one of those that it refuses."""
        if len(call.subs) < len(self.sub):
            return False
        if not all(word in step for word, step in zip(call.subs, self.sub, strict=False)):
            return False
        if self.flags or self.letters:
            lettered = bool(self.letters) and call.has_letter(self.letters, self.valued)
            if not lettered and not call.has(*self.flags):
                return False
        return self.test is None or self.test(call)


def for_real(call: Call) -> bool:
    """Whether it is done, and not only shown."""
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
