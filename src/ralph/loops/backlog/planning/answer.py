"""Reads the tasks of an agent's answer: one JSON object a line between `<tasks>` and `</tasks>`.

The agent may name a task, what completes it and what it waits for. What only the host says (status,
evidence, source, times) it may not; what cannot be used is left out and named, never guessed. How
agents like to write JSON (fences, comments, a comma too many, one list) is no obstacle.
"""

import json
import math
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ralph.kernel.tasks import completion
from ralph.kernel.tasks.completion import Completion, Kind
from ralph.kernel.tasks.task import Backlog, Status, Task, cycle
from ralph.kernel.value import replace, value
from ralph.loops.backlog.planning.proposal import Proposal, Record, titles
from ralph.loops.backlog.planning.proposal import same as same_title
from ralph.loops.backlog.store.lines import usable
from ralph.loops.backlog.store.task_file import next_id
from ralph.text.plain import clean
from ralph.text.redact import redact
from ralph.text.words import listed

# Tags on lines of their own are meant, also where a task's text speaks of such tags.
_OWN_LINES = re.compile(
    r"^[ \t]*<tasks>[ \t]*$(?P<held>(?:(?!^[ \t]*<tasks>[ \t]*$).)*?)^[ \t]*</tasks>[ \t]*$",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_ANYWHERE = re.compile(r"<tasks>(?P<held>(?:(?!<tasks>).)*?)</tasks>", re.IGNORECASE | re.DOTALL)
_BULLET = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(?=\{)")
_NOTHING = re.compile(r"[][\s,]*|(?:```|//|#|<!--).*")  # a line that means no task
_FENCE = re.compile(r"\s*```")
_STRING = r'("(?:[^"\\]|\\.)*")'
_COMMENT = re.compile(rf"{_STRING}|(?://|\#)[^\n]*", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[\]}}])", re.DOTALL)
_TALLEST = 200  # lines of one object
_MOST = 100  # tasks
_LONGEST = {"title": 500, "type": 60, "tags": 60, "id": 40}  # characters
_SHOWN = 60
_ESTIMATE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?[smhd]?")
_LIMITS = ("maxIterations", "maxTime", "maxCost")
_RULE = ("type", "command", "grep", "path", "script", "timeout")
_WAITS = ("blockedBy", "blocked_by", "dependsOn", "depends_on", "dependencies")
_OURS = ("id", "title", "status", "completion", "parent", *_WAITS)  # read one by one
_UNDONE = (Status.PENDING, "todo", "open", "not_started")  # words that claim nothing
_ONLY_A_WORD = "so only the agent's word completes it"
Objection = Callable[[str], str]  # to a command; "" for none


class _UnusableError(Exception):
    """Something that cannot be used, in words."""


@value
class _Draft:
    """A task as the agent wrote it, as far as it can be used."""

    line: int
    key: str  # its name among the others; "" if it has none
    fields: Mapping[str, Any]
    waits: tuple[str, ...] = ()
    parent: str = ""
    notes: tuple[str, ...] = ()


def read(said: str, known: Backlog, objection: Objection = lambda _: "") -> Proposal:
    """The tasks that an agent proposes beside those that are known. The host runs no command to
    which there is an `objection`."""
    text = redact(said)
    held = _list_in(text)
    if held is None:
        return Proposal(problem=_no_list(text))
    drafts, refused = _drafts(held, objection)
    drafts, repeated = _new(drafts, known)
    proposal = _numbered(drafts, known)
    proposal = replace(proposal, refused=(*refused, *repeated))
    if not drafts and not proposal.refused:
        return replace(proposal, problem="<tasks> is empty")
    return proposal


# ------------------------------------------------------------------ lines


def _list_in(text: str) -> str | None:
    """What stands in the last list that holds something; None without one."""
    for tags in (_OWN_LINES, _ANYWHERE):
        found = [match["held"] for match in tags.finditer(text)]
        if found:
            return next((held for held in reversed(found) if held.strip()), "")
    return None


def _no_list(text: str) -> str:
    folded = text.casefold()
    if "</tasks>" in folded:
        return "the answer has no <tasks> before its </tasks>, or is longer than 64 KB"
    return "the answer has no </tasks>" if "<tasks>" in folded else "the answer has no <tasks>"


