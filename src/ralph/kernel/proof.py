"""The subject of a proof (ADR 33): one tree, and messages for when gates or hooks change it."""

from ralph.kernel.findings import Finding
from ralph.kernel.value import value
from ralph.text.words import listed

GATE = "proof"
HEAD, REFS, SETTINGS = "HEAD", "git's refs", "git's settings"  # they change beside the files
OF_GIT = frozenset({HEAD, REFS, SETTINGS})
_MOST_NAMED = 10


@value
class Stand:
    """The work at one moment. Empty outside git."""

    tree: str = ""  # every file that git would commit
    head: str = ""
    refs: str = ""  # a digest of the branches, the tags and what HEAD is on
    settings: str = ""  # a digest of the repository's configuration

    def moved(self, other: "Stand") -> frozenset[str]:
        """The names of what differs beside the files."""
        ours = (self.head, self.refs, self.settings)
        theirs = (other.head, other.refs, other.settings)
        pairs = zip((HEAD, REFS, SETTINGS), ours, theirs, strict=True)
        return frozenset(name for name, one, two in pairs if one != two)


def restless(gate: str, paths: frozenset[str]) -> Finding:
    """The objection to a gate that changes what it checks, each time."""
    names = listed(sorted(paths), _MOST_NAMED)
    text = (
        f"`{gate}` changes {names} every time it runs, so what was checked is not what would be"
        " committed. Make it leave that alone, commit what it makes, or have git ignore it."
    )
    return Finding(GATE, text, gist=f"{gate}: {names}")


def hook_words(altered: tuple[str, ...], findings: tuple[Finding, ...] = ()) -> str:
    """The reason why a commit that one of the user's hooks changed does not stand."""
    what = f"a commit hook changed {listed(altered, _MOST_NAMED)}"
    if not findings:
        return f"{what}, each time: what was checked is not what would be committed"
    texts = "\n".join(finding.text for finding in findings)
    return f"{what}, and with that {findings[0].gate} does not pass\n{texts}"


def undone(what: str) -> str:
    """The objection to code of a check that changed a list, which is as it was again."""
    return (
        f"Code run by a check changed {what}; it was restored. Only Ralph and people may change it:"
        " remove that from the code."
    )
