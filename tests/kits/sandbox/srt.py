"""The fake `srt`: checks its settings as the real one does, and carries them out by namespaces."""

import json
import os
from typing import Any

from kits.sandbox import fake_machine
from kits.sandbox.tools import Words, fail

# What the real one puts into a tree while a command runs, so that nobody can make it.
_MARKS = (".bashrc", ".gitconfig", ".mcp.json", ".vscode", ".claude/commands", ".claude/agents")
_SHAPE = {
    "network": ("allowedDomains", "deniedDomains"),
    "filesystem": ("denyRead", "allowRead", "allowWrite", "denyWrite"),
}


def main(argv: list[str]) -> int:
    """`srt -s SETTINGS -- COMMAND...`, or `srt --version`."""
    if argv == ["--version"]:
        print("0.0.78")
        return 0
    words = Words(argv)
    path = words.flags(valued="-s").get("-s", [""])[0]
    words.one("--", "--")
    command = words.rest(least=1)
    rules = _read(path)
    files = rules["filesystem"]
    tree, temporary = files["allowWrite"][0], os.environ["CLAUDE_CODE_TMPDIR"]
    made = _mark(tree)
    seen = tuple((place, place) for place in files["allowRead"] if os.path.isdir(place))
    world = fake_machine.World(
        tree,
        binds=seen,
        hidden=tuple(sorted(files["denyRead"], key=len)),
        writable=tuple(files["allowWrite"]),
        hosts=tuple(rules["network"]["allowedDomains"]),
    )
    code = fake_machine.run(world, command, os.getcwd(), {**os.environ, "TMPDIR": temporary})
    fake_machine.end(tree)
    for name in made:
        os.unlink(name)
    return code


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            rules: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        fail(1, f"{path}: {error}")
    for part, keys in _SHAPE.items():
        found = rules.pop(part, {})
        if sorted(found) != sorted(keys) or not all(isinstance(v, list) for v in found.values()):
            fail(1, f"{path}: {part} is not as it should be: {found}")
        rules[part] = found
    if set(rules) != set(_SHAPE):
        fail(1, f"{path}: unknown keys: {sorted(rules)}")
    if any(name == "*" for name in rules["network"]["allowedDomains"]):
        fail(1, "'*' is too broad")
    return rules


def _mark(tree: str) -> list[str]:
    made = []
    for name in _MARKS:
        path = os.path.join(tree, name)
        if os.path.isdir(os.path.dirname(path)) and not os.path.lexists(path):
            with open(path, "w", encoding="ascii"):
                made.append(path)
    return made
