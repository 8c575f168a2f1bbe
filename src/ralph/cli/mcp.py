"""`ralph mcp`: runs as tools for other programs."""

from ralph.cli.base import command
from ralph.cli.params import a_directory, option


@command()
@option(
    "--root DIR",
    "Only runs in DIR and below.  [default: the current directory]",
    default=None,
    show_default=False,
    shell_complete=a_directory,
)
def mcp(*, root: str | None) -> int:
    """Let an agent or another program start, watch and steer runs here, as tools of MCP.

    A client of the Model Context Protocol starts it and speaks with it over standard input and
    output; it ends when the client does, and no run does. Tools: start, status, wait, log,
    questions, answer, note, stop, pause, resume, tasks_add, tasks_list, report. Agents within a run
    may only look, and add tasks.

    Examples:
      ralph plugin install --mcp                register it here for claude; see its --help
      claude mcp add ralph -- ralph mcp         the same by claude, for you in this project
      codex mcp add ralph -- ralph mcp          for codex, in all projects
      gemini mcp add ralph ralph mcp            for gemini, in this project
      ralph mcp --root ~/projects               runs in another directory, and below

    Exit codes: 0 when the client has left, 2 when DIR is no directory, 130 after
    Ctrl+C or SIGTERM.
    """
    from ralph.mcp.serve import serve_here

    return serve_here(root)
