"""Writes the reference pages of the documentation from the code: `python tools/reference.py`.

Commands come from click, settings from their schema, events and facts from their classes. The
pages are made anew by `make docs` and are not committed.
"""

import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from html import escape
from pathlib import Path
from textwrap import dedent
from types import UnionType
from typing import get_args, get_origin, get_type_hints

import click
import msgspec

from ralph.cli.commands import COMMANDS, SECTIONS, ralph
from ralph.hosts.protocol import HOOKS, module_of
from ralph.kernel.events import AgentEvent
from ralph.kernel.facts import Fact
from ralph.kernel.verdict import Reason
from ralph.settings.problems import _allowed, _groups_in
from ralph.settings.schema import HookSettings, Settings, SettingsGroup

DOCS = Path(__file__).resolve().parent.parent / "docs"
LOOPS = {"H": "prompt", "B": "backlog", "S": "supervise", "R": "stories", "P": "session"}
WHEN = {
    Reason.COMPLETED: "The claim was believed; nothing is left to do.",
    Reason.LIMIT: "Iterations, restarts, time, money or waiting are used up.",
    Reason.CONFIG: (
        "Bad settings or usage, an unreadable prompt, or an agent that cannot start, is not "
        "logged in, is refused its credential, or may write nothing."
    ),
    Reason.BLOCKED: "A person is needed: the agent asked, or said that it is blocked.",
    Reason.STALLED: "`stallAfter` iterations in a row made no progress.",
    Reason.FAILING: "The agent failed `failAfter` times in a row.",
    Reason.BUG: "A bug in Ralph; the message names a report to paste into an issue.",
    Reason.INTERRUPTED: "SIGINT or SIGTERM, or `ralph stop`.",
}
OTHER_CODES = """\
## Other commands

| command | code |
| --- | --- |
| `ralph prd check`, `ralph doctor` | 1 when something is wrong |
| `ralph guard check` | 2 when the command is refused |
| `ralph sandbox run`, `ralph job` | the command's own code; 127 not found, 126 not executable |
| `ralph status`, `logs`, `stop`, `pause`, `resume` | 2 when there is no such run |
| `ralph resume` | 2 when the run is completed, or at a limit that was not raised |
| `ralph notify test` | 1 when a channel failed, 2 when there is none |
| `ralph clean` | 1 when something could not be removed |
| `ralph tasks next` | 0 with nothing to do (`null` with `--json`) |
| `ralph tasks import` | 1 when there is nothing to import, 2 when the list cannot be read |
| `ralph tasks sync` | 1 while something is still untold |
"""


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {
        "index.md": page("Reference", overview()),
        "commands.md": page("Commands", commands()),
        "settings.md": page("Settings", settings()),
        "exit-codes.md": page("Exit codes", exit_codes()),
        "events.md": page("Events", events()),
        "journal.md": page("Journal", facts()),
        "hooks.md": page("Hooks", hooks()),
    }


def page(title: str, lines: Iterable[str]) -> str:
    return "\n".join((f"# {title}", "", *lines)).rstrip() + "\n"


def overview() -> Iterator[str]:
    yield "These pages are generated from the code of this version.\n"
    yield from table(
        ("page", "what it lists"),
        (
            ("[Commands](commands.md)", "every command and flag, as `--help` has them"),
            ("[Settings](settings.md)", "every key of `.ralph/settings.json`"),
            ("[Exit codes](exit-codes.md)", "what a run's exit code means"),
            ("[Events](events.md)", "the lines of `--json`"),
            ("[Journal](journal.md)", "the facts that a run writes down"),
            ("[Hooks](hooks.md)", "what Ralph calls, and what agents' hosts call"),
        ),
    )


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"| {' | '.join('---' for _ in heads)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def code(text: object) -> str:
    return f"`{text}`"


def prose(text: str) -> str:
    """One line of Markdown: nothing in it is taken for HTML or a column, citations are links."""
    words = " ".join(text.split())
    parts = re.split(r"(`[^`]*`)", words)
    shown = "".join(
        part
        if part.startswith("`")
        else escape(part, quote=False).replace("|", "\\|").replace("*", "\\*")
        for part in parts
    )
    shown = re.sub(r"\bADR (\d+)", lambda m: f"[ADR {m[1]}]({adr(int(m[1]))})", shown)
    cited = r"\b([HBSRP]) §[^,;)]*|(?<=\()([HBSRP])(?=\))"
    return re.sub(cited, lambda m: f"[{m[0]}](../loops/{LOOPS[m[1] or m[2]]}.md)", shown)


def adr(number: int) -> str:
    (path,) = (DOCS / "adr").glob(f"{number:04}-*.md")
    return f"../adr/{path.name}"


