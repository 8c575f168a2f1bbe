"""`ralph plugin`: puts Ralph's hooks into an agent's own settings, and takes them out again."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from typing import Any

import click

from ralph.cli.asking import ask, dialogue, yes
from ralph.cli.base import Group
from ralph.cli.params import current_directory, option, the_usual, together
from ralph.errors import ConfigError
from ralph.git.digest import git_output
from ralph.git.ignore import ignore_here, is_ignored
from ralph.hosts.files import carry_out
from ralph.hosts.hosts import HOSTS, SOURCE, Host
from ralph.hosts.install import (
    FileChanges,
    commands_there,
    hooks_file,
    is_lifted,
    look,
    planned,
    server_there,
)
from ralph.hosts.mcp_servers import to_type
from ralph.hosts.plugin_state import PLUGIN, plugin_is_on
from ralph.hosts.stop_cap import CAP
from ralph.ui.style import is_terminal

_SCOPES = ("project", "shared", "user")
_MARKETPLACE = os.path.join(".claude-plugin", "marketplace.json")
_where = together(
    option("--project", "In this project, for you; the default."),
    option("--shared", "In this project, for everybody who has it from git."),
    option("--user", "In all projects of yours."),
    option(f"--agent [{'|'.join(HOSTS)}]", "Whose hooks.", default="claude"),
    the_usual,
)


@click.group(cls=Group)
def plugin() -> None:
    """Install Ralph's hooks in Claude Code, Codex or Gemini, or remove them.

    What your settings hold besides stays as it is, to the byte. In a file that is for everybody,
    hooks name no path: they call the ralph on PATH, and do nothing where there is none.

    Examples:
      ralph plugin install                   hooks and /ralph-loop for claude, here
      ralph plugin install --shared          for everybody who works on this project
      ralph plugin install --agent codex     the same hooks for codex
      ralph plugin status                    what is installed where
      ralph plugin uninstall                 remove it all again
    """


def _scope_of(*, project: bool, shared: bool, user: bool) -> str:
    if project + shared + user > 1:
        raise click.UsageError("--project, --shared and --user exclude each other.")
    return "user" if user else "shared" if shared else "project"


@plugin.command()
@_where
@option(
    "--lift-cap/--no-lift-cap",
    "Let claude be held more than 8 times in a row without a tool call. At a terminal that "
    "is asked.",
)
@option("--mcp", "Register ralph mcp too: the agent can start, watch and steer runs.")
def install(
    *,
    project: bool,
    shared: bool,
    user: bool,
    agent: str,
    in_json: bool,
    lift_cap: bool | None,
    mcp: bool,
) -> None:
    """Install the hooks once; claude and gemini also get /ralph-loop and the like.

    Hooks in a file of yours name this very Ralph by its path: after it has moved, install again.
    Those in a file that may be committed, which is any of a project but
    .claude/settings.local.json, call the ralph on PATH.

    Examples:
      ralph plugin install                        .claude/settings.local.json, /ralph-loop
      ralph plugin install --shared               .claude/settings.json, to be committed
      ralph plugin install --lift-cap             and claude may be held more than 8 times
      ralph plugin install --mcp                  and claude has Ralph's tools, from .mcp.json
      ralph plugin install --user                 ~/.claude/settings.json, or how to get the plugin
      ralph plugin install --agent codex          .codex/hooks.json
      ralph plugin install --agent gemini --user  ~/.gemini/settings.json

    Exit codes: 0, or 2 when nothing was written.
    """
    host, scope = HOSTS[agent], _scope_of(project=project, shared=shared, user=user)
    here, environ = current_directory(), os.environ
    if lift_cap is not None and (agent != "claude" or user):
        raise click.UsageError("--lift-cap is about claude, in a project.")
    if agent == "claude" and user and _has_plugin():
        more = [to_type(host)] if mcp else []
        return _say_commands([*_plugin_commands(), *more], in_json=in_json)
    path = hooks_file(host, here, environ, scope)
    _refuse_twice(host, path, here, environ)
    is_own = scope == "project" and not host.is_portable(scope)
    plan = planned(host, path, scope, install=True, lift=lift_cap, mcp=mcp)
    if is_own:
        _refuse_tracked(plan, here, environ)
    if lift_cap is None and not in_json and scope != "user" and _would_lift(host, plan, environ):
        plan = planned(host, path, scope, install=True, lift=True, mcp=mcp)
    carry_out(plan.changes)
    if is_own:
        _hide_from_git(plan, here, environ)
    notes = _notes(host, plan, here, scope, environ)
    notes += _mcp_notes(host, path, scope) if mcp else []
    return _say(host, plan, "are in", notes, scope=scope, in_json=in_json)


@plugin.command()
@_where
def uninstall(*, project: bool, shared: bool, user: bool, agent: str, in_json: bool) -> None:
    """Remove what install has added, and nothing else.

    Examples:
      ralph plugin uninstall                 your own in this project, else those of everybody
      ralph plugin uninstall --agent codex --user

    Exit codes: 0, or 2 when nothing was written.
    """
    host, scope = HOSTS[agent], _scope_of(project=project, shared=shared, user=user)
    here, environ = current_directory(), os.environ

    def is_in(scope: str) -> bool:
        return bool(look(host, hooks_file(host, here, environ, scope), scope).events)

    if scope == "project" and not project and not is_in(scope) and is_in("shared"):
        scope = "shared"
    if agent == "claude" and user and _has_plugin() and not is_in(scope):
        name = PLUGIN.partition("@")[2]
        lines = [f"claude plugin uninstall {PLUGIN}", f"claude plugin marketplace remove {name}"]
        return _say_commands(lines, in_json=in_json)
    plan = planned(host, hooks_file(host, here, environ, scope), scope, install=False)
    carry_out(plan.changes)
    where = "are gone from" if plan.hooks.is_one else "were not in"
    return _say(host, plan, where, [], scope=scope, in_json=in_json)


@plugin.command()
@the_usual
def status(*, in_json: bool) -> None:
    """Show where the hooks are, for each agent, here and in all projects.

    Examples:
      ralph plugin status
      ralph plugin status --json | jq .claude.project.state
    """
    here = current_directory()
    report = {name: _report(host, here, os.environ) for name, host in HOSTS.items()}
    if in_json:
        click.echo(json.dumps(report))
        return
    for agent, parts in report.items():
        lines = []
        if "plugin" in parts:
            lines.append(f"plugin: {PLUGIN} is {'on' if parts['plugin'] else 'not on'}")
        for scope in _SCOPES:
            if found := parts.get(scope):
                why = found.get("trouble") or ", ".join(found["events"])
                lines.append(f"{scope}: {found['state']}: {found['file']}" + (why and f" ({why})"))
                lines += [f"{scope}: ralph mcp is in {found['mcp']}"] if found["mcp"] else []
        if parts["commands"]:
            lines.append(f"commands: {', '.join(parts['commands'])}")
        click.echo("\n".join(f"{agent:8}{line}" for line in lines))


def _has_plugin() -> bool:
    """True if this Ralph runs in its repository, which is the plugin; a package is without it."""
    return os.path.isfile(os.path.join(os.path.dirname(SOURCE), _MARKETPLACE))


def _plugin_commands() -> list[str]:
    """The commands that make Claude Code install the plugin from where this Ralph lies."""
    add = f"claude plugin marketplace add {shlex.quote(os.path.dirname(SOURCE))}"
    return [add, f"claude plugin install {PLUGIN}"]


def _refuse_twice(host: Host, path: str, project: str, environ: Mapping[str, str]) -> None:
    """Refuse to install twice. Hosts run what all files have: every stop would count twice."""
    for scope in _SCOPES:
        if scope == "user" and not host.user_file(environ):
            continue
        other = hooks_file(host, project, environ, scope)
        same = os.path.realpath(path) == os.path.realpath(other)
        if not same and look(host, other, scope).events:
            remedy = f"ralph plugin uninstall --agent {host.agent} --{scope}"
            raise ConfigError(
                f"the hooks are in {other} already, and would run twice",
                f"Take them out there first: {remedy}",
            )


def _refuse_tracked(plan: FileChanges, project: str, environ: Mapping[str, str]) -> None:
    """Refuse to write paths of this machine into a file that git keeps."""
    for path in (each.path for each in (plan.hooks, plan.servers) if each is not None):
        if git_output(project, environ, "ls-files", "-z", "--", path):
            message = f"git keeps {path}, and it would name paths of this machine"
            untrack = f"git rm --cached {shlex.quote(os.path.relpath(path))}"
            raise ConfigError(message, f"For everybody: --shared. Or let it be yours: {untrack}")


def _hide_from_git(plan: FileChanges, project: str, environ: Mapping[str, str]) -> None:
    """Let git ignore in this clone what is this person's alone."""
    own = (each for each in plan.changes if each is not plan.servers or each.before is None)
    for change in own:
        name = os.path.relpath(change.path, project)
        kept = git_output(project, environ, "ls-files", "-z", "--", name)
        if kept == b"" and not is_ignored(project, name, environ):
            ignore_here(project, f"**/{name}", environ)


