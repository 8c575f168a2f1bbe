"""`.ralphrc`: shell syntax, which is read and never run. Anything that a shell would have to work
out, or run, or decide upon is not taken over."""

import re
from typing import TYPE_CHECKING

from ralph.guard.shell.nodes import Assign, Simple, Text, Unfollowable
from ralph.guard.shell.parser import parse
from ralph.settings.from_others.agent import agent
from ralph.settings.from_others.draft import (
    FOR_PROMPT,
    SECRET,
    Draft,
    Json,
    Rule,
    count,
    lost,
    minutes,
    text,
    to,
    unless_zero,
    walk,
)

if TYPE_CHECKING:
    from ralph.guard.shell.nodes import Node

_SETS = frozenset({"export", "declare", "typeset", "readonly"})
_SECRET = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|WEBHOOK|CREDENTIALS?)(?:_|$)")
_OUTSIDE = "a shell would have to work it out, and Ralph runs nothing: set it by hand"
_FRESH = lost("each turn of Ralph is a fresh session")
_PACE = lost("Ralph does not count calls; see maxCost, and maxWait for rate limits")
_LISTS = lost("the list comes to Ralph by itself: ralph tasks import FILE")
_BREAKER = lost("see failAfter and stallAfter")


def _allowed_tools(draft: Draft, key: str, value: object) -> None:
    draft.take(key, "agent.flags", value, lambda tools: ["--allowedTools", text(tools)])


RULES: dict[str, Rule] = {
    "PROJECT_NAME": lost(FOR_PROMPT),
    "PROJECT_TYPE": lost(FOR_PROMPT),
    "CLAUDE_CODE_CMD": lambda draft, key, value: agent(draft, (key, "claude"), (key, value)),
    "CLAUDE_TIMEOUT_MINUTES": unless_zero(to("timeout", minutes)),
    "ALLOWED_TOOLS": _allowed_tools,
    "CLAUDE_ALLOWED_TOOLS": _allowed_tools,
    "CB_NO_PROGRESS_THRESHOLD": to("stallAfter", count),
    "CB_SAME_ERROR_THRESHOLD": _BREAKER,
    "CB_OUTPUT_DECLINE_THRESHOLD": _BREAKER,
    "CB_COOLDOWN_MINUTES": _BREAKER,
    "CB_AUTO_RESET": _BREAKER,
    "MAX_CALLS_PER_HOUR": _PACE,
    "MAX_TOKENS_PER_HOUR": _PACE,
    "SESSION_CONTINUITY": _FRESH,
    "SESSION_EXPIRY_HOURS": _FRESH,
    "CLAUDE_OUTPUT_FORMAT": lost("Ralph chooses the stream that it reads"),
    "PROMPT_FILE": lost("give it to the run: ralph run --prompt-file FILE"),
    "FIX_PLAN_FILE": _LISTS,
    "TASK_SOURCES": _LISTS,
    "GITHUB_TASK_LABEL": lost("ralph tasks import github:OWNER/NAME --label LABEL"),
    "BEADS_FILTER": _LISTS,
    "RALPH_SHELL_INIT_FILE": lost("Ralph runs no shell before the agent"),
}


def load(words: str) -> Json:
    """The variables that a script sets, whatever happens; ValueError for what cannot be followed.
    Others are there with a value of None."""
    try:
        script = parse(words)
    except (Unfollowable, RecursionError) as error:
        raise ValueError(f"its shell syntax cannot be followed: {error}") from None
    found: dict[str, str | None] = {}
    for node in script.items:
        for assign in _assigns(node):
            found[assign.name] = _literal(assign) if _is_plain(node) else None
    return found


def _is_plain(node: "Node") -> bool:
    """True if it sets variables and does nothing else."""
    if not isinstance(node, Simple) or node.redirects:
        return False
    words = [word.literal() for word in node.words]
    return not words or words[0] in _SETS


def _assigns(node: "Node") -> list[Assign]:
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
    if isinstance(first, Text) and not first.quoted and first.text.startswith("~"):
        return None  # somebody's home
    return word.literal()


def fill(draft: Draft, document: Json) -> None:
    known = {name: value for name, value in document.items() if value is not None}
    rules: dict[str, Rule] = {}
    for name in document:
        if name not in known:
            draft.lose(name, _OUTSIDE)
        elif _SECRET.search(name):
            rules[name] = lost(SECRET)
        elif name.startswith("SANDBOX_"):
            rules[name] = lost("choose one of Ralph's: sandbox, or ralph run --sandbox")
    walk(draft, known, rules | RULES)
