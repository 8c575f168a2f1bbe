"""Branches, tags and the stash, as a checkpoint remembers them (ADR 28)."""

import os
from collections.abc import Mapping

from ralph.git.repository import Repository, nul_split
from ralph.kernel.value import value

_FIELDS = ("refname", "objectname", "objecttype", "*objectname", "*objecttype", "symref")
_FORM = "--format=" + "%00".join(f"%({field})" for field in (*_FIELDS, "worktreepath"))
_STASH = "refs/stash"
_MOST_PARENTS = 1000  # of the commit that keeps what refs pointed to


@value
class Ref:
    """Where a ref points to now."""

    name: str
    at: str
    commit: str  # also what a tag with a message is about; "" for a tag of something else
    checked_out: str  # the work tree that has it checked out, "" for none


@value
class Refs:
    """The refs as they were at a checkpoint."""

    places: Mapping[str, str]  # branches and tags, and where they pointed to
    stash: tuple[tuple[str, str], ...]  # commits with their words, newest first


def look(repository: Repository) -> tuple[dict[str, Ref], Refs]:
    """The refs as they are now."""
    words = ("for-each-ref", _FORM, "refs/heads", "refs/tags", _STASH)
    found = {}
    for line in os.fsdecode(repository.ask(*words)).split("\n")[:-1]:
        name, at, kind, about, its_kind, symbolic, checked_out = line.split("\0")
        commits = [each for each, what in ((at, kind), (about, its_kind)) if what == "commit"]
        if not symbolic:
            found[name] = Ref(name, at, "".join(commits), checked_out)
    stash = stash_of(repository) if _STASH in found else ()
    places = {name: ref.at for name, ref in found.items() if name != _STASH}
    return found, Refs(places, stash)


def stash_of(repository: Repository) -> tuple[tuple[str, str], ...]:
    """The commits of the stash with their words, newest first."""
    words = ("log", "--walk-reflogs", "-z", "--no-show-signature", "--format=%H %gs", _STASH, "--")
    said = nul_split(repository.run(*words).output)
    pairs = (entry.strip("\n").partition(" ") for entry in said)
    return tuple((commit, words) for commit, _, words in pairs)


def tips(found: Mapping[str, Ref], refs: Refs, head: str) -> tuple[str, ...]:
    """Commits that have to be kept, lest an agent that tidies up removes them; tags last, since
    most of them are about commits of branches."""
    ordered = sorted(found.values(), key=lambda ref: ref.name.startswith("refs/tags/"))
    commits = (*(commit for commit, _ in refs.stash), *(ref.commit for ref in ordered))
    return tuple(each for each in dict.fromkeys(commits) if each not in (head, ""))[:_MOST_PARENTS]
