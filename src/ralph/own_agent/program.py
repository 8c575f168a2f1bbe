"""One turn of Ralph's own agent, as a program: a prompt in, our own stream of lines out."""

import os
from collections.abc import Mapping
from typing import Protocol, TextIO

from ralph import __version__
from ralph.agents.streams.ndjson import telling
from ralph.files.safe_open import read_or_nothing
from ralph.kernel.value import value
from ralph.own_agent import words
from ralph.own_agent.actions import Guard, Hands, guard_of
from ralph.own_agent.commands import of_commands
from ralph.own_agent.loop import Agent, usage_told
from ralph.own_agent.service import Service
from ralph.own_agent.talk import Trouble
from ralph.own_agent.window import Window
from ralph.processes.child import start
from ralph.processes.keeper import Keeper
from ralph.processes.keeper_main import is_possible
from ralph.text.plain import one_line, safe
from ralph.text.redact import redacted_json

WINDOWS = {"anthropic": 200_000, "openai": 272_000, "openai-chat": 128_000, "google": 1_000_000}
_NOTES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
_LONGEST_NOTES = 32 * 1024


@value
class Wishes:
    """How the agent is to work."""

    has_tools: bool = True
    is_guarded: bool = True
    most_steps: int = 250
    window: int | None = None  # tokens that the model can read
    longest: int | None = None  # tokens of one answer


class Printer(Protocol):
    """Prints what happens."""

    def __call__(self, kind: str, **fields: object) -> None: ...


def lines_to(out: TextIO) -> Printer:
    """The stream for programs: a JSON object a line."""

    def tell(kind: str, **fields: object) -> None:
        out.write(f"{redacted_json({'type': kind, **fields})}\n")
        out.flush()

    return tell


def words_to(out: TextIO, err: TextIO | None) -> Printer:
    """The words of the assistant, and for people its actions beside them."""

    def tell(kind: str, **fields: object) -> None:
        if kind == "text":
            print(safe(str(fields["text"])), file=out, flush=True)
        if err is None:
            return
        match kind:
            case "action":
                said = f"{fields['action']}  {telling(fields['input'])}"
            case "retry":
                said = f"again in {fields['seconds']:g}s: {fields['why']}"
            case "progress":
                said = str(fields["text"])
            case "result" if isinstance(error := fields["error"], dict):
                said = str(error["message"])
            case _:
                return
        print(f"[ralph agent] {safe(one_line(said))}", file=err, flush=True)

    return tell


def work(
    prompt: str,
    service: Service,
    workspace: str,
    environ: Mapping[str, str],
    *,
    wishes: Wishes,
    tell: Printer,
) -> int:
    """Work on a prompt until the model is done; 1 if it could not be."""
    session = os.urandom(8).hex()
    model = service.model
    told = {"session": session, "model": str(model), "workspace": workspace}
    tell("session", **told, version=__version__, guard=wishes.is_guarded)
    is_supervised = "RALPH_TASK_DIR" in environ  # child runs of its task outlive it, and it (S)
    keeper = Keeper() if is_possible() and not is_supervised else None
    guard: Guard = guard_of(workspace, environ) if wishes.is_guarded else lambda _: None
    agent = Agent(
        service,
        Hands(workspace, of_commands(environ), keeper or start, guard),
        tell,
        system=words.system(workspace, _notes(workspace), has_tools=wishes.has_tools),
        window=Window(wishes.window or WINDOWS[model.provider.name]),
        longest=wishes.longest,
        most_steps=wishes.most_steps,
        has_tools=wishes.has_tools,
        session=session,
    )
    text, trouble = "", None
    try:
        text = agent.work(prompt)
    except Trouble as failed:
        trouble = failed
    except KeyboardInterrupt:
        trouble = Trouble("interrupted")
        raise
    finally:
        if keeper is not None:
            keeper.close()
        error = trouble.told() if trouble else None
        usage = usage_told(agent.usage)
        tell("result", text=text, error=error, usage=usage, steps=agent.steps)
    return int(trouble is not None)


def _notes(workspace: str) -> tuple[str, str] | None:
    """What the project tells agents: the name of the file and its beginning."""
    for name in _NOTES:
        data = read_or_nothing(os.path.join(workspace, name), _LONGEST_NOTES)
        if data.strip():
            return name, data.decode("utf-8", "replace").strip()
    return None
