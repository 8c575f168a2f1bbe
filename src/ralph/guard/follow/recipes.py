"""Recipes and scripts that this script wrote for `make`, `just`, `npm` and their like: what they
would run is judged as if it stood in the command.

Only the targets that are asked for count, with what they need. What nobody can tell in a makefile,
such as a function's value, is taken for a path in the project.
"""

import re

from ralph.guard.follow.code import judge_finding, judge_told, naming
from ralph.guard.follow.output import script_entry
from ralph.guard.follow.state import State
from ralph.guard.rules.rule import Call, positional
from ralph.guard.shell.text import ANY, FREE, names
from ralph.guard.shell.words import checked_length

_MAKE_VALUED = names("-C --directory -f --file --makefile -I -o -W -j -l")
_JUST_VALUED = names("-f --justfile -d --working-directory --set --shell")
_SET = r"(?:(?:export|override)\s+)*([\w.-]+)\s*(?::{0,3}|\?|\+)=\s*(.*)"
_HEAD = r"@?([^\s#:=][^:=#]*)::?(?![=:])([^;]*)(?:;(.*))?"
_REFERENCE = r"\$(?:\$|\(((?:[^()]|\([^()]*\))*)\)|\{([^{}]*)\}|(.))|\{\{\s*([^{}]*?)\s*\}\}"
_DEEPEST, _MOST_VALUES = 8, 5000
_PAIR = r"""\s*,?\s*"((?:[^"\\]|\\.)*)"\s*:\s*("(?:[^"\\]|\\.)*")"""
# What npm and its like run by themselves when they install.
_BY_INSTALL = "preinstall install postinstall prepublish preprepare prepare postprepare"
_INSTALLS = names("install i ci add clean-install install-test it rebuild")
_ALONE = {"t": "test", "tst": "test", "test": "test", "start": "start", "stop": "stop"}


def judge_written(call: Call) -> None:
    """Refuse a command that would run what this script wrote, if that is refused."""
    if call.name == "npm":
        _remember_scripts(call)
    if not call.state.files:
        return
    if call.name in ("make", "gmake", "just"):
        _by_make(call)
    elif call.name in ("npm", "pnpm", "yarn", "bun"):
        _by_npm(call)
    judge_finding(call)


def _by_make(call: Call) -> None:
    """`make` and `just`: the recipes of the targets that are asked for."""
    if call.name == "just":
        given = call.values("-f", "--justfile") or ["justfile", "Justfile", ".justfile"]
        targets = positional(call.words, _JUST_VALUED)[:1]
        state = call.there("-d", "--working-directory")
    else:
        given = call.values("-f", "--file", "--makefile") or ["GNUmakefile", "makefile", "Makefile"]
        targets = positional(call.words, _MAKE_VALUED)
        state = call.there("-C", "--directory")
    for name in given:
        path = state.whole(name)
        text = state.files.get(path)
        if text is not None:
            with naming(path, text):
                makefile = Makefile(text.replace(ANY, FREE), state, call)
                wanted = [target for target in targets if "=" not in target]
                _run(state, makefile.commands(wanted), f"{path} {wanted}")


def _run(state: State, lines: list[str], what: str) -> None:
    """Judge shell commands, once: a recipe may call make again."""
    if what not in state.calling:
        state.stdin, state.params, state.calling = None, [], (*state.calling, what)
        for line in lines:
            judge_told(["sh", "-c", line], state)


