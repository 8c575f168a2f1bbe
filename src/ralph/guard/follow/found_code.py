"""Code that this script wrote and that another program finds by its name: tests, settings that are
code, modules that are imported.

Such code calls what it is given, so what nobody can tell passes here; a call or a path that stands
in it is judged as the command that it stands for.
"""

import re
from collections.abc import Iterable

from ralph.guard.follow.code_names import LITERAL, own_names
from ralph.guard.follow.inline_code import DELETES, RUNS, RUNS_ELSEWHERE, arguments
from ralph.guard.rules.files import judge_change
from ralph.guard.rules.rule import Call, Refused
from ralph.guard.rules.secrets.files import judge_reading
from ralph.guard.shell.nodes import Unfollowable
from ralph.guard.shell.text import ANY, FREE, NET, names

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.guard.follow.state import Caller, State

# Programs and modules that run code which they find by its name.
_FINDERS = names(
    "pytest py.test unittest tox nox make gmake just task invoke pip pip3 uv poetry pdm hatch build"
    " npm pnpm yarn bun jest vitest mocha vite webpack rollup eslint node deno rake rspec bundle"
    " go cargo gulp grunt prove phpunit playwright cypress ava pre-commit"
)
_FOUND = names(
    "conftest.py test_*.py *_test.py tests.py setup.py noxfile.py tasks.py *.test.?s *.spec.?s"
    " *.test.?sx *.spec.?sx *.config.?s *.config.[cm]?s *.setup.?s [Gg]*file.?s Rakefile *.rake"
    " *_spec.rb *_test.rb build.rs *.go *.t"
)
_CODE_ENDINGS = (".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".rb", ".pl", ".pm", ".lua")
_OF_DIRECTORY = frozenset({"__init__", "__main__", "index"})
_IMPORTS = r"\b(?:import|from|require\w*|run_path|run_module|load|use)\b[^\n;]*"
_AT_HOME = rf"(?:{DELETES})\s*\(?[^)\n]*(?:expanduser|Path\.home|homedir\()"
_DELETED = rf"(?:{DELETES})\s*\(?\s*{LITERAL}"
_DELETED_PATH = (
    rf"Path\(\s*{LITERAL}\s*\)[^\n;]{{0,80}}\.(?:unlink|rmdir|rmtree|rename|replace)\s*\("
)
_WRITTEN = (
    rf"\bopen\s*\(\s*{LITERAL}\s*,\s*(?:mode\s*=\s*)?['\"][wax]",
    rf"Path\(\s*{LITERAL}\s*\)[^\n;]{{0,80}}\.write_\w+\s*\(",
    rf"(?:writeFile\w*|appendFile\w*|File\.write|os\.WriteFile|fs::write)\s*\(\s*{LITERAL}",
)
_READ = rf"\b(?:open|readFile\w*|File\.read|os\.ReadFile|expanduser)\s*\(\s*{LITERAL}"
_MOST_ARGUMENTS = 400


def judge_finding(call: Call, caller: "Caller") -> None:
    """Refuse a program that would find and run what this script wrote, if that is refused."""
    module = call.value("-m") or ""
    python = call.name.startswith("python")
    name = module if python else call.name
    if name.partition(".")[0] in _FINDERS:
        from fnmatch import fnmatchcase

        named = [(path, path.rpartition("/")[2]) for path in call.state.files]
        found = [path for path, name in named if any(fnmatchcase(name, p) for p in _FOUND)]
        _judge_files(found, call, caller, set())
    if python and module:
        judge_imports(f"import {module}", call, caller)


def judge_imports(code: str, call: Call, caller: "Caller") -> None:
    """Refuse code that loads what this script wrote, if that is refused."""
    _judge_files(_imported(code, call), call, caller, set())


def _imported(code: str, call: Call) -> list[str]:
    """The written files that a code loads: by their names, wherever they lie."""
    found = []
    for path in call.state.files:
        if path.endswith(_CODE_ENDINGS):
            directory, _, name = path.rpartition("/")
            stem = name.rpartition(".")[0]
            stem = directory.rpartition("/")[2] if stem in _OF_DIRECTORY else stem
            if re.search(rf"{_IMPORTS}(?<![\w-]){re.escape(stem)}(?![\w-])", code):
                found.append(path)
    return found


def _judge_files(paths: Iterable[str], call: Call, caller: "Caller", seen: set[str]) -> None:
    for path in paths:
        if path not in seen and path not in call.state.calling:
            seen.add(path)
            text = call.state.files[path]
            inner = Call([call.name], call.state.copy(), call.places)
            inner.state.calling = (*call.state.calling, path)
            with naming(path, text):
                _judge_code(text, inner, caller, python=path.endswith(".py"))
            _judge_files(_imported(text, call), inner, caller, seen)


class naming:  # noqa: N801  used like a function
    """Judges what a written file holds: a refusal names the file, and nothing from the network is
    run."""

    def __init__(self, path: str, text: str) -> None:
        self.name = path.rpartition("/")[2]
        self.remote = NET in text

    def __enter__(self) -> None:
        if self.remote:
            raise Refused("remote-code", f"{self.name} from the network would be run")

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, Refused) and not error.refusal.why.startswith("in "):
            error.refusal.why = f"in {self.name}, which it wrote: {error.refusal.why}"


def _judge_code(code: str, call: Call, caller: "Caller", *, python: bool) -> None:
    code = own_names(code, python=python)
    found = [*re.finditer(RUNS, code), *(() if python else re.finditer(RUNS_ELSEWHERE, code))]
    for match in found:
        _judge_run(code[match.end() : match.end() + _MOST_ARGUMENTS], call, caller)
    if re.search(_AT_HOME, code):
        raise Refused("file-system", "it deletes in the home directory")
    for patterns, verb in (((_DELETED, _DELETED_PATH), "deletes"), (_WRITTEN, "overwrites")):
        for path in (path for pattern in patterns for path in _literals(pattern, code, call)):
            judge_change(path, call.places, call.state.cwd, verb, into=verb != "deletes")
    for path in _literals(_READ, code, call):
        judge_reading(path, call.places, call.state.cwd)


def _literals(pattern: str, code: str, call: Call) -> list[str]:
    """The paths that a pattern finds, those that lead out of the project by their beginning."""
    groups = [group for match in re.finditer(pattern, code) for group in match.groups() if group]
    home = call.places.where.home
    texts = [f"{home}{text[1:]}" if text.startswith("~") else text for text in groups]
    return [text for text in texts if text.startswith(("/", "..")) and "{" not in text]


def _judge_run(after: str, call: Call, caller: "Caller") -> None:
    """Judge a call that runs a command; git in a directory of its own may do what it likes."""
    try:
        argv = [word.replace(ANY, FREE) for word in arguments(after) or []]
    except Refused:
        return  # nobody can tell the command
    if argv[:1] != ["git"] or not re.search(r"\bcwd\b|\bchdir\b", after.partition("\n\n")[0]):
        judge_told(argv, call.state.copy(), caller)


def judge_told(argv: list[str], state: "State", caller: "Caller") -> None:
    """Judge a command that stands in a written file, as far as it can be followed."""
    try:
        caller.again(argv, state)
    except Unfollowable:
        return
    except Refused as refused:
        if refused.refusal.category != "evasion":
            raise
