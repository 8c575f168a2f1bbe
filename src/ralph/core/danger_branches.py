"""Branches that others share: what is pushed there by force, or deleted, is lost for them too."""

import re

from ralph.core.danger_rule import Call
from ralph.core.shell_text import plain

_SHARED = re.compile(
    r"(?:main|master|trunk|dev|develop|development|next|gh-pages|edge|nightly"
    r"|v?\d[\w.]*"  # a version, or a tag
    r"|(?:.*[-_/.])?(?:pre|non)?(?:prod(?:uction)?|live|stag(?:e|ing)|qa|uat)(?:[-_/.].*)?"
    r"|(?:releases?|stable|hotfix|support|version)(?:[-_/.].*)?)"
)
_EVERYTHING = ("--all", "--tags", "--mirror", "--branches")
_HERE = frozenset({"HEAD", "@", "@{u}", "@{upstream}", "@{push}"})


def is_shared(branch: str) -> bool:
    """Whether others may work on a branch of this name; on one that nobody knows they may."""
    name = branch.removeprefix("refs/").removeprefix("heads/").lower()
    if not name.strip("-@") or not plain(name) or any(c in name for c in "*?[{"):
        return True
    return bool(_SHARED.fullmatch(name)) or name.startswith(("tags/", "remotes/", "ralph/"))


def forces_shared(call: Call) -> bool:
    """Whether a forced push goes to a branch that others share, or that is not told."""
    here = call.state.branch or call.places.where.branch
    targets = [_target(word, here) for word in call.subs[2:]] or [here]
    chosen = any("push.default" in word.lower() for word in call.words)
    return chosen or call.has(*_EVERYTHING) or any(map(is_shared, targets))


def _target(refspec: str, here: str) -> str:
    source, colon, target = refspec.removeprefix("+").partition(":")
    name = target if colon else source
    return here if name in _HERE else name


def renames(call: Call) -> bool:
    """Remember what the branch is called from now on; this refuses nothing."""
    if call.subs[0] == "symbolic-ref" and len(call.subs) > 2:
        call.state.branch = call.subs[2]
    elif call.subs[0] == "branch" and (call.has_letter("mM", "tu") or call.has("--move")):
        call.state.branch = "".join(call.subs[-1:])
    return False


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
