"""Branches that others share: what is pushed there by force, or deleted, is lost for them too."""

from ralph.core.danger_rule import Call
from ralph.core.shell_text import NAMED, names, unknown

_SHARED = names(
    "main master trunk develop development dev staging stage production prod stable next gh-pages"
)
_SHARED_ABOVE = ("release/", "releases/", "hotfix/", "support/")
_EVERYTHING = ("--all", "--tags", "--mirror", "--branches")


def is_shared(branch: str) -> bool:
    """Whether others may work on a branch of this name; on one that nobody knows they may."""
    name = branch.removeprefix("refs/heads/").lower()
    if not name or unknown(name) or NAMED in name or any(c in name for c in "*?["):
        return True
    return name in _SHARED or name.startswith((*_SHARED_ABOVE, "refs/"))


def forces_shared(call: Call) -> bool:
    """Whether a forced push goes to a branch that others share, or that is not told."""
    here = call.state.branch or call.places.where.branch
    targets = [_target(word, here) for word in call.subs[2:]] or [here]
    return call.has(*_EVERYTHING) or any(map(is_shared, targets))


def _target(refspec: str, here: str) -> str:
    source, colon, target = refspec.removeprefix("+").partition(":")
    name = target if colon else source
    return here if name == "HEAD" else name


def checks_out(call: Call) -> bool:
    """Remember the branch that is checked out from now on; this refuses nothing."""
    made = call.clustered("b", "") + call.clustered("c", "") + call.values("--create", "--orphan")
    named = made or ([] if "--" in call.words else call.subs[1:2])
    if named:
        call.state.branch = named[0]
    return False


def deletes_shared(call: Call) -> bool:
    """`git branch -D main`"""
    return any(map(is_shared, call.subs[1:]))
