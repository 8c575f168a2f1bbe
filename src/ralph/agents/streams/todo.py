"""The agent's own task list, as the CLIs' tools write it."""

from ralph.agents.streams.ndjson import as_list, as_text, field
from ralph.kernel.events import Todo, TodoItem, TodoStatus

_STATUSES = {
    "in_progress": TodoStatus.ACTIVE,
    "in-progress": TodoStatus.ACTIVE,
    "completed": TodoStatus.DONE,
}
_TEXTS = ("content", "subject", "description")  # what an item says; the first that is there


def todo_list(value: object) -> Todo:
    """A whole list. What was called off is no longer on it."""
    items = (item for item in as_list(value) if field(item, "status") != "cancelled")
    return Todo(tuple(map(todo_item, items)))


def todo_item(value: object) -> TodoItem:
    """An item of a list."""
    texts = (as_text(field(value, key)) for key in _TEXTS)
    return TodoItem(next(filter(None, texts), ""), todo_status(field(value, "status")))


def todo_status(value: object) -> TodoStatus:
    """A status as the tools spell it; what is not known has not begun."""
    return _STATUSES.get(as_text(value), TodoStatus.PENDING)
