"""`ralph plugin`: puts Ralph's hooks into an agent's own settings, and takes them out again."""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

import click

from ralph.cli.asking import ask, dialogue, yes
from ralph.cli.base import Group
from ralph.cli.params import current_directory, option, the_usual, together
from ralph.errors import ConfigError
from ralph.hosts.files import carry_out
from ralph.hosts.hosts import HOSTS, SOURCE, Host
from ralph.hosts.install import FileChanges, commands_there, hooks_file, is_lifted, look, planned
from ralph.hosts.plugin_state import PLUGIN, plugin_is_on
from ralph.hosts.stop_cap import CAP
from ralph.ui.style import is_terminal

_MARKETPLACE = os.path.join(".claude-plugin", "marketplace.json")
_where = together(
    option("--project", "In this project; the default."),
    option("--user", "In all projects of yours."),
    option(f"--agent [{'|'.join(HOSTS)}]", "Whose hooks.", default="claude"),
    the_usual,
)


@click.group(cls=Group)
def plugin() -> None:
    """Install Ralph's hooks in Claude Code, Codex or Gemini, or remove them.

    What your settings hold besides stays as it is, to the byte. The Claude Code plugin, which has
    the same hooks for all projects, is installed by claude itself: --user says how.

    Examples:
      ralph plugin install                   hooks and /ralph-loop for claude, here
      ralph plugin install --agent codex     the same hooks for codex
      ralph plugin status                    what is installed where
      ralph plugin uninstall                 remove it all again
    """


def _is_users(*, project: bool, user: bool) -> bool:
    if project and user:
        raise click.UsageError("--project and --user exclude each other.")
    return user


@plugin.command()
@_where
@option(
    "--lift-cap/--no-lift-cap",
    "Let claude be held more than 8 times in a row without a tool call. At a terminal that "
    "is asked.",
)
def install(*, project: bool, user: bool, agent: str, in_json: bool, lift_cap: bool | None) -> None:
    """Install the hooks once; claude and gemini also get /ralph-loop and the like.

    The commands name this very Ralph by its path. After it has moved, or a newer one is there:
    install again.

    Examples:
      ralph plugin install                        .claude/settings.json, /ralph-loop
      ralph plugin install --lift-cap             and claude may be held more than 8 times
      ralph plugin install --user                 how claude gets the plugin
      ralph plugin install --agent codex          .codex/hooks.json
      ralph plugin install --agent gemini --user  ~/.gemini/settings.json

    Exit codes: 0, or 2 when nothing was written.
    """
    host, users = HOSTS[agent], _is_users(project=project, user=user)
    here, environ = current_directory(), os.environ
    if lift_cap is not None and (agent != "claude" or users):
        raise click.UsageError("--lift-cap is about claude, in a project.")
    if agent == "claude" and users:
        return _say_commands(_plugin_commands(), in_json=in_json)
    path = hooks_file(host, here, environ, user=users)
    _refuse_twice(host, path, hooks_file(host, here, environ, user=not users), users=users)
    plan = planned(host, path, here, user=users, install=True, lift=lift_cap)
    if lift_cap is None and not in_json and _would_lift(host, plan, environ):
        plan = planned(host, path, here, user=users, install=True, lift=True)
    carry_out(plan.changes)
    notes = _notes(host, plan, here, environ)
    return _say(host, plan, "are in", notes, users=users, in_json=in_json)


@plugin.command()
@_where
def uninstall(*, project: bool, user: bool, agent: str, in_json: bool) -> None:
    """Remove what install has added, and nothing else.

    Examples:
      ralph plugin uninstall
      ralph plugin uninstall --agent codex --user

    Exit codes: 0, or 2 when nothing was written.
    """
    host, users = HOSTS[agent], _is_users(project=project, user=user)
    here = current_directory()
    if agent == "claude" and users:
        name = PLUGIN.partition("@")[2]
        lines = [f"claude plugin uninstall {PLUGIN}", f"claude plugin marketplace remove {name}"]
        return _say_commands(lines, in_json=in_json)
    path = hooks_file(host, here, os.environ, user=users)
    plan = planned(host, path, here, user=users, install=False)
    carry_out(plan.changes)
    where = "are gone from" if plan.hooks.is_one else "were not in"
    return _say(host, plan, where, [], users=users, in_json=in_json)


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
        for scope in ("project", "user"):
            if found := parts[scope]:
                why = found.get("trouble") or ", ".join(found["events"])
                lines.append(f"{scope}: {found['state']}: {found['file']}" + (why and f" ({why})"))
        if parts["commands"]:
            lines.append(f"commands: {', '.join(parts['commands'])}")
        click.echo("\n".join(f"{agent:8}{line}" for line in lines))


