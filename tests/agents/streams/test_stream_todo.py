"""The agent's own list, from every tool that keeps one (H §Claude Streaming JSON: TodoWrite)."""

from stream_support import capture, of, parse, parse_values

from ralph.kernel.events import AgentEvent, Todo, TodoItem, TodoStatus, ToolStart

PENDING, ACTIVE, DONE = TodoStatus.PENDING, TodoStatus.ACTIVE, TodoStatus.DONE


def call(name: str, **arguments: object) -> dict[str, object]:
    block = {"type": "tool_use", "id": f"t-{name}", "name": name, "input": arguments}
    return {"type": "assistant", "message": {"content": [block]}}


def answer(name: str, answer: object, *, is_error: bool = False) -> dict[str, object]:
    block = {"type": "tool_result", "tool_use_id": f"t-{name}", "is_error": is_error}
    return {"type": "user", "message": {"content": [block]}, "tool_use_result": answer}


def lists(*lines: object) -> list[AgentEvent]:
    return of(parse_values("claude", *lines), Todo)


CREATED = (
    call("TaskCreate", subject="Write"),
    answer("TaskCreate", {"task": {"id": "1", "subject": "Write"}}),
)


def test_todo_write_is_a_list_beside_its_tool_call() -> None:
    """H: TodoWrite tool calls are extracted as EventTodo with task items."""
    events = parse("claude", capture("claude", "todowrite"))
    where = events.index(of(events, Todo)[0])
    assert isinstance(events[where - 1], ToolStart)
    assert events[where] == Todo(
        (TodoItem("Read the file", DONE), TodoItem("Edit", ACTIVE), TodoItem("Test", PENDING))
    )


def test_tasks_are_followed_by_the_ids_in_their_results() -> None:
    """docs/facts.md §2: TaskCreate/TaskUpdate replace TodoWrite (id only in the tool result)."""
    assert of(parse("claude", capture("claude", "success")), Todo) == [
        Todo((TodoItem("Write the file"),)),
        Todo((TodoItem("Write the file"), TodoItem("Run tests"))),
        Todo((TodoItem("Write the file", ACTIVE), TodoItem("Run tests"))),
        Todo((TodoItem("Write the file", DONE), TodoItem("Run tests"))),
    ]


def test_a_task_can_be_renamed_and_deleted() -> None:
    found = lists(
        *CREATED,
        call("TaskUpdate", taskId="1", subject="Rewrite"),
        answer("TaskUpdate", {"success": True}),
        call("TaskUpdate", taskId="1", status="deleted"),
        answer("TaskUpdate", {"success": True}),
    )
    assert found[1:] == [Todo((TodoItem("Rewrite"),)), Todo(())]


def test_the_list_is_taken_over_when_it_is_shown() -> None:
    tasks = [{"id": "4", "subject": "Old", "status": "completed"}, {"id": 5, "subject": "New"}]
    found = lists(call("TaskList"), answer("TaskList", {"tasks": tasks}))
    assert found == [Todo((TodoItem("Old", DONE), TodoItem("New")))]


def test_what_changes_nothing_is_not_told() -> None:
    found = lists(
        *CREATED,
        call("TaskUpdate", taskId="1", status="pending"),
        answer("TaskUpdate", {"success": True}),
        call("TaskUpdate", taskId="of another session", status="completed"),
        answer("TaskUpdate", {"success": True}),
        call("TaskUpdate", taskId="1", status="completed"),
        answer("TaskUpdate", "no such task", is_error=True),
        call("TaskList"),
        answer("TaskList", "odd"),
        answer("Bash", {"task": {"id": "9"}}),
    )
    assert found == [Todo((TodoItem("Write"),))]


def test_codex_plans() -> None:
    """Codex: a `todo_list` item with items {text, completed}, told when it changes."""

    def plan(line: str, *done: bool) -> dict[str, object]:
        items = [{"text": f"step {i}", "completed": d} for i, d in enumerate(done)]
        return {"type": line, "item": {"id": "i", "type": "todo_list", "items": items}}

    found = parse_values(
        "codex",
        plan("item.started", False, False),
        plan("item.updated", True, False),
        plan("item.completed", True, False),
    )
    assert found == [
        Todo((TodoItem("step 0"), TodoItem("step 1"))),
        Todo((TodoItem("step 0", DONE), TodoItem("step 1"))),
    ]


def test_amp_lists() -> None:
    """Amp calls it `todo_write` and spells "in-progress"."""
    todos = [{"id": "1", "content": "Edit", "status": "in-progress"}, {"content": "Test"}]
    found = parse_values("amp", call("todo_write", todos=todos), call("TodoWrite", todos=todos))
    assert of(found, Todo) == [Todo((TodoItem("Edit", ACTIVE), TodoItem("Test")))]


def test_gemini_lists() -> None:
    """Gemini calls it `write_todos`; what was called off is no longer on the list."""
    todos = [
        {"description": "Edit", "status": "in_progress"},
        {"description": "Drop", "status": "cancelled"},
        {"description": "Test", "status": "of next year"},
    ]
    line = {"type": "tool_use", "tool_name": "write_todos", "parameters": {"todos": todos}}
    found = of(parse_values("gemini", line), Todo)
    assert found == [Todo((TodoItem("Edit", ACTIVE), TodoItem("Test")))]


def test_opencode_lists() -> None:
    """opencode calls it `todowrite` and tells it when the call has ended."""

    def line(session: str) -> dict[str, object]:
        todos = [
            {"content": "Edit", "status": "completed"},
            {"content": "X", "status": "cancelled"},
        ]
        state = {"status": "completed", "input": {"todos": todos}}
        part = {"tool": "todowrite", "callID": "c1", "state": state}
        return {"type": "tool_use", "sessionID": session, "part": part}

    found = of(parse_values("opencode", line("main"), line("of a sub-agent")), Todo)
    assert found == [Todo((TodoItem("Edit", DONE),))]
