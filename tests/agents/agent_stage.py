"""A workspace, a run directory, and a scripted agent that takes a turn there."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ralph.agents.cli_agent import CliAgent, Setup
from ralph.agents.clis import CLIS
from ralph.agents.turn_files import NumberedFiles
from ralph.kernel.events import AgentEvent
from ralph.kernel.turn import Order, Pulse, Turn
from ralph.kernel.verdict import Cut
from ralph.testing.scripted_agent.install import install_agent

SECRET = "correct-horse-battery"


@dataclass
class Stage:
    """A workspace, a run directory, and the agent that plays there."""

    root: Path
    events: list[AgentEvent] = field(default_factory=list)
    agent: str = ""

    @property
    def run_dir(self) -> Path:
        return self.root / "run"

    def setup(self, kind: str, *turns: dict[str, Any]) -> Setup:
        self.agent = install_agent(str(self.root / "bin"), list(turns), kind=kind)
        return Setup(
            cli=CLIS[kind],
            command=(self.agent,),
            flags=(),
            model=None,
            stream=True,
            prompt_via=None,
            help_text=lambda: None,
            prices=None,
            workspace=str(self.root / "ws"),
            env=dict(os.environ),
            filing=NumberedFiles(str(self.run_dir)),
        )

    def play(self, kind: str, *turns: dict[str, Any], order: Order = Order("do it", 1)) -> Turn:
        return self.take(self.setup(kind, *turns), order)

    def take(
        self,
        setup: Setup,
        order: Order = Order("do it", 1),
        watch: Callable[[Pulse], Cut | None] = lambda _: None,
    ) -> Turn:
        return CliAgent(setup, self.events.extend).take_turn(order, watch)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    for name in ("ws", "run"):
        (tmp_path / name).mkdir()
    return Stage(tmp_path)