def _drafts(held: str, objection: Objection) -> tuple[list[_Draft], list[str]]:
    """The tasks, and the lines that are none."""
    drafts: list[_Draft] = []
    refused = []
    for line, found in _objects(held):
        try:
            if isinstance(found, _UnusableError):
                raise found
            if len(drafts) == _MOST:
                raise _UnusableError(f"it would be the {_MOST + 1}st task: that is too many")
            drafts.append(_draft(line, found, objection))
        except _UnusableError as error:
            refused.append(f"line {line}{_named(found)}: {error}")
    return drafts, refused


def _named(found: object) -> str:
    """` (Write it up)`: how people know the line again."""
    title = found.get("title") if isinstance(found, dict) else None
    words = " ".join(clean(title).split())[:_SHOWN] if isinstance(title, str) else ""
    return f" ({words})" if words else ""


def _objects(held: str) -> Iterator[tuple[int, Any]]:
    """What stands in each line, by its number; an object may take several lines, or share one. One
    list of all tasks is read too: agents like to write that."""
    lines = held.strip("\n").split("\n")
    all_of_them = _listed("\n".join("" if _FENCE.match(line) else line for line in lines))
    if all_of_them is not None:
        yield from enumerate(all_of_them, 1)
        return
    number = 0
    while number < len(lines):
        begin, text = number + 1, _BULLET.sub("", lines[number].strip(), count=1)
        number += 1
        if _NOTHING.fullmatch(text):
            continue
        try:
            found, more = _first((text, *lines[number : number + _TALLEST]))
        except ValueError as error:
            yield begin, _UnusableError(str(error))
            continue
        number += more
        for one in found:
            yield begin, one


def _listed(text: str) -> list[Any] | None:
    """The tasks of a text that is one list of them, or an object around one."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        (found, *others), end = _parsed(text)
    except ValueError:
        return None
    if others or text[end:].strip():
        return None
    if isinstance(found, dict) and "title" not in found:
        found = found.get("tasks")
    return found if isinstance(found, list) else None


def _first(lines: Sequence[str]) -> tuple[list[Any], int]:
    """The values that these lines begin with, and how many lines they take beside the first."""
    text = lines[0]
    try:
        found, end = _parsed(text)
    except ValueError as error:
        text = "\n".join(lines)
        try:
            found, end = _parsed(text)
        except ValueError:
            raise error from None
    return found, text.count("\n", 0, end)


class _OddNumberError(ValueError):
    """NaN and the like, which are no JSON."""


def _odd(name: str) -> float:
    raise _OddNumberError(f"no JSON ({name} is no number)")


_DECODER = json.JSONDecoder(parse_constant=_odd, strict=False)


def _parsed(text: str) -> tuple[list[Any], int]:
    """The values up to the end of the line in which the first ends, and where that is. Comments and
    commas before a bracket are passed over, as their writers meant it."""
    meant = _COMMENT.sub(lambda found: found[1] or " " * len(found[0]), text)
    meant = _LAST_COMMA.sub(lambda found: found[1] or " ", meant)
    values, at = list[Any](), len(meant) - len(meant.lstrip())
    while not values or meant.startswith("{", at):
        try:
            found, at = _DECODER.raw_decode(meant, at)
        except json.JSONDecodeError as error:
            raise ValueError(f"no JSON ({error.msg})") from None
        except RecursionError:
            raise ValueError("no JSON (it is nested too deeply)") from None
        values.append(found)
        while meant.startswith((" ", "\t", "\r", ","), at):
            at += 1
    if at < len(meant) and meant[at] != "\n":
        raise ValueError("no JSON (Extra data)")
    return values, at


# ------------------------------------------------------------------ fields


def _draft(line: int, data: object, objection: Objection) -> _Draft:
    """One task; `_UnusableError` says why it is none."""
    if not isinstance(data, dict):
        raise _UnusableError("no JSON object")
    notes: list[str] = []
    fields: dict[str, Any] = {"title": _title(data)}
    for name, understand in _FIELDS.items():
        if data.get(name) not in (None, "", []):
            try:
                fields[name] = understand(data[name])
            except _UnusableError as error:
                notes.append(f"its {name} is left out: it is {error}")
            except ValueError as error:
                notes.append(f"its {name} is left out: {error}")
    rule = _rule(data.get("completion"), objection, notes)
    fields |= {"completion": rule} if rule else {}
    others = [name for name in data if name not in (*_OURS, *_FIELDS)]
    if others:
        notes.append(f"left out, since it is no part of a plan: {listed(_plain(others))}")
    waits, parent = _names(data, notes), _key(data.get("parent"))
    return _Draft(line, _key(data.get("id")), fields, waits, parent, tuple(notes))


def _title(data: Mapping[str, Any]) -> str:
    """The title; without a proper one it is no task, nor if it claims to be more than pending."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _UnusableError("it is not UTF-8 text") from None
    except RecursionError:
        raise _UnusableError("it is nested too deeply") from None
    status = data.get("status", Status.PENDING)
    if status is not None and str(status).casefold() not in _UNDONE:
        raise _UnusableError(f"its status is {_shown(status)}: only the host says that")
    try:
        title = "" if data.get("title") is None else _one_line(data["title"], "title")
    except _UnusableError as error:
        raise _UnusableError(f"its title is {error}") from None
    if not title:
        raise _UnusableError("it has no title")
    return title


