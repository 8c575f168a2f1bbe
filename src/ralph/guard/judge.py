"""Is a shell command dangerous? `judge` follows it as a shell would and asks the rules (ADR 25).

Denied is what deletes or overwrites outside the project and the temporary directory, rewrites
history, reads credentials, reaches out, stays behind, or cannot be followed. It is a guard against
accidents and clumsy evasion, not a sandbox: a file is not read, unless the command itself wrote it.
"""

from ralph.guard.follow.script import follow
from ralph.guard.paths import Where
from ralph.guard.rules.rule import UNREADABLE, Refused, Verdict
from ralph.guard.shell.nodes import Unfollowable
from ralph.guard.shell.text import fits, unknown

__all__ = ["Verdict", "Where", "judge", "unreadable"]

_LONGEST = 400_000


def judge(command: str, where: Where, allow: tuple[str, ...] = ()) -> Verdict:
    """The verdict on a command in a world. `allow` are patterns of commands that a person allows
    although they are refused. Whatever cannot be followed is denied."""
    patterns = [pattern.split() for pattern in allow]

    def allowed(argv: list[str]) -> bool:
        return any(matches(pattern, argv) for pattern in patterns)

    if len(command) > _LONGEST:
        return unreadable("it is too long")
    try:
        follow(command, where, allowed)
    except Refused as refused:
        return refused
    except Unfollowable as error:
        return unreadable(str(error))
    except RecursionError:
        return unreadable("it is nested too deeply")
    return Verdict()


def unreadable(why: str) -> Verdict:
    """The refusal of what the guard cannot follow."""
    return Refused(UNREADABLE, f"the guard cannot follow this command: {why}")


def matches(pattern: list[str], argv: list[str]) -> bool:
    """True if a command matches, word by word: `*` in a word stands for any text without `..`, and
    a last word `*` for any further words. What nobody can tell is matched by that one only."""
    if pattern[-1:] == ["*"]:
        pattern = pattern[:-1]
        argv = argv[: len(pattern)]
    if not pattern or len(pattern) != len(argv):
        return False
    return all(
        word == glob or (not unknown(word) and ".." not in word and fits(word, glob))
        for word, glob in zip(argv, pattern, strict=True)
    )
