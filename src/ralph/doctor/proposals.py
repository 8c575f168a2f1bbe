"""Proposals of `ralph init`: the agent, the checks, commits and the sandbox, as they are here."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from ralph.agents.clis import CLIS, OWN_LOGIN, agent_environment
from ralph.agents.kinds import account_of, installed, kind_of, value_in
from ralph.agents.own import own_model
from ralph.agents.providers import OWN
from ralph.doctor.agents import Candidate, Examiner
from ralph.doctor.checks import CheckState, KnownAgent
from ralph.doctor.git import git_identity
from ralph.doctor.machine import Machine
from ralph.errors import ConfigError, RalphError
from ralph.files.state_dir import state_root
from ralph.files.state_home import state_home
from ralph.git.repository import is_repository
from ralph.kernel.value import value
from ralph.sandbox.credentials import login_path
from ralph.settings.detect.found import COMMITS, checks_of, guardrails
from ralph.settings.detect.project import ProposedCheck


@value
class Proposals:
    """The things that were found; what is missing is empty."""

    command: str  # the agent's, whether it is installed or not
    agent: KnownAgent | None  # what it says of itself, if it is installed
    login: str  # how it is logged in, in words
    checks: tuple[ProposedCheck, ...]
    commits: bool  # there is a repository, and a git
    sandbox: str  # a backend that contains and undoes
    todo: tuple[str, ...]  # what a person has to do before a run, each with what to type

    @property
    def is_empty(self) -> bool:
        """True if neither an agent nor anything of a project is there."""
        return self.agent is None and not self.checks and not self.commits

    def settings(self) -> dict[str, Any]:
        """All of it, as settings."""
        agent: dict[str, Any] = {}
        if self.command:
            agent = {"command": self.command, "flags": list(self.flags(self.command, self.sandbox))}
        found = {
            "agent": agent or None,
            "guardrails": guardrails(self.checks) or None,
            "scm": COMMITS if self.commits else None,
            "sandbox": "auto" if self.sandbox else None,
        }
        return {key: setting for key, setting in found.items() if setting is not None}

    @staticmethod
    def flags(command: str, sandbox: str) -> tuple[str, ...]:
        """Flags with which an agent works without asking anybody: in a sandbox that contains it
        everything is allowed (ADR 15)."""
        cli = CLIS[kind_of(command.split() or [""])]
        return cli.unattended if sandbox else cli.in_place or cli.unattended


def look(machine: Machine, command: str | None) -> Proposals:
    """Look at the machine and the project. `command` is the agent that was asked for."""
    agent, login, todo = None, "", []
    if words := installed(command, machine.environ):
        kind = kind_of(words)
        model = value_in(words[1:], CLIS[kind].model_flags)
        account = account_of(kind, words)
        environment = agent_environment(machine.environ, account, model=model)
        path = None if words[0] == OWN else machine.which(words[0])
        candidate = Candidate(kind, words, path or words[0], environment)
        root = state_home(machine.environ)
        cache = os.path.join(root, "probes.json") if root else ""
        agent = Examiner(machine, cache, may_ask=True)(candidate)
        login, remedy = _login(agent, environment.values, model)
        todo += [remedy] if remedy else []
    commits = is_repository(machine.workspace) and machine.which("git") is not None
    todo += _git_lacks(machine) if commits else []
    return Proposals(
        command=command or (words[0] if words else ""),
        agent=agent,
        login=login,
        checks=checks_of(machine.workspace, machine.environ),
        commits=commits,
        sandbox=_sandbox(machine),
        todo=tuple(todo),
    )


def _login(agent: KnownAgent, environ: Mapping[str, str], model: str | None) -> tuple[str, str]:
    """How the agent is paid or logged in, and the remedy if it is not, as far as can be seen."""
    if agent.kind == OWN:
        try:
            own_model(model, environ)
        except ConfigError as error:
            return "no key is set", error.remedy
    if agent.credential != OWN_LOGIN:
        return (f"paid by {agent.credential}" if agent.credential else ""), ""
    path = login_path(agent.kind, environ)
    if not path or sys.platform == "darwin":  # where logins may lie in the keychain
        return "", ""
    if os.path.exists(path):
        return "logged in", ""
    return "not logged in", CLIS[agent.kind].login_hint


def _git_lacks(machine: Machine) -> list[str]:
    """Steps that are needed before git can commit a run's work."""
    todo, identity = [], git_identity(machine)
    if identity is not None and identity.state is not CheckState.OK:
        todo.append(f"Tell git who commits: {identity.remedy}")
    if machine.ask("git", "rev-parse", "--verify", "--quiet", "HEAD").trouble:
        # What is uncommitted when a run begins is left out of its commits.
        todo.append('Commit what is there: git add --all && git commit -m "Begin"')
    return todo


def _sandbox(machine: Machine) -> str:
    """The backend that `auto` takes, if an agent that is in it needs no other permission."""
    from ralph.sandbox import catalog
    from ralph.sandbox.backends import overlay
    from ralph.sandbox.interface import SandboxPolicy

    try:
        policy = SandboxPolicy(machine.environ, state_root(machine.environ))
        found = catalog.usable("auto", machine.workspace, policy)
    except RalphError:
        return ""
    finally:
        overlay.LAUNCHER.close()
    return found.name if found.can.contain and found.can.rollback else ""