def _one_line(data: object, what: str) -> str:
    if not isinstance(data, str):
        raise _UnusableError("no text")
    text = " ".join(clean(data).split())
    if len(text) > _LONGEST[what]:
        raise _UnusableError(f"longer than {_LONGEST[what]} characters")
    return text


def _description(data: object) -> str:
    if not isinstance(data, str):
        raise _UnusableError("no text")
    return clean(data).strip()


def _priority(data: object) -> int:
    if type(data) is not int or abs(data) > 10**9:
        raise _UnusableError("no whole number")
    return data


def _tags(data: object) -> list[str]:
    found = [data] if isinstance(data, str) else data
    if not isinstance(found, list):
        raise _UnusableError("no list of texts")
    return list(dict.fromkeys(filter(None, (_one_line(tag, "tags") for tag in found))))


def _estimate(data: object) -> float | str:
    if isinstance(data, str) and _ESTIMATE.fullmatch(data):
        return data
    if type(data) in (int, float) and math.isfinite(data) and data > 0:  # type: ignore[arg-type,operator]
        return data  # type: ignore[return-value]
    raise _UnusableError("neither iterations such as 3 nor a time such as 2h")


def _limits(data: object) -> dict[str, Any]:
    completion.parse_limits(data)
    assert isinstance(data, dict), "else it raises"
    return {name: data[name] for name in _LIMITS if data.get(name) is not None}


_FIELDS: Mapping[str, Callable[[object], Any]] = {
    "description": _description,
    "type": lambda data: _one_line(data, "type"),
    "priority": _priority,
    "tags": _tags,
    "estimate": _estimate,
    "limits": _limits,
}


def _rule(data: object, objection: Objection, notes: list[str]) -> dict[str, Any]:
    """What completes the task; nothing where it says nothing that can be used."""
    try:
        said = completion.spelled(data) if isinstance(data, str) else data
        rule = completion.parse(said, "")
        if said is None:
            return {}
        assert isinstance(said, dict), "else it raises"
        _refuse_rule(rule, objection)
    except ValueError as error:
        notes.append(f"its completion cannot be used, {_ONLY_A_WORD}: {error}")
        return {}
    return {name: said[name] for name in _RULE if said.get(name) is not None}


def _refuse_rule(rule: Completion, objection: Objection) -> None:
    """ValueError for what would prove nothing, or what nobody should run."""
    texts = (rule.command, rule.grep, rule.path, rule.script)
    if any(clean(text) != text for text in texts):
        raise ValueError("it holds control characters")
    if rule.kind is Kind.TEST_PASSING and not (rule.command or rule.grep):
        raise ValueError("it names no command")
    path = posixpath.normpath(rule.path or rule.script or "in")
    if path.startswith("/") or path.partition("/")[0] in ("..", "."):
        raise ValueError(f"{rule.path or rule.script} is not in the project")
    if rule.command and (why := objection(rule.command)):
        raise ValueError(f"`{rule.command}` is refused by the guard: {why}")


def _names(data: Mapping[str, Any], notes: list[str]) -> tuple[str, ...]:
    """The tasks that it waits for, however the agent calls that."""
    held = [data[name] for name in _WAITS if data.get(name) is not None]
    found = [_key(one) for named in held for one in (named if isinstance(named, list) else [named])]
    if not all(found):
        notes.append("a part of its blockedBy is left out: it names no task")
    return tuple(dict.fromkeys(filter(None, found)))


def _key(data: object) -> str:
    """A name as the agent uses it; a number is one too."""
    if type(data) is int and abs(data) < 10**9:
        return str(data)
    return data.strip() if isinstance(data, str) else ""


