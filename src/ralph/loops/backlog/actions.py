"""Maps tool calls to B's five actions: read, write, bash, git and eval (B §Actions)."""

import re

from ralph.kernel.events import ToolStart

KINDS = ("read", "write", "bash", "git", "eval")

# Tools of claude, codex, amp, gemini and opencode, of our own agent and of the usual servers, in
# lower case.
_READ = frozenset(
    {"read", "glob", "grep", "ls", "list", "notebookread", "webfetch", "websearch", "codesearch"}
    | {"read_file", "read_many_files", "list_directory", "search_file_content", "grep_search"}
    | {"google_web_search", "web_fetch", "web_search", "read_web_page", "view_image", "look_at"}
    | {"read_text_file", "read_multiple_files", "search_files", "get_file_info", "directory_tree"}
)
_WRITE = frozenset(
    {"write", "edit", "multiedit", "notebookedit", "patch", "apply_patch", "write_file", "replace"}
    | {"edit_file", "create_file", "undo_edit", "format_file", "create_directory", "move_file"}
)
_SHELL = frozenset({"bash", "shell", "run_shell_command", "local_shell", "exec_command"})
_EVAL = frozenset(
    {"executecode", "execute_code", "code_execution", "code_interpreter", "python", "repl", "eval"}
    | {"run_code", "run_python", "javascript"}
)
_SERVER = re.compile(r"^mcp__.+__|^.*\.")  # `mcp__files__read_file`, `files.read_file`

# What may stand before the command that matters. Possessive: no text is looked at twice.
_BEFORE = re.compile(
    r"""(?:
      [\s("'{]++
    | (?:[\w.+-]*+/)++                                     # where a program is
    | (?:ba|da|z)?sh\ (?:-\S++\ )*?-\w*c\ ["']?            # /bin/bash -lc '...'
    | [A-Za-z_]\w*+=\S*+\ ++                               # NAME=value
    | (?:cd|pushd|set|source|export)\ [^;&|]*+(?:&&|;)
    | (?:sudo|env|command|exec|time|nohup|npx|bunx|timeout\ \S++|(?:uv|poetry|pdm)\ run)\ ++
    )*+""",
    re.VERBOSE,
)
_GIT = re.compile(r"git(?![\w.+-])")
_OPTIONS = r"(?:\ -(?!m\b)\S*+)*?\ "  # as few as will do; what follows -m is a module's
_INLINE = re.compile(
    rf"""
      (?:python|pypy)[\d.]*+ {_OPTIONS}-[A-Za-z]*?c\b
    | (?:node|nodejs|bun|tsx|ts-node|deno) {_OPTIONS}-{{1,2}}(?:e|p|pe|eval|print)\b
    | (?:perl|ruby|lua|julia|Rscript|elixir) {_OPTIONS}-\w*?[eE]\b
    | (?:php {_OPTIONS}-r|deno\ eval)\b
    | (?:(?:python|pypy)[\d.]*+|node|nodejs|bun|deno|perl|ruby|lua|php) (?:\ -)?\ ?<<
    """,
    re.VERBOSE,
)


def action_of(event: ToolStart) -> str | None:
    """The kind of action that a tool call is; None for lists, questions, sub-agents and the rest.

    A shell command is judged by how it begins: git, code for an interpreter, or anything else.
    """
    name = _SERVER.sub("", event.name.lower())
    if name not in _SHELL:
        named = (("read", _READ), ("write", _WRITE), ("eval", _EVAL), ("git", {"git"}))
        return next((kind for kind, names in named if name in names), None)
    before = _BEFORE.match(event.summary)
    assert before is not None, "it matches nothing, too"
    if _GIT.match(event.summary, before.end()):
        return "git"
    return "eval" if _INLINE.match(event.summary, before.end()) else "bash"
