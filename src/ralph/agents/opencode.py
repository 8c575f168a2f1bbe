"""opencode: `opencode run`, the prompt on standard input."""

import json

from ralph.agents.kinds import (
    Launch,
    Request,
    Tells,
    as_bytes,
    no_choices,
    no_file,
    value_in,
    without,
)

PROBE: tuple[str, ...] = ()
MODEL_FLAGS: tuple[str, ...] = ("-m", "--model")
REPORTS = "cost"
PERMISSION_HINT = 'Add "--auto" to agent.flags, or allow it under "permission" in opencode.json.'
LOGIN_HINT = "Log in: opencode auth login; or set the API key of its provider."
TELLS = frozenset(Tells)
TESTED = True
BARS_TOOLS = True

_BARE_GRANTS = ("--auto", "--dangerously-skip-permissions")
_AGENT = ("--agent",)
_RULES, _CONFIG = "OPENCODE_PERMISSION", "OPENCODE_CONFIG_CONTENT"
# A rule of the user that stands after `*` beats it, so each is named.
_DENIED = dict.fromkeys(
    (
        *("*", "read", "edit", "glob", "grep", "list", "bash", "task", "skill", "lsp"),
        *("todoread", "todowrite", "question", "webfetch", "websearch", "codesearch"),
        *("external_directory", "doom_loop"),
    ),
    "deny",
)


def launch(request: Request) -> Launch:
    """By standard input, since `run` puts an argument with a blank into quotation marks, which
    the model then reads."""
    no_file(request, "opencode")
    command, flags, env = request.command, request.flags, {}
    if not request.tools:
        env = _no_tools(request)
        command, flags = (without(words, bare=_BARE_GRANTS) for words in (command, flags))
    # Nothing where the user has written it: opencode used to be called like any command.
    written = "run" in command[1:] or flags[:1] == ("run",)
    argv = [*command, *(() if written else ("run",)), *flags, *request.model_by("-m")]
    if request.stream:
        argv += ["--format", "json"]
    dialect = "opencode" if request.stream else "text"
    if request.prompt_via == "arg":
        return Launch((*argv, "--", request.prompt), dialect, env=env)
    return Launch(tuple(argv), dialect, as_bytes(request.prompt), env=env)


def _no_tools(request: Request) -> dict[str, str]:
    """Rules for all agents and, since an agent's own would beat those, for the one that answers:
    another agent could have another model. Only a configuration that can be read is added to."""
    name = value_in(request.flags, _AGENT) or "build"
    env = {_RULES: json.dumps(_DENIED)}
    try:
        config = json.loads(request.variable(_CONFIG) or "{}")
        agents = config.setdefault("agent", {})
        agents[name] = {**agents.get(name, {}), "permission": _DENIED}
    except (ValueError, AttributeError, TypeError):
        return env
    return {**env, _CONFIG: json.dumps(config)}


choices = no_choices
