"""The keys of other loops' settings, and what they mean for us: a table for each loop, and
functions for what is more than a row."""

import json
import os
import re
import tomllib
from collections.abc import Callable
from functools import partial
from typing import Any

from ralph.files import yaml_text
from ralph.guard.shell.nodes import Assign, Literal, Node, Simple, Unfollowable
from ralph.guard.shell.parser import parse
from ralph.settings.from_others.draft import (
    FOR_PROMPT,
    NO_PLACE,
    SECRET,
    Draft,
    Rule,
    agent,
    completion,
    count,
    iterations,
    limit,
    milliseconds,
    minutes,
    nothing,
    positive,
    positive_count,
    rows,
    text,
    texts,
    to,
    walk,
)
from ralph.settings.paths import Json

# ------------------------------------------------------------------ ralph-cli


_REVIEWS = "reviews between turns are what ralph prd run does; guardrails are commands"


def fill_cli(draft: Draft, document: Json, above: str = "") -> None:
    """Take over all of it; what is unknown to Ralph is found when the settings are checked."""
    for key, value in document.items():
        path = f"{above}{key}"
        if path == "reviews":
            draft.lose(path, _REVIEWS)
        elif path in ("notify.urls", "agent.env.set"):
            draft.lose(path, SECRET)
        elif path in ("agent", "agent.env", "notify") and isinstance(value, dict):
            fill_cli(draft, value, f"{path}.")
        elif path != "$schema" and (value is not None or above == "agent.env."):
            for guardrail in value if path == "guardrails" and isinstance(value, list) else ():
                # They take `failAction` in any case.
                if isinstance(guardrail, dict) and isinstance(guardrail.get("failAction"), str):
                    guardrail["failAction"] = guardrail["failAction"].upper()
            draft.put(path, path, value)


# ------------------------------------------------------------------ ralphy


def _paths(value: object) -> list[str]:
    found = texts(value)
    for path in found:
        if os.path.isabs(path) or ".." in path.split("/"):
            raise ValueError("only what is in the workspace can be protected")
    return found


def _guardrails(draft: Draft, key: str, value: Any) -> None:  # noqa: ANN401  YAML
    """Their commands are for the agent to run; with us they must succeed after every turn."""
    if not isinstance(value, dict):
        draft.lose(key, "commands with their names are expected")
        return
    commands = []
    for name, command in value.items():
        try:
            commands += [{"command": text(command)}] if command else []
        except ValueError as error:
            draft.lose(f"{key}.{name}", str(error))
    if commands:
        draft.put(key, "guardrails", commands)


_RALPHY = rows(
    {
        "project rules": FOR_PROMPT,
        "commands": _guardrails,
        "boundaries.never_touch": to("protect", _paths),
        "notifications": f"{SECRET}; see notify",
    }
)


# ------------------------------------------------------------------ ralph-orchestrator


_GIVE_PROMPT = "give it to the run: ralph run --prompt-file FILE, or --prompt TEXT"
_ROLES = "Ralph has no hats and events; ralph prd run takes turns of work and review"

_ORCHESTRATOR = rows(
    {
        "event_loop.prompt event_loop.prompt_file prompt_file": _GIVE_PROMPT,
        "event_loop.completion_promise completion_promise": completion,
        "event_loop.max_iterations max_iterations": iterations,
        "event_loop.max_runtime_seconds max_runtime": limit("maxTime", positive),
        "event_loop.max_cost_usd max_cost": limit("maxCost", positive),
        "event_loop.max_consecutive_failures": to("failAfter", count),
        "event_loop.idle_timeout_secs idle_timeout_secs": limit("idleTimeout", positive),
        "event_loop.cooldown_delay_seconds retry_delay": "Ralph does not wait between turns",
        "event_loop.starting_hat event_loop.starting_event event_loop.required_events": _ROLES,
        "event_loop.enforce_hat_scope hats events": _ROLES,
        "event_loop.checkpoint_interval": "ralph tasks run keeps each turn; see scm for commits",
        "cli.prompt_mode": "Ralph knows how each agent takes its prompt",
        "cli.default_mode": "a run of Ralph never asks a person",
        "cli.idle_timeout_secs": "it is for sessions with a person; see idleTimeout",
        "core.guardrails": f"they are sentences, and Ralph's are commands; {FOR_PROMPT}",
        "core.scratchpad": "Ralph keeps what a turn leaves by itself",
        "core.specs_dir": FOR_PROMPT,
        "core.workspace_root": "the workspace is where Ralph is started, or -C DIRECTORY",
        "memories": "see ralph tasks learn",
        "tasks": "see ralph tasks",
        "features": "see loop.parallelism and ralph doctor",
        "hooks": "Ralph's hooks are told other things at other times: see ralph explain --schema",
        "skills": NO_PLACE,
        "RObot": f"{SECRET}; see notify",
        "agent_priority": "Ralph tries claude, codex, amp, gemini and opencode, in this order",
        "max_tokens": "see maxCost",
    }
)


