"""The bench of the conformance kit: one kind of agent, scripted, taking turns as in a run."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ralph.agents.cli_agent import CliAgent, Setup
from ralph.agents.kinds import AgentModule, Request, Tells, module_of
from ralph.agents.turn_files import NumberedFiles
from ralph.errors import ConfigError
from ralph.kernel.events import AgentEvent, Speaker, Text
from ralph.kernel.turn import Order, Role, Turn
from ralph.kernel.value import value
from ralph.testing.scripted_agent.commandline import GRAMMARS
from ralph.testing.scripted_agent.install import calls, install_agent


class NotApplicable(Exception):  # noqa: N818  it is no error
    """The adapter's module declares that its CLI cannot do what is checked."""


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
        self.module: AgentModule = module_of(kind)
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
            self.module.launch(request)
        except ConfigError as error:
            return error
        return None

    def needs(self, what: Tells) -> None:
        """Go on only if the stream tells this."""
        if what not in self.module.TELLS:
            raise NotApplicable(f"its output does not tell: {what}")

    def _setup(self, agent: str) -> Setup:
        for name in ("workspace", "run"):
            os.makedirs(os.path.join(self._root, name), exist_ok=True)
        return Setup(
            module=self.module,
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