def _would_lift(host: Host, plan: FileChanges, environ: Mapping[str, str]) -> bool:
    """Offer to lift the host's cap, to a person, where it has one that nobody has lifted."""
    asks = host.agent == "claude" and is_terminal(sys.stdin) and is_terminal(sys.stdout)
    if not asks or is_lifted(host, plan.hooks.after, environ):
        return False
    click.echo("Claude Code ends a turn after 8 held stops in a row without a tool call.")
    with dialogue("nothing was written."):
        return ask("Lift that in this project? (y/N): ", yes)


def _notes(
    host: Host, plan: FileChanges, project: str, scope: str, environ: Mapping[str, str]
) -> list[str]:
    notes = [host.note]
    if host.agent == "claude" and is_lifted(host, plan.hooks.after, environ):
        notes = [f"Claude may be held as often as it takes ({CAP}=0)."]
    if host.agent == "claude" and plugin_is_on({**environ, "CLAUDE_PROJECT_DIR": project}):
        notes.append(f"The plugin {PLUGIN} is on: these hooks leave the work to it.")
    if host.is_portable(scope):
        notes.append("They may be committed: they call the ralph on PATH, if there is one.")
        if shutil.which("ralph", path=environ.get("PATH")) is None:
            off = f"ralph plugin uninstall --agent {host.agent} --{scope}"
            own = f"ralph plugin install --agent {host.agent} --user"
            notes.append(f"There is none on yours now: install Ralph by pipx, or: {off} && {own}")
    return notes