class Makefile:
    """Targets with what they need and run; also those of `just`, whose syntax is much the same."""

    def __init__(self, text: str, state: State, call: Call) -> None:
        self.values = {"HOME": call.where.home, "CURDIR": state.cwd, "MAKE": "make"}
        self.rules: dict[str, tuple[list[str], list[str]]] = {}  # by target: needs, recipe
        self.left = _MOST_VALUES
        self.shells: list[str] = []  # what is run to know a value
        # What it includes counts, where this script wrote that too.
        for name in re.findall(r"(?m)^[-s]?(?:include|import)\s+['\"]?([^\s'\"]+)", text):
            text += state.files.get(state.whole(name), "").replace(ANY, FREE)
        self._read(text)
        pairs = [word.partition("=") for word in call.words if word[:1] != "-" and "=" in word]
        self.values |= {name: value for name, _, value in pairs}

    def _read(self, text: str) -> None:
        recipes: list[list[str]] = []
        for line in text.replace("\\\n", " ").splitlines():
            if line[:1] in ("\t", " ") and line.strip():
                for recipe in recipes:
                    recipe.append(line.strip())
            elif found := re.fullmatch(_SET, line):
                value = found[2].partition(" #")[0].strip().strip("'\"")
                self.values[found[1]] = value
            elif found := re.fullmatch(_HEAD, line):
                recipes = []
                for target in self.known(found[1]).split():
                    needs, recipe = self.rules.setdefault(target, ([], []))
                    needs += self.known(found[2]).split()
                    recipe += [found[3]] if found[3] else []
                    recipes.append(recipe)
            elif "$(shell" in line:
                self.known(line)

    def known(self, text: str, depth: int = 0) -> str:
        """The text with its variables' values; what nobody can tell is a path in the project."""
        self.left -= 1
        if depth > _DEEPEST or self.left < 0:
            return FREE

        def value(match: "re.Match[str]") -> str:
            if match[0] == "$$":
                return "$"
            name = next(group for group in match.groups() if group is not None).strip()
            if name.startswith("shell "):
                self.shells.append(self.known(name[6:], depth + 1))
            return self.known(self.values[name], depth + 1) if name in self.values else FREE

        return checked_length(re.sub(_REFERENCE, value, text))

    def commands(self, targets: list[str]) -> list[str]:
        """The commands that are run for these targets, or for the first one."""
        first = [name for name in self.rules if name[:1] != "." and "%" not in name][:1]
        wanted = [*(targets or first), *(name for name in self.rules if set(name) & {"%", FREE})]
        lines: list[str] = []
        for name in wanted:  # it grows on the way
            needs, recipe = self.rules.get(name, ([], []))
            lines += [self.known(line).lstrip("@-+ ") for line in recipe]
            wanted += [need for need in needs if need not in wanted]
        for value in self.values.values():
            self.known(value)
        return [line for line in (*lines, *dict.fromkeys(self.shells)) if line]


def _remember_scripts(call: Call) -> None:
    """`npm pkg set scripts.x=...`, `npm set-script x ...`"""
    pairs = []
    if call.subs[:2] == ["pkg", "set"]:
        pairs = [word.removeprefix("scripts.").partition("=")[::2] for word in call.subs[2:]]
    elif call.subs[:1] == ["set-script"]:
        pairs = [("".join(call.subs[1:2]), "".join(call.subs[2:3]))]
    path = call.whole("package.json")
    for name, text in pairs:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        before = call.state.files.get(path, "")
        call.state.files[path] = before + script_entry(name, f'"{quoted}"')


def _by_npm(call: Call) -> None:
    state = call.there("--prefix", "--dir", "--cwd", "-C")
    path = state.whole("package.json")
    text = state.files.get(path)
    wanted = _scripts_run(call)
    if text is not None and wanted:
        with naming(path, text):
            scripts = _scripts(text.replace(ANY, FREE))
            run = [script for name, script in scripts if name in wanted]
            _run(state, run, f"{path} {wanted}")


def _scripts_run(call: Call) -> list[str]:
    """The names of the scripts that are run."""
    first = "".join(call.subs[:1])
    if first in _INSTALLS or (not first and call.name in ("yarn", "pnpm")):
        return _BY_INSTALL.split()
    if first in ("run", "run-script", "rum", "urn"):
        name = "".join(call.subs[1:2])
    else:
        name = _ALONE.get(first, "" if call.name == "npm" else first)
    return [f"pre{name}", name, f"post{name}"] if name else []


def _scripts(text: str) -> list[tuple[str, str]]:
    found = []
    for start in re.finditer(r'"scripts"\s*:\s*\{', text):
        place = start.end()
        while pair := re.compile(_PAIR).match(text, place):
            script = pair[2][1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
            found.append((pair[1], script))
            place = pair.end()
    return found