_ADAPTER = {"timeout": limit("timeout", positive), "enabled": nothing}


def fill_orchestrator(draft: Draft, document: Json) -> None:
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
        walk(draft, said, _ADAPTER, f"{key}.")
    walk(draft, document, _ORCHESTRATOR)


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


# ------------------------------------------------------------------ ralph-tui


_ON_FAILURE = {"retry": "retry", "skip": "continue", "abort": "stop"}
_COMMITS = "ralph tasks run commits each task by itself; for ralph run see scm"
_LISTS = "the list comes to Ralph by itself: ralph tasks import FILE"
_WAITS = "Ralph waits for rate limits by itself, see maxWait"
_ONE_AGENT = "Ralph runs one agent, see agent.command"
_OWN_PLACES = "Ralph has places of its own for what it keeps"


def _names(value: object) -> list[str]:
    """Names of variables, not patterns."""
    found = texts(value)
    if not all(re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) for name in found):
        raise ValueError("patterns are not known to Ralph: name each variable")
    return found


def _on_failure(value: object) -> str:
    if value not in _ON_FAILURE:
        raise ValueError("retry, skip or abort is expected")
    return _ON_FAILURE[str(value)]


_TUI = rows(
    {
        "configVersion": nothing,
        "maxIterations": iterations,
        "iterationDelay": "Ralph does not wait between turns",
        "model agentOptions.model": to("agent.model", text),
        "envExclude": to("agent.env.unset", _names),
        "envPassthrough": to("agent.env.keep", _names),
        "tracker defaultTracker trackers trackerOptions": _LISTS,
        "autoCommit commitMessageTemplate": _COMMITS,
        "outputDir progressFile parallel.worktreeDir": _OWN_PLACES,
        "prompt_template": FOR_PROMPT,
        "fallbackAgents": _ONE_AGENT,
        "errorHandling.strategy": to("loop.onFailure", _on_failure),
        "errorHandling.maxRetries": "see failAfter and loop.maxIterationsPerTask",
        "rateLimitHandling": _WAITS,
        "notifications": "see notify.command",
        "conflictResolution": "a conflict goes back to the agent once",
    }
)


_TUI_AGENT = rows(
    {
        "name plugin default command": nothing,
        "defaultFlags": to("agent.flags", texts),
        "timeout": limit("timeout", milliseconds),
        "options.model": to("agent.model", text),
        "fallbackAgents": _ONE_AGENT,
        "rateLimitHandling": _WAITS,
        "envExclude": to("agent.env.unset", _names),
        "envPassthrough": to("agent.env.keep", _names),
    }
)


def fill_tui(draft: Draft, document: Json) -> None:
    """Take over all of it; what has been taken is taken out of the document."""
    _agents(draft, document)
    if isinstance(said := document.get("parallel"), dict):
        mode, workers = said.pop("mode", "never"), said.pop("maxWorkers", None)
        if mode == "never":
            draft.put("parallel.mode", "loop.parallelism", 1)
        elif workers is None:
            draft.put("parallel.mode", "loop.parallelism", 3)  # their default
        else:
            draft.take("parallel.maxWorkers", "loop.parallelism", workers, positive_count)
    if isinstance(said := document.get("sandbox"), dict):
        _sandbox(draft, said)
    walk(draft, document, _TUI)


def _agents(draft: Draft, document: Json) -> None:
    said = document.pop("agents", None)
    known = [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []
    given = {key: document.pop(key, None) for key in ("agent", "defaultAgent", "agentCommand")}
    key, name = next(((key, name) for key, name in given.items() if name), ("agent", None))
    if name:
        fitting = [each for each in known if name in (each.get("name"), each.get("plugin"))]
    else:
        default = [each for each in known if each.get("default")]
        fitting = default or (known if len(known) == 1 else [])
    mine = fitting[0] if fitting else {}
    for other in known:
        if other is not mine:
            draft.lose(f"agents.{other.get('name')}", _ONE_AGENT)
    plugin = mine.get("plugin") or mine.get("name") or name
    own = ("command", document.pop("command", None))
    agent(draft, (key, plugin), own if own[1] else ("agents.command", mine.get("command")))
    options = mine.pop("options", None)
    inner = {f"options.{k}": v for k, v in options.items()} if isinstance(options, dict) else {}
    walk(draft, mine | inner, _TUI_AGENT, f"agents.{mine.get('name')}.")


def _sandbox(draft: Draft, said: Json) -> None:
    mode, network = said.pop("mode", "auto"), said.pop("network", None)
    if not said.pop("enabled", False) or mode == "off":
        return
    draft.put("sandbox.enabled", "sandbox", "auto")
    if mode != "auto":
        draft.lose("sandbox.mode", "Ralph takes the best sandbox there is: ralph sandbox probe")
    if isinstance(network, bool):
        draft.put("sandbox.network", "network", "on" if network else "off")
    elif network is not None:
        draft.lose("sandbox.network", "true or false is expected")


# ------------------------------------------------------------------ ralphrc


# Shell syntax, which is read and never run. Anything that a shell would have to work out, or run,
# or decide upon is not taken over.
_SETS = frozenset({"export", "declare", "typeset", "readonly"})
_SECRET = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|WEBHOOK|CREDENTIALS?)(?:_|$)")
_OUTSIDE = "a shell would have to work it out, and Ralph runs nothing: set it by hand"
_PACE = "Ralph does not count calls; see maxCost, and maxWait for rate limits"
_BREAKER = "see failAfter and stallAfter"

