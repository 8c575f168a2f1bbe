"""Reads a suite: a file of TOML, strict, and the folders beside it."""

import datetime as dt
import os
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import structs

from ralph.errors import ConfigError, failing
from ralph.evaluation.schema import SuiteAgent, SuiteFile, SuiteTask
from ralph.files.digest import digest_of
from ralph.files.safe_open import open_regular
from ralph.kernel.value import value
from ralph.settings.durations import in_seconds
from ralph.settings.paths import Json, dotted
from ralph.settings.problems import problems
from ralph.settings.source import MOST_TOLD, decoded

SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "suites")
_LARGEST = 16 << 20  # bytes
_LONGEST_NAME = 60
_MOST_TRIALS = 100_000
# Settings that make a run a trial; the suite itself has them.
OURS = ("guardrails", "proof", "untilGreen", "scm", "pr", "ci", "notify", "maximumIterations")


@value
class Suite:
    """A suite as it was read; relative paths in it are from its `home`."""

    path: str
    digest: str  # of all that decides what a trial is
    file: SuiteFile

    @property
    def home(self) -> str:
        return os.path.dirname(self.path)

    @property
    def name(self) -> str:
        return os.path.splitext(os.path.basename(self.path))[0]

    def beside(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.home, os.path.expanduser(path)))


def find_suite(named: str) -> str:
    """The path of a suite: of a file, else of one that Ralph brings along by its name."""
    shipped = os.path.join(SHIPPED, f"{named}.toml")
    if not os.path.isfile(named) and os.sep not in named and os.path.isfile(shipped):
        return shipped
    return os.path.abspath(named)


def read_suite(
    named: str,
    agents: Sequence[str] = (),
    tasks: Sequence[str] = (),
    **changes: Any,  # noqa: ANN401
) -> Suite:
    """The suite of that path or name. `agents` are names of its agents or commands, `tasks` names;
    none are all. `changes` are keys of it that were given another value. ConfigError with all that
    is wrong with it."""
    path = find_suite(named)
    raw = _bytes(path, named)
    file = _parsed(raw, named)
    if agents:
        known = {agent.name: agent for agent in file.agents}
        chosen = tuple(known.get(each) or _typed(each) for each in agents)
        file = structs.replace(file, agents=chosen)
    if tasks:
        file = structs.replace(file, tasks=tuple(_named(named, file.tasks, tasks)))
    given = {key: changed for key, changed in changes.items() if changed is not None}
    suite = Suite(path, "", structs.replace(file, **given))
    wrong = [*islice(_objections(suite), MOST_TOLD)]
    if wrong:
        lines = "\n".join(f"{named}: {words}" for words in wrong)
        raise ConfigError(lines, f"Fix {named}. What it may hold: ralph eval --help")
    resolved = tuple(_with_command(suite, agent) for agent in suite.file.agents)
    suite = Suite(path, "", structs.replace(suite.file, agents=resolved))
    return Suite(path, digest_of(_parts(suite), size=8), suite.file)


def _typed(command: str) -> SuiteAgent:
    """An agent that was named on the command line: a path is from where that was typed."""
    if os.sep in command and os.path.isfile(command):
        return SuiteAgent(name=os.path.basename(command), command=os.path.abspath(command))
    return SuiteAgent(name=command)


def _named(named: str, known: Sequence[SuiteTask], wanted: Sequence[str]) -> Iterator[SuiteTask]:
    by_name = {task.name: task for task in known}
    for name in wanted:
        if name not in by_name:
            raise ConfigError(f"{named} has no task {name!r}", f"It has: {', '.join(by_name)}")
        yield by_name[name]


def _bytes(path: str, named: str) -> bytes:
    if not os.path.lexists(path):
        raise ConfigError(f"there is no suite {named}", "Name a file, or the one of Ralph's: small")
    remedy = "Name a file of TOML."
    with failing(f"cannot read the suite {named}", remedy), open_regular(path) as file:
        raw = file.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise ConfigError(f"{named}: is larger than 16 MB.", "Is it really a suite?")
    return raw


