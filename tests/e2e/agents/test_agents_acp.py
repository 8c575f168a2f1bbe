"""Real agents driven by ACP: the kit of all agents, and runs in which the guard answers them."""

import json
from collections.abc import Iterator

import pytest

from agents.acp_bench import AcpBench
from agents.clis import ACP
from agents.real_agents import DONE, World
from kits.agent.kit import CHECKS, try_one

pytestmark = pytest.mark.agents
each = pytest.mark.parametrize("kind", sorted(ACP))


@each
def test_the_kit(world: World) -> None:
    found = {}
    for name, check in CHECKS.items():
        found[name] = try_one(check, AcpBench(world))
        print(name, found[name], flush=True)
    assert 0
