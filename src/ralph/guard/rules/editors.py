"""Rules about editors that are given commands: they run others, write elsewhere and delete."""

import re

from ralph.guard.rules.files import change
from ralph.guard.rules.rule import Call, positional, rules

_VALUED = ("-c", "--cmd", "-S", "-u", "-i", "-s", "--eval", "-l", "-f", "--funcall", "--load")
_RANGE = r"[%.$\d,;'<>+-]*"
_BEFORE = rf"^[\s:]*(?:(?:sil\w*|noa\w*|keep\w*|exe\w*|bufdo|argdo)!?\s*['\"]?)*{_RANGE}\s*"
# `:!x`, `:r !x`, `:w !x`, `:%!x`, `:terminal x`
_SHELL = rf"{_BEFORE}(?:(?:r|re|rea|read)?\s*!|(?:w|wr|write)\s+!|te(?:r\w*)?\s+)\s*\w"
_CALLS = (
    r"\b(?:system(?:list)?|delete|writefile|rename|job_?start|termopen|os\.execute|io\.popen"
    r"|os\.remove|uv\.spawn)\s*\(|shell-command|call-process|start-process|make-process|process-file"
    r"|delete-directory|delete-file|delete-recursively|\beshell-command"
)
_WRITES = rf"{_BEFORE}(?:w|wr\w*|wq|x|up\w*|sav\w*)!?\s+(?:>>\s*)?([^\s!|>]\S*)"
_WRITES_LISP = r"\b(?:write-region|write-file|rename-file|copy-file|set-visited-file-name)\b"


def _commands(call: Call) -> list[str]:
    """Commands for an editor of vim's kind: words after `-c` and `+`, with `|` between them."""
    told = [word[1:] for word in call.words if word[:1] == "+"]
    told += [*call.values("--cmd"), *call.clustered("c", "uiST")]
    return [part for text in told for part in (text, *text.split("|"))]


def _runs(call: Call) -> bool:
    return any(re.search(_SHELL, command) for command in _commands(call)) or any(
        re.search(_CALLS, word) for word in call.words
    )


def _writes(call: Call) -> None:
    """`-c 'w PATH'`"""
    found = [match for command in _commands(call) for match in re.findall(_WRITES, command)]
    _change(call, found, "writes to")


def _writes_by_lisp(call: Call) -> None:
    told = [text for text in call.values("--eval", "--execute") if re.search(_WRITES_LISP, text)]
    _change(call, re.findall(r'"([/~.][^"]*)"', " ".join(told)), "writes to")


def _edits(call: Call) -> None:
    paths = positional(call.words, [*_VALUED, *(w for w in call.words if w[-1:] == "c")])
    _change(call, [path for path in paths if path[:1] not in ("+", "")], "edits")


def _change(call: Call, paths: list[str], verb: str) -> None:
    home = call.places.where.home
    change(call, [f"{home}{path[1:]}" if path[:1] == "~" else path for path in paths], verb)


_TABLE = """\
evasion: it runs a command from an editor
    vim|vi|nvim|ex|view|gvim|vimdiff|emacs|emacsclient (runs)
file-system:
    vim|vi|nvim|ex|view|gvim|vimdiff (writes)
    emacs|emacsclient (writes by lisp)
    vim|vi|nvim|ex|view|gvim|vimdiff|ed|nano|emacs (edits)
"""
RULES = rules(
    _TABLE,
    *(_runs, _writes, _writes_by_lisp, _edits),
)
