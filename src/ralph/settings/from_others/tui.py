"""`config.toml` of ralph-tui."""

import re
import tomllib
from typing import Any

from ralph.settings.from_others.agent import agent
from ralph.settings.from_others.draft import (
    FOR_PROMPT,
    Draft,
    Json,
    Rule,
    iterations,
    lost,
    milliseconds,
    positive_count,
    text,
    texts,
    to,
    unless_zero,
    walk,
)

_ON_FAILURE = {"retry": "retry", "skip": "continue", "abort": "stop"}
_COMMITS = lost("ralph tasks run commits each task by itself; for ralph run see scm")
_LISTS = lost("the list comes to Ralph by itself: ralph tasks import FILE")
_WAITS = lost("Ralph waits for rate limits by itself, see maxWait")
_ONE_AGENT = "Ralph runs one agent, see agent.command"
_OWN_PLACES = lost("Ralph has places of its own for what it keeps")


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


RULES: dict[str, Rule] = {
    "configVersion": lambda *_: None,
    "maxIterations": iterations,
    "iterationDelay": lost("Ralph does not wait between turns"),
    "model": to("agent.model", text),
    "agentOptions.model": to("agent.model", text),
    "envExclude": to("agent.env.unset", _names),
    "envPassthrough": to("agent.env.keep", _names),
    "tracker": _LISTS,
    "defaultTracker": _LISTS,
    "trackers": _LISTS,
    "trackerOptions": _LISTS,
    "autoCommit": _COMMITS,
    "commitMessageTemplate": _COMMITS,
    "outputDir": _OWN_PLACES,
    "progressFile": _OWN_PLACES,
    "prompt_template": lost(FOR_PROMPT),
    "fallbackAgents": lost(_ONE_AGENT),
    "errorHandling.strategy": to("loop.onFailure", _on_failure),
    "errorHandling.maxRetries": lost("see failAfter and loop.maxIterationsPerTask"),
    "rateLimitHandling": _WAITS,
    "notifications": lost("see notify.command"),
    "conflictResolution": lost("a conflict goes back to the agent once"),
    "parallel.worktreeDir": _OWN_PLACES,
}


def load(words: str) -> Any:  # noqa: ANN401  whatever the file holds
    """The content of a text of TOML; ValueError, with the line, if it is none."""
    try:
        return tomllib.loads(words)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def fill(draft: Draft, document: Json) -> None:
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
    walk(draft, document, RULES)


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
    if mine:
        _one_agent(draft, mine)


def _one_agent(draft: Draft, mine: Json) -> None:
    above = f"agents.{mine.get('name')}"
    rules: dict[str, Rule] = {
        **{f"{above}.{key}": lambda *_: None for key in ("name", "plugin", "default", "command")},
        f"{above}.defaultFlags": to("agent.flags", texts),
        f"{above}.timeout": unless_zero(to("timeout", milliseconds)),
        f"{above}.options.model": to("agent.model", text),
        f"{above}.fallbackAgents": lost(_ONE_AGENT),
        f"{above}.rateLimitHandling": _WAITS,
        f"{above}.envExclude": to("agent.env.unset", _names),
        f"{above}.envPassthrough": to("agent.env.keep", _names),
    }
    options = mine.pop("options", None)
    inner = {f"options.{k}": v for k, v in options.items()} if isinstance(options, dict) else {}
    walk(draft, {f"{above}.{key}": value for key, value in (mine | inner).items()}, rules)


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