def commands() -> Iterator[str]:
    yield (
        "`ralph COMMAND --help` prints the same. A duration is a number of seconds, or `90s`, "
        "`30m`, `8h`, `1d`.\n"
    )
    placed = {name for names in SECTIONS.values() for name in names}
    sections = {"Work": tuple(n for n in COMMANDS if n not in placed), **SECTIONS}
    yield from table(
        ("section", "commands"),
        (
            (title, ", ".join(f"[{name}](#ralph-{name})" for name in names))
            for title, names in sections.items()
        ),
    )
    for names in sections.values():
        for name in names:
            found = ralph.get_command(click.Context(ralph), name)
            assert found is not None
            yield from command(f"ralph {name}", found)


def command(path: str, found: click.Command, level: int = 2) -> Iterator[str]:
    """A command, its options and examples; then the commands below it."""
    ctx = click.Context(found, info_name=path, **ralph.context_settings)
    yield f"{'#' * level} {path}\n"
    for paragraph in (found.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield f"```text\n{paragraph.removeprefix(chr(8)).strip(chr(10))}\n```\n"
        else:
            yield f"{prose(paragraph)}\n"
    usage = " ".join(found.collect_usage_pieces(ctx)).replace("COMMAND [ARGS]...", "COMMAND ...")
    yield f"```text\n{path} {usage}\n```\n"
    records = [p.get_help_record(ctx) for p in found.params if isinstance(p, click.Option)]
    if shown := [record for record in records if record is not None]:
        yield from table(
            ("option", "meaning"), ((code(opts), prose(words)) for opts, words in shown)
        )
    for block in (found.epilog or "").split("\b\n"):
        if block.startswith("Examples:"):
            yield f"```sh\n{dedent(block.partition(chr(10))[2]).strip()}\n```\n"
        elif block.strip():
            yield f"{prose(block)}\n"
    if isinstance(found, click.Group):
        for name in found.list_commands(ctx):
            inner = found.get_command(ctx, name)
            if inner is not None and not inner.hidden:
                yield from command(f"{path} {name}", inner, level + 1)


def settings() -> Iterator[str]:
    yield (
        "Ralph reads `.ralph/settings.json`, then `.ralph/settings.local.json` over it: objects "
        "merge, everything else replaces. Flags come last. `null` means the default. Unknown and "
        "duplicate keys are errors that name the file and the key.\n"
    )
    yield (
        "`ralph explain` shows the value of each key and where it came from; `ralph explain "
        "--schema` prints the JSON Schema, for editors.\n"
    )
    yield from group(Settings, "")


def group(found: type[SettingsGroup], place: str) -> Iterator[str]:
    """The keys of a group, then the groups in it."""
    yield f"## {code(place.removesuffix('.')) if place else 'Top level'}\n"
    if place:
        yield f"{prose(inspect.getdoc(found) or '')}\n"
    fields = msgspec.structs.fields(found)
    yield from table(("key", "default", "meaning"), (row(field, place) for field in fields))
    for field in fields:
        for inner, many in _groups_in(field.type):
            yield from group(inner, f"{place}{field.encode_name}{'[]' if many else ''}.")


def row(field: msgspec.structs.FieldInfo, place: str) -> tuple[str, str, str]:
    name = code(f"{place}{field.encode_name}")
    words = f"{prose(described(field.type))}<br><small>{allowed(field.type, name)}</small>"
    return name, default(field), words


def default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    made = field.default
    if made is msgspec.NODEFAULT:
        made = field.default_factory() if callable(field.default_factory) else None
    if isinstance(made, msgspec.Struct):
        return ""
    return "" if made is None else code(json.dumps(msgspec.to_builtins(made), ensure_ascii=False))


def allowed(hint: object, name: str) -> str:
    """What a key may hold, in the words of its error message; a group links to its section."""
    if inner := list(_groups_in(hint)):
        many = inner[0][1]
        anchor = re.sub(r"[^a-z]", "", name.lower())
        return f"[{'A list of objects' if many else 'An object'}](#{anchor})"
    many = any(get_origin(part) is tuple for part in (hint, *parts_of(hint)))
    for part in (hint, *parts_of(hint)):
        try:
            words = prose(_allowed(part))
            return f"A list: {words}" if many else words[:1].upper() + words[1:]
        except (ValueError, TypeError, AttributeError, RecursionError):
            continue
    return ""


def parts_of(hint: object) -> Iterator[object]:
    for part in get_args(hint):
        if part is not type(None) and not isinstance(part, msgspec.Meta):
            yield part
            yield from parts_of(part)


def described(hint: object) -> str:
    metas = (part for part in get_args(hint) if isinstance(part, msgspec.Meta))
    return next((meta.description for meta in metas if meta.description), "")


def exit_codes() -> Iterator[str]:
    yield "Every run ends with one of these. The reason is also in the last line of `--json`.\n"
    yield from table(
        ("code", "reason", "when"),
        ((code(reason.exit_code), reason.value, prose(WHEN[reason])) for reason in Reason),
    )
    yield OTHER_CODES


def events() -> Iterator[str]:
    yield (
        "With `--json` a run prints JSON objects on stdout, one a line, and nothing else. Each has "
        "`type`, `time` (Unix) and `run`; with several workers also `task`. Two kinds of line "
        "stand between the first and the last:\n"
    )
    yield (
        "- a [fact](journal.md) has its own name as `type`: `started`, `began`, `decided`;\n"
        "- what the agent says and does has `type` `event` and its kind in `event`.\n"
    )
    yield (
        "The last line has `type` `stop`, with `reason`, `exit`, `iterations`, `seconds`, "
        "`cost_usd`, `evidence` and `log`, the path of the journal. It comes also when a run never "
        "began; `run` is then `null`.\n"
    )
    yield "## Kinds of `event`\n"
    yield from classes(AgentEvent)


def facts() -> Iterator[str]:
    yield (
        "A run's journal is `journal.jsonl` in its directory: one fact a line, in order, appended "
        "and never changed. Each line holds the hash of the one before, so an edit is noticed. "
        "State is what follows from the facts; `ralph resume` folds them and goes on "
        "([the engine](../explanation/engine.md)).\n"
    )
    yield "`ralph logs --raw` prints the lines; `ralph logs --json` prints them as `--json` did.\n"
    yield from classes(Fact)


def classes(union: UnionType) -> Iterator[str]:
    """A section for each class of the union, then one for each type that their fields have."""
    shown = list(get_args(union))
    for found in shown:
        yield from described_class(found, snake(found.__name__))
    inner = [kind for found in shown for kind in types_in(found)]
    if inner:
        yield "## Types of fields\n"
    for kind in inner:  # grows while it is read
        inner += [new for new in types_in(kind) if new not in inner]
    for kind in dict.fromkeys(inner):
        yield from described_class(kind, kind.__name__)


def described_class(found: type, name: str) -> Iterator[str]:
    """A class: its docstring, and its fields or values with their comments."""
    yield f"### `{name}`\n"
    yield f"{prose(inspect.getdoc(found) or '')}\n"
    if issubclass(found, StrEnum):
        yield f"One of {', '.join(code(str(value)) for value in found)}.\n"
    elif rows := list(fields_of(found)):
        yield from table(("field", "type", "meaning"), rows)


def types_in(found: type) -> Iterator[type]:
    """The classes of ours that a class's fields hold."""
    hints = {} if issubclass(found, StrEnum) else get_type_hints(found)
    for hint in hints.values():
        for part in (hint, *parts_of(hint)):
            if isinstance(part, type) and part.__module__.startswith("ralph."):
                yield part


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def fields_of(found: type) -> Iterator[tuple[str, str, str]]:
    for line in inspect.getsource(found).splitlines():
        if line.strip().startswith(("def ", "@property")):
            return
        match = re.fullmatch(r"    (\w+): ([^=#]+?)(?: = .*?)?(?:  # (.*))?", line)
        if match:
            yield code(match[1]), code(match[2]), prose(match[3] or "")


def hooks() -> Iterator[str]:
    yield "## Commands of yours\n"
    yield (
        "`ralph tasks run` runs these commands of the [settings](settings.md) and gives them JSON "
        "on standard input: `hook`, `task`, and what applies of `iteration`, `action`, `result`, "
        "`success` and `anomaly`. A hook that fails ends nothing.\n"
    )
    yield from table(
        ("key", "when"),
        (
            (code(f"hooks.{f.encode_name}"), prose(described(f.type)))
            for f in msgspec.structs.fields(HookSettings)
        ),
    )
    yield "## Programs for an agent's host\n"
    yield (
        "`ralph hook NAME` reads the host's event as JSON on standard input and answers in the "
        "host's way. [The plugin](../plugin.md) and `ralph plugin install` set them up. Letting "
        "go is no output and exit code 0; refusing a command is exit code 2 with the reason on "
        "stderr.\n"
    )
    yield from table(("hook", "what it does"), ((code(n), prose(w)) for n, w in HOOKS.items()))
    for name in HOOKS:
        about = inspect.getdoc(__import__(module_of(name), fromlist=["_"])) or ""
        yield f"### `{name}`\n"
        yield f"{prose(about.partition(': ')[2][:1].upper() + about.partition(': ')[2][1:])}\n"


def write(folder: Path) -> None:
    """Write the pages whose text has changed, so that a server of the site does not build twice."""
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if sys.argv[1:] else DOCS / "reference")
