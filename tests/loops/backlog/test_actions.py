"""B §Actions: `read`, `write`, `bash`, `git`, `eval`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.kernel.events import ToolStart
from ralph.loops.backlog.actions import KINDS, action_of

COMMANDS = [
    ("git", "git"),
    ("git status", "git"),
    ("git add -A && git commit -m x", "git"),
    ("/usr/bin/git log", "git"),
    ("cd sub && git diff", "git"),
    ("cd 'my files'; git diff", "git"),
    ("GIT_PAGER=cat git log", "git"),
    ("env A=1 B= timeout 30 git fetch", "git"),
    ("/bin/bash -lc 'git status --short'", "git"),
    ('bash -l -c "cd /x && git push"', "git"),
    ("(git status)", "git"),
    ("gitk", "bash"),
    ("git-lfs pull", "bash"),
    ("echo git", "bash"),
    ("make && git status", "bash"),
    ("python -c 'print(1)'", "eval"),
    ("python3.11 -u -c 'print(1)'", "eval"),
    ("python3 -Ic 'print(1)'", "eval"),
    ("python3 - <<'E' print(1) E", "eval"),
    ("python3 <<E print(1) E", "eval"),
    (".venv/bin/python -c 'print(1)'", "eval"),
    ("uv run python -c 'print(1)'", "eval"),
    ("node -e 'console.log(1)'", "eval"),
    ("node --eval 'console.log(1)'", "eval"),
    ("node -p 1+1", "eval"),
    ("npx tsx -e 'let x: number'", "eval"),
    ("bun -e 1", "eval"),
    ("deno eval 'console.log(1)'", "eval"),
    ("perl -ne print x.txt", "eval"),
    ("ruby -e 'puts 1'", "eval"),
    ("php -r 'echo 1;'", "eval"),
    ("/bin/bash -lc \"python3 -c 'print(1)'\"", "eval"),
    ("python main.py", "bash"),
    ("python -m pytest -c setup.cfg", "bash"),
    ("python main.py -c 3", "bash"),
    ("node server.js -e production", "bash"),
    ("node --env-file=.env main.js", "bash"),
    ("deno run -A eval.ts", "bash"),
    ("/bin/bash -lc no-such-command", "bash"),
    ("make test", "bash"),
    ("", "bash"),
]


@pytest.mark.parametrize(("command", "kind"), COMMANDS)
@pytest.mark.parametrize("tool", ["Bash", "shell", "run_shell_command", "bash"])
def test_a_shell_command_is_judged_by_how_it_begins(tool: str, command: str, kind: str) -> None:
    """`git`: "Git operation"; `eval`: "Run TypeScript"; `bash`: "Execute shell command"."""
    assert action_of(ToolStart("1", tool, command)) == kind


TOOLS = [
    ("Read Glob Grep LS WebFetch WebSearch NotebookRead", "read"),  # claude
    ("Write Edit MultiEdit NotebookEdit", "write"),
    ("web_search", "read"),  # codex
    ("patch", "write"),
    ("read_file read_many_files list_directory glob search_file_content grep_search", "read"),
    ("write_file replace", "write"),  # gemini
    ("read list grep glob webfetch", "read"),  # opencode
    ("write edit apply_patch multiedit", "write"),
    ("Read Grep read_web_page web_search", "read"),  # amp
    ("edit_file create_file undo_edit", "write"),
    ("mcp__files__read_file files.read_file", "read"),
    ("mcp__files__edit_file", "write"),
    ("mcp__ide__executeCode code_interpreter", "eval"),
    ("read", "read"),  # our own
    ("write edit", "write"),
    ("git", "git"),
    ("eval", "eval"),
    ("TodoWrite todowrite write_todos todo_write todoread TaskCreate TaskUpdate TaskList", None),
    ("AskUserQuestion question Task task Agent oracle", None),
    ("NoSuchTool mcp__x__y mcp__", None),
    ("", None),
]


@pytest.mark.parametrize(("tools", "kind"), TOOLS)
def test_other_tools_are_known_by_their_names(tools: str, kind: str | None) -> None:
    """`read`: "Read file content"; `write`: "Write/modify file"; the rest is no action."""
    for tool in tools.split() or [""]:
        assert action_of(ToolStart("1", tool, "git status")) == kind, tool


@given(st.text("git cdpyhonse-\"'/=&;<({ ", max_size=200))
def test_any_command_has_a_kind(command: str) -> None:
    assert action_of(ToolStart("1", "Bash", command)) in KINDS
