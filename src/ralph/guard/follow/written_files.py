"""Remembers what commands put into files: a later part of the script may run it."""

import re
from collections.abc import Callable

from ralph.guard.follow.code_names import LITERAL
from ralph.guard.rules.files import CURL_VALUED, download_targets
from ralph.guard.rules.rule import Call, positional
from ralph.guard.shell.text import ANY, CODED, NET, READ, plain, traces

_SCRIPT_SET = (
    r"""\.scripts(?:\.([\w-]+)|\["([^"]+)"\])\s*\|?=\s*("(?:[^"\\]|\\.)*")"""  # as jq says it
)
_SUBSTITUTES = r"s([/|#,!@])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1"
_ADDS_LINES = r"(?s)(?:[\d$]+|/[^/]*/)?([aic])\s*\\?\n?(.*)"
_BODY = rf"(?:[rR]?(?:'''([\s\S]*?)'''|\"\"\"([\s\S]*?)\"\"\")|{LITERAL})"
_WRITES_TEXT = (
    rf"\bopen\(\s*{LITERAL}\s*,\s*['\"][wax]\w*['\"][^)\n]*\)\.write\(\s*{_BODY}",
    rf"\bopen\(\s*{LITERAL}\s*,\s*['\"][wax]\w*['\"][^)\n]*\)\s*as\s+\w+:\s*\w+\.write\(\s*{_BODY}",
    rf"Path\(\s*{LITERAL}\s*\)\.write_text\(\s*{_BODY}",
    rf"(?:writeFileSync|File\.write)\(\s*{LITERAL}\s*,\s*{_BODY}",
)
_REPEATS = r"[*+?{]"
_MOST_EDITED = 1_000_000
# Characters that mean with a backslash in sed what they mean without one in Python.
_TURNED = "(){}|+?"


def _downloaded(call: Call) -> str:
    targets = download_targets(call)
    urls = [word for word in call.args if "/" in word]
    named = call.name == "wget" or call.has("--remote-name") or call.has_letter("O", CURL_VALUED)
    if not targets and named:
        targets = [url.rpartition("/")[2].partition("?")[0] for url in urls]
    for target in targets:
        call.state.files[call.whole(target)] = NET
    return "" if targets and not {"-", "/dev/stdout"}.intersection(targets) else NET


def _copied(call: Call) -> str:
    """`cp` and `mv`: what this script wrote is known under its new name too, also in a directory
    that is copied as a whole."""
    given = call.value("-t", "--target-directory")
    words = positional(call.words, ["-t", "--target-directory", "-m", "--mode", "-o", "-g"])
    *sources, target = [*words, given] if given else words or [""]
    files = call.state.files
    for source in sources:
        whole, name = call.whole(source), source.rstrip("/").rpartition("/")[2]
        for path, text in list(files.items()):
            inner = path[len(whole) :]
            if path.startswith(whole) and inner[:1] in ("", "/"):
                files[call.whole(f"{target}{inner}")] = text
                files[call.whole(f"{target}/{name}{inner}")] = text
    return ""


def _tee(call: Call) -> str:
    text = ANY if call.state.stdin is None else call.state.stdin
    for path in call.args:
        whole = call.whole(path)
        before = call.state.files.get(whole, "") if call.has_letter("a") else ""
        call.state.files[whole] = before + text
    return text


def _sets_scripts(call: Call) -> str:
    """`jq '.scripts.x = "..."'`: of the file that it makes, the scripts are known."""
    found = [match for word in call.args[:1] for match in re.findall(_SCRIPT_SET, word)]
    made = f"{ANY}{READ}" if call.args[1:] else call.state.stdin or ANY
    source = next((mark for mark in (NET, CODED) if mark in made), f"{ANY}{traces(made)}")
    return "".join([source, *(script_entry(a or b, text) for a, b, text in found)])


def script_entry(name: str, quoted: str) -> str:
    """A script as a package.json has it; the text is in quotes already."""
    return f'\n{{"scripts": {{"{name}": {quoted}}}}}\n'


def edit(call: Call) -> None:
    """`sed -i` of a file that this script wrote: simple substitutions and lines that are added."""
    scripts = call.values("-e", "--expression")
    words = [word for word in call.args if word not in scripts]
    scripts, paths = (scripts, words) if scripts else (words[:1], words[1:])
    for whole in map(call.whole, paths):
        text = call.state.files.get(whole)
        if text is not None and all(map(plain, scripts)):
            for script in scripts:
                text = _edited(text, script)
            call.state.files[whole] = text


def _edited(text: str, script: str) -> str:
    """The text after one command; as it was where we do not know that command."""
    lines = re.fullmatch(_ADDS_LINES, script)
    if lines:
        return f"{lines[2]}\n{text}" if lines[1] == "i" else f"{text}\n{lines[2]}\n"
    for match in re.finditer(_SUBSTITUTES, script):
        pattern = "".join(_turned(piece) for piece in re.findall(r"\\.|[^\\]", match[2]))
        if len(re.findall(_REPEATS, pattern)) > 1 or len(match[3]) * len(text) > _MOST_EDITED:
            return text  # it could take too long, or become too much
        new = match[3].replace("\\n", "\n").replace("\\t", "\t")
        new = re.sub(r"\\([^\d])", r"\1", new)
        try:
            text = re.sub(pattern, new.replace("\\", "\\\\"), text, flags=re.MULTILINE)
        except re.error:
            return text
    return text


def _turned(piece: str) -> str:
    """A piece of sed's pattern as Python writes it."""
    if piece in _TURNED:
        return f"\\{piece}"
    return piece[1] if piece[0] == "\\" and piece[1] in _TURNED else piece


def remember(code: str, call: Call) -> None:
    """The texts that code in another language writes into files."""
    for pattern in _WRITES_TEXT:
        for match in re.finditer(pattern, code):
            path, *_, text = [group for group in match.groups() if group is not None]
            known = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
            call.state.files[call.whole(path)] = known


# By command: what it prints, after what it wrote was remembered.
KEEPERS: dict[str, Callable[[Call], str]] = {
    **dict.fromkeys(("cp", "mv", "install", "ln"), _copied),
    **dict.fromkeys(("curl", "wget"), _downloaded),
    **dict.fromkeys(("jq", "gojq", "jaq"), _sets_scripts),
    "tee": _tee,
}
