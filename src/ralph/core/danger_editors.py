"""Rules about editors that are given commands: they run others, write elsewhere and delete."""

import re

from ralph.core.danger_files import judge_change
from ralph.core.danger_rule import EVASION, FILES, Call, Rule, positional

_VIM = "vim vi nvim ex view gvim vimdiff"
_EMACS = "emacs emacsclient"
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
    """What an editor of vim's kind is told: words after `-c` and `+`, with `|` between them."""
    told = [word[1:] for word in call.words if word[:1] == "+"]
    told += [*call.values("--cmd"), *call.clustered("c", "uiST")]
    return [part for text in told for part in (text, *text.split("|"))]


def _runs(call: Call) -> bool:
    return any(re.search(_SHELL, command) for command in _commands(call)) or any(
        re.search(_CALLS, word) for word in call.words
    )


def _writes(call: Call) -> bool:
    """`-c 'w PATH'`"""
    found = [match for command in _commands(call) for match in re.findall(_WRITES, command)]
    return _judge(call, found, "writes to")


def _writes_by_lisp(call: Call) -> bool:
    told = [text for text in call.values("--eval", "--execute") if re.search(_WRITES_LISP, text)]
    return _judge(call, re.findall(r'"([/~.][^"]*)"', " ".join(told)), "writes to")


def _edits(call: Call) -> bool:
    paths = positional(call.words, [*_VALUED, *(w for w in call.words if w[-1:] == "c")])
    return _judge(call, [path for path in paths if path[:1] not in ("+", "")], "edits")


def _judge(call: Call, paths: list[str], verb: str) -> bool:
    home = call.places.where.home
    for path in paths:
        whole = f"{home}{path[1:]}" if path[:1] == "~" else path
        judge_change(whole, call.places, call.state.cwd, verb)
    return False


RULES = (
    Rule(EVASION, "it runs a command from an editor", f"{_VIM} {_EMACS}", test=_runs),
    Rule(FILES, "", _VIM, test=_writes),
    Rule(FILES, "", _EMACS, test=_writes_by_lisp),
    Rule(FILES, "", f"{_VIM} ed nano emacs", test=_edits),
)
