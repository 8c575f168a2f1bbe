"""`ralph completion`: lets a shell complete commands, options and their values.

The shell calls `ralph` with `_RALPH_COMPLETE` set; `run_command_line` then asks `answer`.
"""

import os

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from ralph.cli.base import command
from ralph.errors import ConfigError

VARIABLE = "_RALPH_COMPLETE"
_MOST_RUNS = 50
_INSTALL = {
    "bash": 'Add to ~/.bashrc: eval "$(ralph completion bash)"',
    "zsh": 'Add to ~/.zshrc, after compinit: eval "$(ralph completion zsh)"',
    "fish": "Type once: ralph completion fish > ~/.config/fish/completions/ralph.fish",
}
Items = list[CompletionItem[str]]


class RalphComplete(ShellComplete):
    """Completes as `ralph` reads its arguments: `run` is the default, `-C DIR` may come first."""

    def get_completions(self, args: list[str], incomplete: str) -> Items:
        from ralph.cli.commands import ralph, with_command

        first_word = not args or (args[0] == "-C" and len(args) == 2)
        if first_word and not incomplete.startswith("-"):  # no command is imported to list it
            known = ralph.described().items()
            return [CompletionItem(n, help=about) for n, about in known if n.startswith(incomplete)]
        found = super().get_completions(with_command(args), incomplete)
        if not args:
            found += super().get_completions(["run"], incomplete)
        return list({item.value: item for item in found}.values())


class _Bash(RalphComplete, BashComplete):
    """Bash 4.4 or newer."""


class _Zsh(RalphComplete, ZshComplete):
    """Zsh."""


class _Fish(RalphComplete, FishComplete):
    """Fish. A description may hold a comma, at which click's script would cut it off."""

    source_template = FishComplete.source_template.replace("string split ", "string split -m 1 ")


_SHELLS: dict[str, type[RalphComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


@command()
@click.argument("shell", required=False, type=click.Choice(list(_SHELLS)))
def completion(*, shell: str | None) -> None:
    """Print the script that makes a shell complete `ralph`.

    Without a name it is the shell that $SHELL names, and how to install the script is said on
    stderr.

    Examples:
      eval "$(ralph completion bash)"         in ~/.bashrc
      eval "$(ralph completion zsh)"          in ~/.zshrc, after compinit
      ralph completion fish > ~/.config/fish/completions/ralph.fish
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in _SHELLS:
        problem = f"$SHELL is {name}, for which there is no script" if name else "$SHELL is not set"
        raise ConfigError(problem, f"Name the shell: ralph completion {'|'.join(_SHELLS)}")
    click.echo(_completer(name).source(), nl=False)
    if shell is None:
        click.echo(f"[ralph] This was for {name}. {_INSTALL[name]}", err=True)


def answer(instruction: str) -> int:
    """Print the completions and nothing else: someone is typing there."""
    shell = instruction.removesuffix("_complete")
    if shell not in _SHELLS:
        return 1
    try:
        click.echo(_completer(shell).complete())
    except Exception:  # noqa: BLE001  a traceback in the middle of someone's typing helps nobody
        return 1
    return 0


def _completer(shell: str) -> RalphComplete:
    from ralph.cli.commands import ralph

    return _SHELLS[shell](ralph, {}, "ralph", VARIABLE)


# ------------------------------------------------------------------ values
# Options name these by `params.completed_by`, so that the module is imported only when a shell
# asks.


def agents(_: click.Context, __: click.Parameter, incomplete: str) -> Items:
    """The agents that are installed, else all that Ralph knows; a path is completed as one."""
    import shutil

    from ralph.agents.kinds import PROGRAMS

    if os.sep in incomplete:
        return [CompletionItem(incomplete, type="file")]
    known = [name for name in PROGRAMS if name.startswith(incomplete)]
    return list(map(CompletionItem, [name for name in known if shutil.which(name)] or known))


def models(_: click.Context, __: click.Parameter, incomplete: str) -> Items:
    """The models whose prices are known."""
    from ralph.agents.prices import known_models
    from ralph.agents.providers import OWN

    names = (*known_models(), *(known_models(OWN) if incomplete else ()))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def run_ids(_: click.Context, __: click.Parameter, incomplete: str) -> Items:
    """The runs of this workspace, newest first; where none fits, those of all workspaces."""
    from ralph.files.state_dir import project_dir, state_root
    from ralph.journal import runs

    root = state_root(os.environ)
    for places in ([project_dir(root, os.getcwd())], runs.projects(root)):
        names = [name for p in places for name in runs.directories(os.path.join(p, "runs"))]
        if fitting := sorted((n for n in names if n.startswith(incomplete)), reverse=True):
            return list(map(CompletionItem, fitting[:_MOST_RUNS]))
    return []


def sandbox_names(_: click.Context, __: click.Parameter, incomplete: str) -> Items:
    """The sandboxes of this directory that somebody comes back to."""
    from ralph.files.state_dir import state_root
    from ralph.sandbox.kept import all_of

    names = [one.name for one in all_of(state_root(os.environ), os.getcwd())]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
