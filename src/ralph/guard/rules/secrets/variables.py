"""Reading one variable of the environment or of `.env`: fine, unless it may hold a secret.

Only forms that are known to tell no more are believed.
"""

import re

from ralph.guard.follow.expand import is_secret
from ralph.guard.rules.rule import Call, positional
from ralph.guard.shell.text import names

_GREPS = names("grep egrep fgrep rg ag")
_NAME = r"[A-Za-z_][A-Za-z0-9_]+"
# One name or several, of a whole variable (`^NAME=`) or of its beginning.
_PATTERN = rf"(\^?)\\?\(?({_NAME}(?:\\?\|\^?{_NAME})*)\\?\)?(=?)(?:\.\*)?"
_ONLY_NAMES = names("^[^=]* ^[^=]+ ^[A-Z_]* ^[A-Z_]+ ^[A-Z0-9_]* ^[A-Z0-9_]+")
_GREP_FLAGS = r"-[iEFPnowhHsx]+|--(?:ignore-case|word-regexp|only-matching|no-filename)"
_TELL_LITTLE = r"-[iEFPsqclL]*[qcl][iEFPsqclL]*|--(?:quiet|silent|count|files-with-matches)"
_SED = rf"(?:/\^?({_NAME})=?/p|s([/|,#])\^?({_NAME})=(?:\\?\(\.\*\\?\))?\2(?:\\1)?\2p)"
_SED_NAMES = names("s/=.*// s/=.*$// s/=.*//g")
_PRINT = r"\{\s*print[^{}]*\}"
_AWK = rf"/\^?({_NAME})=?/\s*(?:{_PRINT})?|\$1\s*==\s*\"({_NAME})\"\s*{_PRINT}"
# Words that stand in names of secrets, or of accounts whose every variable may be one.
_TELLING = (
    r"KEY|TOKEN|SECRET|PASS|PWD|CRED|AUTH|JWT|PRIVATE|DSN|CERT|SALT|_UR[LI]|WEBHOOK|SIGN|API"
    r"|^(?:AWS|AZURE|GCP|GOOGLE|GH|GITHUB|GITLAB|ANTHROPIC|OPENAI|GEMINI|STRIPE|TWILIO|SLACK|HF"
    r"|SENTRY|DB|DATABASE|PG|MYSQL|REDIS|MONGO|SMTP|MAIL|S3|CLOUDFLARE|HEROKU|VAULT|NPM)$"
)


def reads_few(call: Call) -> bool:
    """True if a command tells only variables that it names, or none, of what it reads."""
    if call.name in _GREPS:
        return _greps_few(call)
    program = "".join(call.args[:1])
    flags = [word for word in call.words if word[:1] == "-"]
    if call.name in ("sed", "gsed"):
        found = re.fullmatch(_SED, program) if flags == ["-n"] else None
        names_only = not flags and program in _SED_NAMES
        return names_only or (found is not None and _is_harmless(found[1] or found[3], whole=True))
    if call.name in ("awk", "gawk", "mawk"):
        program = "".join(positional(call.words, ["-F", "-v"])[:1])
        found = re.fullmatch(_AWK, program.strip())
        names_only = program.replace(" ", "") == "{print$1}" and "=" in "".join(flags)
        return names_only or (found is not None and _is_harmless(found[1] or found[2], whole=True))
    if call.name == "cut":  # `cut -d= -f1` tells the names
        given = sorted(call.clustered("d", "f") + call.clustered("f", "d"))
        return given == ["1", "="] and len(flags) == 2
    return call.name == "wc"


def _greps_few(call: Call) -> bool:
    flags = [word for word in call.words if word[:1] == "-" and word != "-e"]
    pattern = (call.values("-e") or call.args[:1] or [""])[0]
    if flags and all(re.fullmatch(_TELL_LITTLE, flag) for flag in flags):
        return True
    if not all(re.fullmatch(_GREP_FLAGS, flag) for flag in flags):
        return False
    if pattern in _ONLY_NAMES and any("o" in flag for flag in flags):
        return True
    found = re.fullmatch(_PATTERN, pattern)
    if found is None:
        return False
    whole = bool(found[1] and found[3])
    several = re.findall(_NAME, found[2])
    return all(_is_harmless(name, whole=whole) for name in several)


def _is_harmless(name: str, *, whole: bool) -> bool:
    """True if a variable of this name holds no secret; one that only begins so may be another."""
    upper = name.upper().strip("_")
    return not is_secret(upper) and not re.search(_TELLING, upper if not whole else f"{upper}=")
