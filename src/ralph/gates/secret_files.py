"""Files that look like secrets, by their names or by a key in them, and the words about them."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from ralph.kernel.findings import Finding
from ralph.kernel.value import value
from ralph.text.redact import keys_in
from ralph.text.words import listed

GATE = "secrets"
_PRIVATE_KEYS = frozenset({"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"})
_TEMPLATES = frozenset({"example", "sample", "template", "dist"})
_MOST_NAMED = 10


@value
class Suspect:
    """A file that looks like a secret, and why."""

    path: str
    why: str
    commit: str = ""  # the one that holds it, where the work does not

    @property
    def words(self) -> str:
        """As people read it."""
        return f"{self.path} ({self.why})"


def why_by_name(path: str) -> str:
    """The reason why a file of this name looks like a secret; "" if it does not."""
    name = path.rpartition("/")[2].lower()
    if name in _PRIVATE_KEYS or name.endswith(".pem"):
        return "named like a key"
    if name.startswith(".env") and _TEMPLATES.isdisjoint(name.split(".")):
        return "named like an environment with secrets"
    return ""


def why_by_content(data: bytes, begin: int = 0) -> str:
    """The reason why a text looks like a secret, and the line; "" if it does not, or is no text.
    Of what stands before `begin` that is known."""
    if b"\0" in data:
        return ""
    start = min((start for start, _, _ in keys_in(data, begin)), default=-1)
    line = data.count(b"\n", 0, max(0, start)) + 1
    return "" if start < 0 else f"shaped like a key in line {line}"


def is_allowed(path: str, patterns: Iterable[str]) -> bool:
    """True if `secrets.allow` names this path, a directory above it, or a pattern."""
    return any(
        fnmatchcase(path, pattern) or path.startswith(f"{pattern.rstrip('/')}/")
        for pattern in patterns
    )


def objections(suspects: Iterable[Suspect]) -> Iterator[Finding]:
    """Findings that tell the agent what to do about them."""
    found = list(suspects)
    in_work = [suspect.words for suspect in found if not suspect.commit]
    if in_work:
        text = (
            "These new files look like secrets and would be committed:"
            f" {listed(in_work, _MOST_NAMED)}. Have git ignore each (.gitignore, and `git rm"
            " --cached` where it is staged or committed), or remove it if you made it. Never print"
            " what is in them. (People can allow one: secrets.allow in the settings.)"
        )
        yield Finding(GATE, text, gist=f"files: {listed(in_work)}")
    for commit in dict.fromkeys(suspect.commit for suspect in found if suspect.commit):
        held = listed([s.words for s in found if s.commit == commit], _MOST_NAMED)
        text = (
            f"Commit {commit[:12]} of this run holds what looks like a secret: {held}. A later"
            " commit does not take it out of the history. Type"
            f" `git reset --soft {commit[:12]}~1`, then commit again without it. Never print it."
        )
        yield Finding(GATE, text, gist=f"commit {commit}")
