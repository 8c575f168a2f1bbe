"""The agents on this machine: the path of each, its own words, and Ralph's flags for it."""

import os
import threading
from collections.abc import Iterator, Mapping

import ralph
from ralph.agents.acp import ACP, BY_ACP
from ralph.agents.clis import CLIS, OWN_LOGIN, Environment
from ralph.agents.kinds import PROGRAMS
from ralph.agents.own import BY_KEY
from ralph.agents.probe import Probe
from ralph.agents.providers import OWN
from ralph.doctor.checks import Check, KnownAgent, ok, problem, warning
from ralph.doctor.machine import Machine, ProgramAnswer
from ralph.git.repository import is_repository
from ralph.kernel.value import value

_SKIPS = "--dangerously-skip-permissions"
_NO_REPOSITORY = "--skip-git-repo-check"
_CANNOT_START = "cannot be started"
_MONEY = {  # what an agent reports -> what that means
    "cost": "reports what it costs: --max-cost holds",
    "tokens": "reports tokens, not dollars: --max-cost needs their price (agent.prices)",
    "priced": "reports tokens, whose price is known: --max-cost holds",
    "sometimes": "reports what it costs, if it knows the model's price: --max-cost ends a run"
    " after a turn whose cost nobody knows (set agent.prices)",
    "": "reports no cost: use --max-time or -m in place of --max-cost",
}
_SOMETIMES = frozenset({"opencode"})  # report cost only of models whose price they know


@value
class Candidate:
    """An agent that could be asked, and the environment that it would get."""

    kind: str
    command: tuple[str, ...]
    path: str
    environment: Environment
    chosen: bool = False


class Examiner:
    """Asks an agent for its version and its help. Safe to call from several threads."""

    def __init__(self, machine: Machine, cache: str, *, may_ask: bool) -> None:
        self._machine = machine
        self._cache = cache  # where the help of every binary is kept; "" for nowhere
        self._may_ask = may_ask
        self._probing = threading.Lock()  # the cache is read and written as a whole

    def __call__(self, candidate: Candidate) -> KnownAgent:
        cli = CLIS[candidate.kind]
        values = candidate.environment.values
        answer = self._version(candidate)
        said = None
        if cli.probe:
            # The question that `ralph run` would ask, and in its cache; but no longer than anybody
            # waits for it. One that does not even tell its version is not asked more.
            may_ask = self._may_ask and not answer.trouble
            command, cache = candidate.command, self._cache
            with self._probing:
                said = Probe(command, cli.probe, values, cache, may_ask=may_ask, ask=self._help)()
        return KnownAgent(
            kind=candidate.kind,
            path=candidate.path,
            version=answer.version,
            trouble=answer.trouble,
            tested=cli.tested,
            flags=tuple((choice.flag, choice.why) for choice in cli.choices(said)),
            reports=cli.reports,
            credential=candidate.environment.payer,
            withheld=candidate.environment.removed,
            chosen=candidate.chosen,
        )

    def _help(self, argv: tuple[str, ...], env: Mapping[str, str]) -> str | None:
        answer = self._machine.ask(*argv, env=env)
        return None if answer.trouble else answer.said

    def _version(self, candidate: Candidate) -> ProgramAnswer:
        """Asked each time, so that a binary that broke is seen; never of an unknown program."""
        if candidate.command[0] == OWN:
            return ProgramAnswer(ralph.__version__)
        if candidate.kind == "text" or not self._may_ask:
            return ProgramAnswer("")
        more = () if candidate.kind == ACP else candidate.command[1:]
        words = (candidate.path, *more, "--version")
        answer = self._machine.ask(*words, env=candidate.environment.values)
        return answer if answer.trouble or answer.version else ProgramAnswer("", "says no version")


def agent_checks(agents: tuple[KnownAgent, ...]) -> Iterator[Check]:
    """Each agent, and the flags that its help has decided."""
    for agent in agents:
        yield _found(agent)
        if agent.flags:
            words = "; ".join(f"{flag}: {why}" if flag else why for flag, why in agent.flags)
            yield ok(f"{agent.kind} flags", words)
    missing = [kind for kind in PROGRAMS if kind not in {agent.kind for agent in agents}]
    if OWN in missing:
        missing.remove(OWN)
        yield ok(OWN, f"part of Ralph, and needs a key: {BY_KEY}")
    if missing:
        yield ok("not found", ", ".join(missing))


def _found(agent: KnownAgent) -> Check:
    if agent.trouble:
        how = problem if agent.chosen and agent.trouble.startswith(_CANNOT_START) else warning
        remedy = f"See what is wrong: {agent.path} --version"
        return how(agent.kind, f"{agent.path} {agent.trouble}", remedy)
    doubt = "" if agent.tested else "; Ralph has not been tested with it"
    name = os.path.basename(agent.path)
    if other := BY_ACP.get(name if agent.kind in (name, "text") else ""):
        doubt += f'; to see and guard its work: --agent "{other}" (ACP)'
    if agent.kind == "text":
        return ok(name, f"{agent.path}, spoken to in plain text{doubt}")
    if agent.path == OWN:
        return ok(agent.kind, f"{agent.version}, part of Ralph")
    if not agent.version:
        return ok(agent.kind, f"{agent.path}, not asked since agent.probe is false{doubt}")
    return ok(agent.kind, f"{agent.version} at {agent.path}{doubt}")


def user_check(user: int, chosen: Candidate | None, flags: tuple[str, ...]) -> Check:
    """Claude as root refuses what most runs need (docs/facts.md §1)."""
    if user != 0:
        return ok("user", f"an ordinary one ({user})")
    if not chosen or chosen.kind != "claude" or chosen.environment.values.get("IS_SANDBOX") == "1":
        return ok("user", "root: whatever the agent does, it does as root")
    how = problem if _SKIPS in flags else warning
    return how(
        "user",
        f"root: claude needs IS_SANDBOX=1 with {_SKIPS}",
        "Be an ordinary user or, in a sandbox of your own: export IS_SANDBOX=1",
    )


def repository_check(
    workspace: str, chosen: Candidate | None, flags: tuple[str, ...]
) -> Check | None:
    """Codex works in repositories only, unless it is told otherwise."""
    if not chosen or chosen.kind != "codex" or _NO_REPOSITORY in flags or is_repository(workspace):
        return None
    text = "codex does not work outside a git repository"
    return problem("codex place", text, f'git init, or add "{_NO_REPOSITORY}" to agent.flags')


def money_checks(agents: tuple[KnownAgent, ...], *, priced: bool) -> Iterator[Check]:
    """The payer of a run here, by name only, and whether the cost can be counted."""
    agent = next((agent for agent in agents if agent.chosen), None)
    if agent is None:
        yield ok("credential", "nobody would pay: no agent would run")
        return
    name = os.path.basename(agent.path)
    payer = f"{agent.credential} pays" if agent.credential else "Ralph cannot know who pays"
    unsure = ", if there is one: no key is set" if agent.credential == OWN_LOGIN else ""
    yield ok("credential", f"{payer} for {name}{unsure}")
    if agent.withheld:
        yield ok("withheld", f"{', '.join(agent.withheld)}: not passed on to {name}")
    counted = agent.reports
    if agent.kind in _SOMETIMES:
        counted = agent.reports if priced else "sometimes"
    elif priced and agent.reports == "tokens":
        counted = "priced"
    yield ok("cost", f"{name} {_MONEY[counted]}")