_RALPHRC = rows(
    {
        "PROJECT_NAME PROJECT_TYPE": FOR_PROMPT,
        "CLAUDE_CODE_CMD": lambda draft, key, value: agent(draft, (key, "claude"), (key, value)),
        "CLAUDE_TIMEOUT_MINUTES": limit("timeout", minutes),
        "ALLOWED_TOOLS CLAUDE_ALLOWED_TOOLS": to(
            "agent.flags", lambda tools: ["--allowedTools", text(tools)]
        ),
        "CB_NO_PROGRESS_THRESHOLD": to("stallAfter", count),
        "CB_SAME_ERROR_THRESHOLD CB_OUTPUT_DECLINE_THRESHOLD CB_COOLDOWN_MINUTES": _BREAKER,
        "CB_AUTO_RESET": _BREAKER,
        "MAX_CALLS_PER_HOUR MAX_TOKENS_PER_HOUR": _PACE,
        "SESSION_CONTINUITY SESSION_EXPIRY_HOURS": "each turn of Ralph is a fresh session",
        "CLAUDE_OUTPUT_FORMAT": "Ralph chooses the stream that it reads",
        "PROMPT_FILE": "give it to the run: ralph run --prompt-file FILE",
        "FIX_PLAN_FILE TASK_SOURCES BEADS_FILTER": _LISTS,
        "GITHUB_TASK_LABEL": "ralph tasks import github:OWNER/NAME --label LABEL",
        "RALPH_SHELL_INIT_FILE": "Ralph runs no shell before the agent",
    }
)


def load_ralphrc(words: str) -> Json:
    """The variables that a script sets, whatever happens; ValueError for what cannot be followed.
    Others are there with a value of None."""
    try:
        script = parse(words)
    except Unfollowable as error:
        raise ValueError(f"its shell syntax cannot be followed: {error}") from None
    found: dict[str, str | None] = {}
    for node in script.items:
        for assign in _assigns(node):
            found[assign.name] = _literal(assign) if _is_plain(node) else None
    return found


def _is_plain(node: Node) -> bool:
    """True if it sets variables and does nothing else."""
    if not isinstance(node, Simple) or node.redirects:
        return False
    words = [word.literal() for word in node.words]
    return not words or words[0] in _SETS


def _assigns(node: Node) -> list[Assign]:
    """All assignments within: of what may or may not happen, nobody knows the outcome."""
    if isinstance(node, Simple):
        return list(node.assigns) if not node.words or _is_plain(node) else []
    inner = [getattr(node, name, ()) for name in ("items", "bodies")]
    single = [getattr(node, name, None) for name in ("body", "head")]
    below = [each for many in inner for each in many] + [each for each in single if each]
    return [assign for each in below for assign in _assigns(each)]


def _literal(assign: Assign) -> str | None:
    if assign.adds or assign.array or assign.index or len(assign.values) != 1:
        return None
    word = assign.values[0]
    first = word.parts[0] if word.parts else None
    if isinstance(first, Literal) and not first.quoted and first.text.startswith("~"):
        return None  # somebody's home
    return word.literal()


def fill_ralphrc(draft: Draft, document: Json) -> None:
    known = {name: value for name, value in document.items() if value is not None}
    rules: dict[str, Rule] = {}
    for name in document:
        if name not in known:
            draft.lose(name, _OUTSIDE)
        elif _SECRET.search(name):
            rules[name] = SECRET
        elif name.startswith("SANDBOX_"):
            rules[name] = "choose one of Ralph's: sandbox, or ralph run --sandbox"
    walk(draft, known, rules | _RALPHRC)


# How the settings of each are written, and what their keys mean.
_Load = Callable[[str], Any]
_Fill = Callable[[Draft, Json], None]
LOOPS: dict[str, tuple[_Load, _Fill]] = {
    "ralph-cli": (json.loads, fill_cli),
    "ralph-orchestrator": (yaml_text.load, fill_orchestrator),
    "ralph-tui": (tomllib.loads, fill_tui),
    "ralphy": (yaml_text.load, partial(walk, rules=_RALPHY)),
    "ralphrc": (load_ralphrc, fill_ralphrc),
}