def _plain(names: Sequence[str]) -> list[str]:
    return [" ".join(clean(name).split())[:_SHOWN] for name in names]


def _shown(data: object) -> str:
    text = json.dumps(data, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


# ------------------------------------------------------------------ all together


def _new(drafts: Sequence[_Draft], known: Backlog) -> tuple[list[_Draft], list[str]]:
    """Tasks that nobody has yet, and those that repeat others."""
    there = titles((task.id, task.title) for task in known.tasks)
    new, refused = list[_Draft](), []
    lines: dict[str, int] = {}
    for draft in drafts:
        title = draft.fields["title"]
        same, where = there.get(same_title(title)), f"line {draft.line} ({title[:_SHOWN]})"
        if same is not None:
            refused.append(f"{where}: it is there already: {same}")
        elif same_title(title) in lines:
            refused.append(f"{where}: it repeats line {lines[same_title(title)]}")
        else:
            lines[same_title(title)] = draft.line
            new.append(draft)
    return new, refused


def _numbered(drafts: Sequence[_Draft], known: Backlog) -> Proposal:
    """The tasks with ids of their own, which wait for what is there, and never in a circle."""
    taken = frozenset((*known.known, *(task.id for task in known.tasks)))
    notes: list[tuple[str, str]] = []
    ids = _ids(drafts, taken, notes)
    own: dict[str, str] = {}
    for draft, task_id in zip(drafts, ids, strict=True):
        if draft.key:
            own.setdefault(draft.key, task_id)
    there = {task.id for task in known.tasks}

    def found(name: str) -> str:
        return own.get(name) or (name if name in there else "")

    tasks = []
    for draft, task_id in zip(drafts, ids, strict=True):
        notes += [(task_id, words) for words in draft.notes]
        waits = [found(name) for name in draft.waits if found(name) != task_id]
        for name in draft.waits:
            if not found(name):
                notes.append((task_id, f"it does not wait for {name[:_SHOWN]}, which is no task"))
        parent = found(draft.parent)
        if draft.parent and parent in ("", task_id):
            notes.append((task_id, f"its parent {draft.parent[:_SHOWN]} is left out: no such task"))
            parent = ""
        placed = {"blockedBy": list(dict.fromkeys(filter(None, waits)))}
        more = {name: held for name, held in {**placed, "parent": parent}.items() if held}
        tasks.append({"id": task_id, **draft.fields, **more})
    return Proposal(_without_circles(tasks, known, notes), notes=tuple(notes))


def _ids(
    drafts: Sequence[_Draft], taken: frozenset[str], notes: list[tuple[str, str]]
) -> list[str]:
    """An id for each: its own if it can be, else the next number."""
    own: dict[str, int] = {}
    for draft in drafts:
        key = draft.key
        if usable(key) and " " not in key and len(key) <= _LONGEST["id"] and key not in taken:
            own.setdefault(key, draft.line)
    used, ids = {*taken, *own}, []
    for draft in drafts:
        if own.get(draft.key) == draft.line:
            ids.append(draft.key)
            continue
        number = next_id(used)
        while number in used:
            number = next_id((number,))
        used.add(number)
        ids.append(number)
        if draft.key in taken or draft.key in own:
            notes.append((number, f"the id {draft.key} is used already"))
    return ids


def _without_circles(
    tasks: Sequence[Record], known: Backlog, notes: list[tuple[str, str]]
) -> tuple[Record, ...]:
    """Tasks of which none waits for itself: the first of a circle does not wait."""
    waits = {record["id"]: list(record.get("blockedBy", ())) for record in tasks}
    order = list(waits)
    while True:
        mine = [Task(name, blocked_by=tuple(names)) for name, names in waits.items()]
        circle = cycle((*mine, *known.tasks))
        if waits.keys().isdisjoint(circle):  # those that are there may wait for each other
            circle = cycle(mine)
        if not circle:
            break
        first = next(name for name in order if name in circle)
        blocker = circle[(circle.index(first) + 1) % len(circle)]
        waits[first].remove(blocker)
        notes.append((first, f"it does not wait for {blocker}: they would wait for each other"))
    return tuple(
        {**record, "blockedBy": waits[record["id"]]} if waits[record["id"]] else _free(record)
        for record in tasks
    )


def _free(record: Record) -> Record:
    """The task, which waits for nobody."""
    return {name: held for name, held in record.items() if name != "blockedBy"}
