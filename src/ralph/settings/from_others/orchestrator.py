"""`ralph.yml` of ralph-orchestrator: nested keys, and the flat ones of its first version."""

from typing import Any

from ralph.settings.from_others.agent import agent
from ralph.settings.from_others.draft import (
    FOR_PROMPT,
    NO_PLACE,
    SECRET,
    Draft,
    Json,
    Rule,
    completion,
    count,
    iterations,
    lost,
    positive,
    text,
    texts,
    to,
    unless_zero,
    walk,
)

_GIVE_PROMPT = lost("give it to the run: ralph run --prompt-file FILE, or --prompt TEXT")
_ROLES = lost("Ralph has no hats and events; ralph prd run takes turns of work and review")
_ENDS = unless_zero(to("maxTime", positive))
_COSTS = unless_zero(to("maxCost", positive))
_HOOKS = lost("Ralph's hooks are told other things at other times: see ralph explain --schema")

RULES: dict[str, Rule] = {
    "event_loop.prompt": _GIVE_PROMPT,
    "event_loop.prompt_file": _GIVE_PROMPT,
    "event_loop.completion_promise": completion,
    "event_loop.max_iterations": iterations,
    "event_loop.max_runtime_seconds": _ENDS,
    "event_loop.max_cost_usd": _COSTS,
    "event_loop.max_consecutive_failures": to("failAfter", count),
    "event_loop.idle_timeout_secs": unless_zero(to("idleTimeout", positive)),
    "event_loop.cooldown_delay_seconds": lost("Ralph does not wait between turns"),
    "event_loop.starting_hat": _ROLES,
    "event_loop.starting_event": _ROLES,
    "event_loop.required_events": _ROLES,
    "event_loop.enforce_hat_scope": _ROLES,
    "event_loop.checkpoint_interval": lost("ralph tasks run keeps each turn; see scm for commits"),
    "cli.prompt_mode": lost("Ralph knows how each agent takes its prompt"),
    "cli.default_mode": lost("a run of Ralph never asks a person"),
    "cli.idle_timeout_secs": lost("it is for sessions with a person; see idleTimeout"),
    "core.guardrails": lost(f"they are sentences, and Ralph's are commands; {FOR_PROMPT}"),
    "core.scratchpad": lost("Ralph keeps what a turn leaves by itself"),
    "core.specs_dir": lost(FOR_PROMPT),
    "core.workspace_root": lost("the workspace is where Ralph is started, or -C DIRECTORY"),
    "memories": lost("see ralph tasks learn"),
    "tasks": lost("see ralph tasks"),
    "features": lost("see loop.parallelism and ralph doctor"),
    "hooks": _HOOKS,
    "hats": _ROLES,
    "events": _ROLES,
    "skills": lost(NO_PLACE),
    "RObot": lost(f"{SECRET}; see notify"),
    "agent_priority": lost("Ralph tries claude, codex, amp, gemini and opencode, in this order"),
    "prompt_file": _GIVE_PROMPT,
    "completion_promise": completion,
    "max_iterations": iterations,
    "max_runtime": _ENDS,
    "max_cost": _COSTS,
    "idle_timeout_secs": unless_zero(to("idleTimeout", positive)),
    "retry_delay": lost("Ralph does not wait between turns"),
    "max_tokens": lost("see maxCost"),
}


def fill(draft: Draft, document: Json) -> None:
    """Take over all of it; what has been taken is taken out of the document."""
    found = document.get("cli")
    cli = found if isinstance(found, dict) else {}
    flat, backend = document.pop("agent", None), cli.pop("backend", None)
    chosen = backend or flat
    named = ("cli.backend", backend) if backend else ("agent", flat)
    agent(draft, named, ("cli.command", cli.pop("command", None)))
    if backend and flat and backend != flat:
        draft.lose("agent", "cli.backend says otherwise")
    _flags(draft, cli, custom=chosen == "custom")
    adapters = document.pop("adapters", None)
    for name, said in adapters.items() if isinstance(adapters, dict) else ():
        key = f"adapters.{name}"
        if name != chosen or not isinstance(said, dict):
            draft.lose(key, "Ralph runs one agent, see agent.command")
            continue
        rules = {f"{key}.timeout": unless_zero(to("timeout", positive))}
        rules[f"{key}.enabled"] = lambda *_: None
        walk(draft, {f"{key}.{inner}": value for inner, value in said.items()}, rules)
    walk(draft, document, RULES)


def _flags(draft: Draft, cli: Json, *, custom: bool) -> None:
    """A command of their own gets the prompt last, after its flag: as with us."""
    args, flag = cli.pop("args", None) or [], cli.pop("prompt_flag", None)
    if not custom and flag:
        draft.lose("cli.prompt_flag", "Ralph knows how each agent takes its prompt")
    found: Any = [*args, flag] if custom and flag and isinstance(args, list) else args
    if found:
        draft.take("cli.args", "agent.flags", found, texts)
    if custom and cli.get("prompt_mode") in ("arg", "stdin"):
        draft.take("cli.prompt_mode", "agent.promptVia", cli.pop("prompt_mode"), text)
