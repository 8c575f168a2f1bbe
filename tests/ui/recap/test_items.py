"""What an agent said and did, out of its events."""

from ralph.kernel.events import (
    AgentEvent,
    Failure,
    Progress,
    Question,
    RateLimited,
    Result,
    Retry,
    Speaker,
    Text,
    Thinking,
    Todo,
    TodoItem,
    TodoStatus,
    ToolEnd,
    ToolStart,
    Unknown,
    Used,
)
from ralph.ui.recap.items import Items
from ralph.ui.recap.values import Item, ItemKind


def taken(*events: AgentEvent) -> Items:
    found = Items()
    found.add(events)
    return found


def test_each_event_has_its_place() -> None:
    todo = Todo((TodoItem("read", TodoStatus.DONE), TodoItem("write")))
    items, left_out = taken(
        *(Progress("hook"), Text("the prompt", Speaker.PROMPT), Thinking("hm"), Text("I look.")),
        *(ToolStart("1", "Bash", "ls"), Text("by another", Speaker.SUBAGENT), Used()),
        *(ToolEnd("1", "a\nb"), todo, Question("tabs?"), RateLimited("soon"), Retry(2, why="503")),
        *(Unknown("{"), Result("I look."), Result(failure=Failure("over"))),
    ).items()
    assert left_out == 0
    assert items == (
        Item(ItemKind.THINKING, "hm"),
        Item(ItemKind.TEXT, "I look."),
        Item(ItemKind.TOOL, "ls", "Bash", "a\nb"),
        Item(ItemKind.OTHER, "by another", "subagent"),
        Item(ItemKind.TODO, "[x] read\n[ ] write"),
        Item(ItemKind.QUESTION, "tabs?"),
        Item(ItemKind.TROUBLE, "Rate limited: soon"),
        Item(ItemKind.TROUBLE, "Retry 2: 503"),
        Item(ItemKind.UNREAD, "{"),
        Item(ItemKind.TROUBLE, "Failed: over"),
    )


def test_tools_are_counted_though_they_are_left_out() -> None:
    calls = [
        event
        for number in range(1000)
        for event in (
            ToolStart(str(number), "Read" if number % 4 else "Bash", f"call {number}"),
            ToolEnd(str(number), "x" * 10_000, is_error=number == 500),
        )
    ]
    found = taken(*calls, ToolEnd("unknown", "nobody began it"))
    items, left_out = found.items()
    assert (len(items), left_out) == (400, 600)
    assert [items[n].text for n in (0, 199, 200, 399)] == [
        *("call 0", "call 199", "call 800", "call 999")
    ]
    assert found.tools == (("Read", 750, 0), ("Bash", 250, 1))
    assert sum(len(item.output) for item in items) < 150_000


def test_an_endless_line_keeps_its_ends() -> None:
    (item,), _ = taken(Text("begin " + "x" * 10_000_000 + " end")).items()
    assert (item.text[:6], item.text[-4:]) == ("begin ", " end")
    assert "characters are left out here" in item.text
    assert len(item.text) < 5_000