def _plugin_commands() -> list[str]:
    """The commands that make Claude Code install the plugin from where this Ralph lies."""
    root = os.path.dirname(SOURCE)
    if not os.path.isfile(os.path.join(root, _MARKETPLACE)):
        raise ConfigError(
            "this Ralph was installed without the plugin, which is its repository",
            f"Take a clone of it: claude plugin marketplace add CLONE && "
            f"claude plugin install {PLUGIN}\nOr have the hooks in one project: "
            "ralph plugin install --project",
        )
    add = f"claude plugin marketplace add {shlex.quote(root)}"
    return [add, f"claude plugin install {PLUGIN}"]


def _refuse_twice(host: Host, path: str, other: str, *, users: bool) -> None:
    """Refuse to install twice. Hosts run what both files have: every stop would count twice."""
    if os.path.realpath(path) == os.path.realpath(other) or not look(host, other).events:
        return
    flags = f"--agent {host.agent} {'--project' if users else '--user'}"
    if host.agent == "claude":  # --user is about the plugin there
        flags = f"-C {shlex.quote(os.path.dirname(os.path.dirname(other)))}"
    remedy = f"Take them out there first: ralph plugin uninstall {flags}"
    raise ConfigError(f"the hooks are in {other} already, and would run twice", remedy)


def _would_lift(host: Host, plan: FileChanges, environ: Mapping[str, str]) -> bool:
    """Offer to lift the host's cap, to a person, where it has one that nobody has lifted."""
    asks = host.agent == "claude" and is_terminal(sys.stdin) and is_terminal(sys.stdout)
    if not asks or is_lifted(host, plan.hooks.after, environ):
        return False
    click.echo("Claude Code ends a turn after 8 held stops in a row without a tool call.")
    with dialogue("nothing was written."):
        return ask("Lift that in this project? (y/N): ", yes)


def _notes(host: Host, plan: FileChanges, project: str, environ: Mapping[str, str]) -> list[str]:
    notes = [host.note]
    if host.agent == "claude" and is_lifted(host, plan.hooks.after, environ):
        notes = [f"Claude may be held as often as it takes ({CAP}=0)."]
    if host.agent == "claude" and plugin_is_on({**environ, "CLAUDE_PROJECT_DIR": project}):
        notes.append(f"The plugin {PLUGIN} is on: these hooks leave the work to it.")
    return notes


def _report(host: Host, project: str, environ: Mapping[str, str]) -> dict[str, Any]:
    user = host.user_file(environ)
    parts: dict[str, Any] = {}
    for scope, path in (("project", os.path.join(project, host.file)), ("user", user)):
        found = look(host, path) if path else None
        parts[scope] = found and {
            "file": found.path,
            "state": found.state,
            "events": list(found.events),
            **({"trouble": found.trouble} if found.trouble else {}),
        }
    parts["commands"] = commands_there(host, project)
    if host.agent == "claude":
        parts["plugin"] = plugin_is_on({**environ, "CLAUDE_PROJECT_DIR": project})
    return parts


def _say(
    host: Host, plan: FileChanges, where: str, notes: list[str], *, users: bool, in_json: bool
) -> None:
    """Say what was changed; after an installation there are notes."""
    files = [change.path for change in plan.commands if change.after is not None]
    done = {
        "agent": host.agent,
        "scope": "user" if users else "project",
        "file": plan.hooks.path,
        "changed": any(change.is_one for change in plan.changes),
        "commands": list(map(os.path.relpath, files)),
        "kept": list(plan.kept),
        "events": list(host.events.values()) if notes else [],
        "notes": notes,
    }
    already = "" if done["changed"] else ", as before"
    lines = [f"Ralph's hooks for {host.agent} {where} {plan.hooks.path}{already}."]
    if notes:
        lines.append(f"  events    {', '.join(host.events.values())}")
    if files:
        names = [os.path.basename(path).partition(".")[0] for path in files]
        lines.append(f"  commands  {', '.join(f'/{name}' for name in names)}")
    lines += [f"  {path} is not Ralph's, and stays as it is." for path in plan.kept]
    click.echo(json.dumps(done) if in_json else "\n".join([*lines, *notes]))


def _say_commands(lines: list[str], *, in_json: bool) -> None:
    """Claude installs plugins itself; nothing is run here."""
    told = {"agent": "claude", "scope": "user", "changed": False, "run": lines}
    words = "\n  ".join(["Claude Code manages plugins itself. Type:", *lines])
    click.echo(json.dumps(told) if in_json else words)
