"""The bench of the conformance kit: one kind of agent, scripted, taking turns as in a run."""

import os
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from ralph.agents.cli_agent import CliAgent, Setup
from ralph.agents.clis import CLIS, Cli, Request
from ralph.agents.turn_files import NumberedFiles
from ralph.errors import ConfigError
from ralph.kernel.events import AgentEvent, Speaker, Text
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.value import value
from ralph.testing.scripted_agent.commandline import GRAMMARS
from ralph.testing.scripted_agent.install import calls, install_agent


class NotApplicable(Exception):  # noqa: N818  it is no error
    """It is declared that this CLI cannot do what is checked."""


class Tells(StrEnum):
    """Things that a stream may tell beside the agent's words."""

    TOOLS = "tools"  # tool calls, and which of them failed
    TODO = "todo"  # the agent's own task list
    DENIED = "denied"  # tools whose permission was denied
    STATUS = "status"  # the HTTP status of a failure


@value
class Declared:
    """What an agent can do beside taking turns; without a word it is tried as if it could not."""

    tells: frozenset[Tells] = frozenset()
    bars_tools: bool = False  # it can be told to let its agent change nothing


DECLARED: Mapping[str, Declared] = {
    "acp": Declared(frozenset({Tells.TOOLS, Tells.TODO, Tells.STATUS}), bars_tools=True),
    "claude": Declared(frozenset(Tells), bars_tools=True),
    "codex": Declared(frozenset({Tells.TOOLS, Tells.TODO, Tells.STATUS}), bars_tools=True),
    "amp": Declared(frozenset({Tells.TOOLS, Tells.TODO})),
    "gemini": Declared(frozenset(Tells), bars_tools=True),
    "opencode": Declared(frozenset(Tells), bars_tools=True),
    "copilot": Declared(bars_tools=True),
    "goose": Declared(bars_tools=True),
    "ralph-agent": Declared(frozenset({Tells.TOOLS, Tells.STATUS}), bars_tools=True),
}


@value
class Played:
    """What came of a turn, and what the agent was told."""

    turn: Turn
    events: tuple[AgentEvent, ...]
    argv: tuple[str, ...]
    prompt: str

    def said(self, speaker: Speaker = Speaker.ASSISTANT) -> str:
        """What one speaker said."""
        texts = (e.text for e in self.events if isinstance(e, Text) and e.speaker is speaker)
        return "\n".join(texts)

    def story(self) -> str:
        """All of it, for whoever must find out what went wrong."""
        return "\n".join(map(repr, (self.turn, *self.events)))


class Bench:
    """Where one kind of agent is tried; `root` is an empty directory that it may fill."""

    def __init__(self, kind: str, root: str, environ: Mapping[str, str]) -> None:
        self.kind = kind
        self.cli: Cli = CLIS[kind]
        self.declared = DECLARED.get(kind, Declared())
        self._root = root
        self._environ = environ

    def play(
        self,
        turn: Mapping[str, Any],
        prompt: str = "do it",
        role: Role = Role.WORK,
        **how: Any,  # noqa: ANN401  fields of Setup
    ) -> Played:
        """One turn of an agent that does what `turn` says (`scripted_agent.script.Turn`)."""
        agent = install_agent(os.path.join(self._root, "bin"), [turn], kind=self.kind)
        setup = replace(self._setup(agent), **how)
        events: list[AgentEvent] = []
        done = CliAgent(setup, events.extend).take_turn(Order(prompt, 1, role), lambda _: None)
        call: dict[str, Any] = next(iter(calls(agent)), {"argv": [], "prompt": ""})
        return Played(done, tuple(events), tuple(call["argv"]), call["prompt"])

    def help(self) -> str:
        """What the CLI says of itself, as the probe would hear it."""
        return GRAMMARS[self.kind].help if self.kind in GRAMMARS else ""

    def wrote(self, name: str) -> bool:
        """Whether this file is in the workspace."""
        return os.path.exists(os.path.join(self._root, "workspace", name))

    def refusal(self, request: Request) -> ConfigError | None:
        """Why the adapter will not make such a call; None where it will."""
        try:
            self.cli.launch(request)
        except ConfigError as error:
            return error
        return None

    def needs(self, what: Tells) -> None:
        """Go on only if the stream tells this."""
        if what not in self.declared.tells:
            raise NotApplicable(f"its output does not tell: {what}")

    def _setup(self, agent: str) -> Setup:
        for name in ("workspace", "run"):
            os.makedirs(os.path.join(self._root, name), exist_ok=True)
        return Setup(
            cli=self.cli,
            command=(agent,),
            flags=(),
            model=None,
            stream=True,
            prompt_via=None,
            help_text=lambda: None,
            prices=None,
            workspace=os.path.join(self._root, "workspace"),
            env=self._environ,
            filing=NumberedFiles(os.path.join(self._root, "run")),
        )