def _mcp_notes(host: Host, path: str, scope: str) -> list[str]:
    """Where `ralph mcp` is registered now, or how to do it."""
    where = server_there(host, path, scope)
    if not where:
        return [f"To register ralph mcp, type: {to_type(host)}"]
    asks = " Claude asks once whether to use it." if host.agent == "claude" else ""
    return [f"ralph mcp is in {where}, as the server ralph.{asks}"]


def _report(host: Host, project: str, environ: Mapping[str, str]) -> dict[str, Any]:
    scopes = _SCOPES if host.shared else ("project", "user")
    parts: dict[str, Any] = {}
    for scope in scopes:
        is_there = scope != "user" or host.user_file(environ)
        path = hooks_file(host, project, environ, scope) if is_there else ""
        found = look(host, path, scope) if path else None
        parts[scope] = found and {
            "file": found.path,
            "state": found.state,
            "events": list(found.events),
            "mcp": server_there(host, path, scope) or None,
            **({"trouble": found.trouble} if found.trouble else {}),
        }
    parts["commands"] = commands_there(host, project)
    if host.agent == "claude":
        parts["plugin"] = plugin_is_on({**environ, "CLAUDE_PROJECT_DIR": project})
    return parts


def _say(
    host: Host, plan: FileChanges, where: str, notes: list[str], *, scope: str, in_json: bool
) -> None:
    """Say what was changed; after an installation there are notes."""
    files = [change.path for change in plan.commands if change.after is not None]
    kept = list(map(os.path.relpath, plan.kept))
    done = {
        "agent": host.agent,
        "scope": scope,
        "file": plan.hooks.path,
        "changed": any(change.is_one for change in plan.changes),
        "commands": files if scope == "user" else list(map(os.path.relpath, files)),
        "kept": kept,
        "events": list(host.events.values()) if notes else [],
        "mcp": server_there(host, plan.hooks.path, scope) or None,
        "notes": notes,
    }
    already = "" if done["changed"] else ", as before"
    lines = [f"Ralph's hooks for {host.agent} {where} {plan.hooks.path}{already}."]
    if notes:
        lines.append(f"  events    {', '.join(host.events.values())}")
    if files:
        names = [os.path.basename(path).partition(".")[0] for path in files]
        lines.append(f"  commands  {', '.join(f'/{name}' for name in names)}")
    lines += [f"  {path} is not Ralph's, and stays as it is." for path in kept]
    if not notes and plan.servers is not None and plan.servers.is_one:
        lines.append(f"ralph mcp is gone from {plan.servers.path}.")
    click.echo(json.dumps(done) if in_json else "\n".join([*lines, *notes]))


def _say_commands(lines: list[str], *, in_json: bool) -> None:
    """Claude installs plugins itself; nothing is run here."""
    told = {"agent": "claude", "scope": "user", "changed": False, "run": lines}
    words = "\n  ".join(["Claude Code manages plugins itself. Type:", *lines])
    click.echo(json.dumps(told) if in_json else words)
