"""The conformance kit's bench with a real agent behind it, driven by ACP: what a check has the twin
say, the scripted model says to the agent, and what it has it do, the agent does by its shell."""

import shlex
from collections.abc import Mapping
from typing import Any

from agents.real_agents import World, strings
from kits.agent.bench import Bench, Declared, NotApplicable, Played, Tells
from ralph.agents.cli_agent import CliAgent, Setup
from ralph.agents.clis import CLIS
from ralph.agents.turn_files import NumberedFiles
from ralph.kernel.events import AgentEvent
from ralph.kernel.turn import Order, Role
from ralph.kernel.value import replace
from ralph.processes.keeper import Keeper

Json = dict[str, Any]
# What only a scripted twin can do.
_OF_TWINS = frozenset(
    {"raw", "echo_prompt", "hook_text", "subagent_text", "todo", "no_result", "exit"}
)
MODELS = {  # that each offers, and of which its model is told
    "claude-agent-acp": "haiku",
    "codex-acp": "gpt-6-astra",
    "gemini-acp": "gemini-2.5-pro",
    "opencode-acp": "mock/scripted",
}
_USAGE = {  # what its words on tokens are, where they are not all
    "gemini-acp": "it does not tell what was read from the cache",
    "opencode-acp": "it tells the tokens of its last call only",
}
_BARRED = {  # what becomes of a call that is refused
    "gemini-acp": "in its plan mode nobody hears of a call that is barred",
    "opencode-acp": "a refusal ends its turn",
}
_SILENT = {"opencode-acp": (401, 429)}  # statuses that it does not tell, or tries again after
_TELLS = frozenset({Tells.TOOLS, Tells.STATUS})


class AcpBench(Bench):
    """One real agent, tried as the kit tries the twins."""

    def __init__(self, world: World) -> None:
        self.kind = world.kind
        self.cli = CLIS["acp"]
        self.declared = Declared(_TELLS, bars_tools=True)
        self._world = world

    def play(
        self,
        turn: Mapping[str, Any],
        prompt: str = "do it",
        role: Role = Role.WORK,
        **how: Any,  # noqa: ANN401  fields of Setup
    ) -> Played:
        """One turn of the agent, whose model says what `turn` does."""
        if len(how.get("flags", ())) > 1:
            raise NotApplicable("it does not know these flags")
        looks = any("run" not in tool for tool in turn.get("tools", []))
        if role is Role.MESSAGE and looks and self.kind in _BARRED:
            raise NotApplicable(_BARRED[self.kind])
        if why := self._impossible(turn):
            raise NotApplicable(why)
        if "model" in how:
            how["model"] = MODELS[self.kind]
        world = self._world
        world.plays(*self._model_turns(turn))
        before = len(world.model.main_calls())
        events: list[AgentEvent] = []
        keeper = Keeper()
        try:
            setup = replace(self._real_setup(), **{**how, "start": keeper})
            done = CliAgent(setup, events.extend).take_turn(Order(prompt, 1, role), lambda _: None)
        finally:
            keeper.close()
        calls = world.model.main_calls()[before:]
        heard = [*strings(calls[0]["body"])] if calls else []
        used = str([(call["path"], call["body"].get("model")) for call in calls])
        is_model = setup.model is not None and setup.model.rpartition("/")[2] in used
        argv = (*setup.flags, "large") if is_model else setup.flags  # as the check calls it
        is_heard = any(prompt in text for text in heard)
        return Played(done, tuple(events), argv, prompt if is_heard else "\n".join(heard))

    def wrote(self, name: str) -> bool:
        """Whether this file is in the workspace."""
        return (self._world.repo / name).exists()

    def _impossible(self, turn: Mapping[str, Any]) -> str:
        """The reason why a real agent cannot be made to do this; "" where it can."""
        tools = turn.get("tools", [])
        if some := sorted(_OF_TWINS & turn.keys()):
            return f"only a scripted agent can do so: {', '.join(some)}"
        if any("$PPID" in tool.get("run", "") for tool in tools):
            return "the shell is not the agent's own child"
        if "usage" in turn:
            return _USAGE.get(self.kind, "")
        if "cost" in turn:
            return "a scripted model has no price"
        if self.kind == "gemini-acp" and any(tool.get("is_error") for tool in tools):
            return "a command that fails has been run, and that is all it tells"
        status = turn.get("error", {}).get("status")
        return "it does not tell this status" if status in _SILENT.get(self.kind, ()) else ""

    def _model_turns(self, turn: Mapping[str, Any]) -> list[Json]:
        """The answers of a model that has an agent do this."""
        if "error" in turn:
            return [{"error": turn["error"], "times": -1}]
        text = turn.get("text", [])
        *early, last = [text] if isinstance(text, str) else (text or [""])
        if "response" in turn:
            last = f"{last}\n<response>{turn['response']}</response>"
        used = turn.get("usage", {})
        half = {name: count // 2 for name, count in used.items()}
        rest = {name: count - half[name] for name, count in used.items()}
        tools = [self._world.cli.shell(_command(tool)) for tool in turn.get("tools", [])]
        if not tools:
            return [{"text": "\n".join([*early, last])}]
        begun = [{"text": "\n".join(early), "tools": [tool], "usage": half} for tool in tools]
        return [*begun, {"text": last, "usage": rest}]

    def _real_setup(self) -> Setup:
        world = self._world
        run = world.root / "kit"
        run.mkdir(exist_ok=True)
        return Setup(
            cli=self.cli,
            command=world.cli.command,
            flags=(),
            model=None,
            stream=True,
            prompt_via=None,
            help_text=lambda: None,
            prices=None,
            workspace=str(world.repo),
            env={**world.environment(), **world.cli.env(world.model.url)},
            filing=NumberedFiles(str(run)),
        )


def _command(tool: Mapping[str, Any]) -> str:
    """The shell command that has the same outcome as a tool of the twin."""
    if "run" in tool:
        return str(tool["run"])
    code = "; exit 3" if tool.get("is_error") else ""
    return f"printf %s {shlex.quote(str(tool.get('output', '')))}{code}"