def _parsed(raw: bytes, named: str) -> SuiteFile:
    """The keys and their values, each of them right by itself."""
    try:
        document = tomllib.loads(decoded(raw, named).replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{named}: {error}", f"Fix {named}: it is not TOML.") from None
    except RecursionError:
        raise ConfigError(f"{named}: is nested too deeply.", f"Fix {named}.") from None
    document = in_seconds(_tidied(document), SuiteFile)
    found = [*islice(problems(document, SuiteFile), MOST_TOLD)]
    if found:
        lines = "\n".join(f"{named}: {dotted(one.path)}: {one.words}" for one in found)
        lines = lines.replace(f"{named}: : ", f"{named}: ")  # of the top level
        raise ConfigError(lines, f"Fix {named}. What it may hold: ralph eval --help")
    return msgspec.convert(document, SuiteFile)


def _tidied(document: Any) -> Any:  # noqa: ANN401
    """The same with moments as text, and commands that are lists as shells have them."""
    if isinstance(document, dict):
        tidied = {key: _tidied(inner) for key, inner in document.items()}
        agents = tidied.get("agents")
        for agent in agents if isinstance(agents, list) else ():
            words = agent.get("command") if isinstance(agent, dict) else None
            if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
                agent["command"] = words[0] if len(words) == 1 else shlex.join(words)
        return tidied
    if isinstance(document, list):
        return [_tidied(inner) for inner in document]
    is_moment = isinstance(document, dt.date | dt.time)
    return str(document) if is_moment else document


# ------------------------------------------------------------------ the whole


def _objections(suite: Suite) -> Iterator[str]:
    """What is wrong with the suite as a whole, as sentences."""
    file = suite.file
    if not file.tasks:
        yield "tasks: there are none; add [[tasks]] with name, prompt and check."
    if not file.agents:
        yield "agents: there are none; add [[agents]] with name and command, or give --agent."
    for what, names in (
        ("tasks", [task.name for task in file.tasks]),
        ("agents", [agent.name for agent in file.agents]),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                yield f"{what}: {count} of them are named {name!r}; give each a name of its own."
            if len(name) > _LONGEST_NAME or not name.isprintable():
                shown = f"{name[:_LONGEST_NAME]!r}"
                yield f"{what}: {shown}: a name is one line of up to {_LONGEST_NAME} characters."
    count = len(file.tasks) * len(file.agents) * file.repeats
    if count > _MOST_TRIALS:
        yield f"repeats: that makes {count:,} trials; at most {_MOST_TRIALS:,} are allowed."
    for number, task in enumerate(file.tasks):
        yield from (f"tasks[{number}].{words}" for words in _of_task(suite, task))
    yield from _of_settings("settings", file.settings)
    for number, agent in enumerate(file.agents):
        yield from _of_settings(f"agents[{number}].settings", agent.settings)


def _of_task(suite: Suite, task: SuiteTask) -> Iterator[str]:
    if task.repo is not None and (task.dir is not None or task.files):
        yield "repo: a task begins with a repository, or with dir and files."
    for key, folder in (("dir", task.dir), ("hidden_dir", task.hidden_dir), ("repo", task.repo)):
        if folder is not None and not os.path.isdir(suite.beside(folder)):
            yield f"{key}: there is no folder {suite.beside(folder)}."
    for key, files in (("files", task.files), ("hidden_files", task.hidden_files)):
        for path in files:
            steps = path.split("/")
            if path.startswith("/") or not {"", ".", ".."}.isdisjoint(steps) or "\0" in path:
                yield f"{key}: {path!r} is not a path within the checkout."
            elif steps[0] in (".git", ".ralph"):
                yield f"{key}: {path!r} belongs to git or to Ralph."


def _of_settings(place: str, settings: Mapping[str, Any]) -> Iterator[str]:
    document: Json = in_seconds(dict(settings))
    for one in problems(document):
        if not one.missing:
            yield f"{place}.{dotted(one.path)}: {one.words}"
    for key in OURS:
        if key in settings:
            yield f"{place}.{key}: an evaluation sets it itself; leave it out."


def _with_command(suite: Suite, agent: SuiteAgent) -> SuiteAgent:
    """The agent with its command; what lies beside the suite is named so that it is found from a
    checkout too."""
    command = agent.command or agent.name
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if os.path.lexists(suite.beside(command)) and os.sep in command:
        words = [command]  # a path with a blank in it
    found = [_located(suite, word, first=not place) for place, word in enumerate(words)]
    if found != words:
        command = found[0] if len(found) == 1 else shlex.join(found)
    return structs.replace(agent, command=command)


def _located(suite: Suite, word: str, *, first: bool) -> str:
    """A program is looked for on PATH unless its word is a path; any other word may be a file."""
    is_path = os.sep in word or not first
    there = suite.beside(word)
    return there if is_path and not os.path.isabs(word) and os.path.isfile(there) else word


def _parts(suite: Suite) -> Iterator[bytes]:
    """All that decides what a trial is: the suite, and what stands in its folders."""
    yield msgspec.json.encode(
        structs.replace(suite.file, parallel=None, keep=False), order="deterministic"
    )
    for task in suite.file.tasks:
        for folder in (task.dir, task.hidden_dir):
            if folder is not None:
                yield from _contents(suite.beside(folder))


def _contents(folder: str) -> Iterator[bytes]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            path = os.path.join(place, name)
            yield os.fsencode(os.path.relpath(path, folder)) + b"\0"
            with failing(f"cannot read {path}", "Is it a file of the suite?"):
                if os.path.islink(path):
                    yield os.fsencode(os.readlink(path))
                else:
                    with open_regular(path) as file:
                        yield file.read()
