"""Reading one variable of the environment or of `.env`: fine, unless its name says a secret."""

import re

from ralph.core.danger_expand import is_secret
from ralph.core.shell_text import names, plain

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.core.danger_rule import Call

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")
_GREPS = names("grep egrep fgrep rg ag")
_TELLS_LITTLE = ("-q", "--quiet", "--silent", "-c", "--count", "-l", "--files-with-matches")


def reads_few(call: "Call") -> bool:
    """Whether a command tells only variables that it names, or none, of what it reads."""
    if call.name in _GREPS:
        return _greps_few(call)
    if call.name in ("sed", "gsed"):
        return call.has_letter("n") and _names_few(call.args[:1])
    if call.name in ("awk", "gawk", "mawk"):
        return _names_few([text for text in call.args if "/" in text or "==" in text][:1])
    if call.name == "cut":  # `cut -d= -f1` tells the names
        return call.clustered("d", "fbc") == ["="] and call.clustered("f", "dbc") == ["1"]
    return call.name == "wc"


def _greps_few(call: "Call") -> bool:
    if call.has("--invert-match") or call.has_letter("v", "efABCm"):
        return False
    if call.has(*_TELLS_LITTLE) or call.has_letter("qcl", "efABCm"):
        return True
    patterns = call.values("-e", "--regexp") or call.args[:1]
    return not call.has_letter("ABC", "efm") and _names_few(patterns)


def _names_few(patterns: list[str]) -> bool:
    """Whether each pattern can only match lines with a name in it that says no secret."""
    branches = [part for text in patterns for part in re.split(r"\\?\|", text)]
    found = [_NAME.findall(re.sub(r"\\[a-zA-Z]", " ", part)) for part in branches]
    return bool(found) and all(map(plain, patterns)) and all(map(_is_harmless, found))


def _is_harmless(words: list[str]) -> bool:
    return bool(words) and not any(is_secret(word.upper().strip("_")) for word in words)
