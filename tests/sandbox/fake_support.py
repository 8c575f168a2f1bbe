"""A project, and fakes of sandbox tools on PATH, for tests."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from kits.sandbox.tools import fake_calls, install_fake, machines
from ralph.sandbox.backends.guest import Guest, SandboxTool
from ralph.sandbox.backends.machine import setup_script
from ralph.sandbox.interface import Network, SandboxPolicy


class Fake:
    """The fake of one tool."""

    def __init__(self, directory: Path, kind: str) -> None:
        self._directory = str(directory)
        self._kind = kind
        self.path = install_fake(self._directory, kind)

    def troubled(self, **trouble: str) -> None:
        """From now on these verbs fail."""
        install_fake(self._directory, self._kind, trouble)

    def plays(self, agent: str) -> None:
        """From now on this script is the agent."""
        install_fake(self._directory, self._kind, agent=agent)

    def calls(self) -> list[str]:
        """Every call, in one line each; the programs that Ralph passes are named only."""
        return [" ".join(shortened(word) for word in argv) for argv in fake_calls(self.path)]

    def fresh_calls(self) -> list[str]:
        """The same, and from here on only what comes after."""
        calls = self.calls()
        os.unlink(f"{self.path}.state/calls.jsonl")
        return calls

    def machines(self) -> Mapping[str, Mapping[str, object]]:
        return machines(self.path)


GUEST = Guest(SandboxTool((), {}), "", "")._program


def shortened(word: str) -> str:
    return {GUEST: "GUEST", setup_script(): "SETUP"}.get(word, word)


def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> Fake:
    """One on PATH, which answers at once."""
    directory = tmp_path / "fakes"
    made = Fake(directory, kind)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RALPH_SANDBOX_SETTLE", "0")
    return made


def policy_now(*hosts: str, everybody: bool = False) -> SandboxPolicy:
    """As the command line makes it, in the test's own world."""
    network = Network(everybody=everybody, hosts=hosts)
    return SandboxPolicy(dict(os.environ), os.environ["RALPH_STATE_DIR"], network)
