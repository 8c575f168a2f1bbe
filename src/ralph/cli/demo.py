"""`ralph demo`: the whole idea in a few seconds, with a scripted agent in place of a real one, or
with our own agent and a scripted model."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

import click

from ralph.cli.base import command
from ralph.cli.params import option
from ralph.errors import ConfigError

_PROMPT = (
    "Write greet.py with a function greet(name) that returns 'Hello, NAME!'. "
    "When the check passes, say <response>DONE</response>."
)
_CHECK = "python3 check.py"
_CHECK_PY = """\
from greet import greet

said = greet("Ralph")
assert said == "Hello, Ralph!", f"greet('Ralph') returned {said!r}, expected 'Hello, Ralph!'"
"""
_STORY = (  # words of each iteration, and what it writes
    ("I write greet.py. That should do it.", 'def greet(name):\n    return f"Hello {name}"\n'),
    (
        "The check shows what is missing: a comma and a bang.",
        'def greet(name):\n    return f"Hello, {name}!"\n',
    ),
)
_MESSAGE = {"text": "Add greet"}
_WRITE = {"name": "Write", "input": {"file_path": "greet.py"}, "output": "File written."}
_AGENTS_SCRIPT = {
    "turns": [
        {"text": words, "files": {"greet.py": content}, "tools": [_WRITE], "response": "DONE"}
        for words, content in _STORY
    ]
    + [_MESSAGE]
}
_MODELS_SCRIPT = {
    "turns": [
        turn
        for words, content in _STORY
        for turn in (
            {
                "text": words,
                "tools": [{"name": "write", "input": {"path": "greet.py", "content": content}}],
            },
            {"text": "<response>DONE</response>"},
        )
    ],
    "side": _MESSAGE,
}
_OWN = {"command": "builtin:anthropic:scripted", "prices": {"input": 0, "output": 0}}
_BY_AGENT = "ralph init in a project of yours, then ralph run -p 'what to do'."
_BY_KEY = (
    "set the key of a real model, such as ANTHROPIC_API_KEY, and in a project of yours:\n"
    "ralph run -p 'what to do' --agent builtin"
)


@command()
@option(
    "--agent [scripted|builtin]",
    "A scripted agent, or Ralph's own with a scripted model.",
    default="scripted",
)
@option("--json", "Print what the run prints with --json.", "in_json")
def demo(agent: str, *, in_json: bool) -> int:
    """See Ralph at work, without any agent, key or network.

    In a temporary git repository a scripted agent claims success too early. The guardrail does
    not pass, so the claim is not believed; the failure goes into the next prompt, and the second
    iteration is.

    Examples:
      ralph demo                     watch it, then look into the directory it names
      ralph demo --agent builtin     the same with Ralph's own agent, which really acts
      ralph demo --json | tail -1    how it ended, for a program
    """
    if shutil.which("git") is None:
        raise ConfigError("ralph demo needs git", "Install it: sudo apt-get install git")
    home = tempfile.mkdtemp(prefix="ralph-demo-")
    project = os.path.join(home, "project")
    is_own = agent == "builtin"
    environ = _prepare(home, project, _OWN if is_own else _scripted(home))
    if not in_json:
        who = "Ralph's own agent, with a scripted model," if is_own else "A scripted agent"
        click.echo(f"{who} works in {project}.\nIts guardrail is: {_CHECK}\n", err=True)
    model: AbstractContextManager[dict[str, str]] = _model() if is_own else nullcontext({})
    with model as place:
        arguments = [sys.executable, "-m", "ralph", "run", "-C", project, "-p", _PROMPT, "-m", "5"]
        arguments += ["--json"] if in_json else []
        done = subprocess.run(arguments, env={**environ, **place}, check=False)
    if not in_json and done.returncode == 0:
        _conclude(home, project, environ, _BY_KEY if is_own else _BY_AGENT)
    return done.returncode


@contextmanager
def _model() -> Iterator[dict[str, str]]:
    """A scripted model in this process, and the variables that lead to it."""
    from ralph.testing.scripted_model.server import ScriptedModel

    with ScriptedModel(_MODELS_SCRIPT) as model:
        nobody_between = dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1")
        yield {"ANTHROPIC_BASE_URL": model.url, **nobody_between}


def _scripted(home: str) -> dict[str, str]:
    from ralph.testing.scripted_agent.install import install_agent

    bin_dir = os.path.join(home, "bin")
    agent = install_agent(bin_dir, _AGENTS_SCRIPT, kind="claude", name="scripted-agent")
    return {"command": agent, "kind": "claude"}


def _prepare(home: str, project: str, agent: Mapping[str, object]) -> dict[str, str]:
    from ralph.agents.providers import KEYS

    os.makedirs(os.path.join(project, ".ralph"))
    settings = {
        "agent": agent,
        "guardrails": [{"command": _CHECK, "hint": "Read check.py."}],
        "scm": {"command": "git", "tasks": ["commit"]},
    }
    for name, text in (
        (".ralph/settings.json", json.dumps(settings, indent=2)),
        ("check.py", _CHECK_PY),
        (".gitignore", "__pycache__/\n"),
    ):
        with open(os.path.join(project, name), "w", encoding="utf-8") as file:
            file.write(text)
    # Nothing outside the demo's directory is read or written.
    identity = {"NAME": "Ralph demo", "EMAIL": "demo@localhost"}
    environ = {
        **{k: v for k, v in os.environ.items() if not k.startswith("GIT_") and k not in KEYS},
        "RALPH_STATE_DIR": os.path.join(home, "state"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in identity.items()},
    }
    for words in ("init -q", "add -A", "commit -q -m Begin"):
        subprocess.run(["git", *words.split()], cwd=project, env=environ, check=True)
    return environ


def _conclude(home: str, project: str, environ: dict[str, str], after: str) -> None:
    log = subprocess.run(
        ["git", "log", "--oneline"], cwd=project, env=environ, check=True, capture_output=True
    )
    click.echo(
        "\nWhat happened: the agent said <response>DONE</response> in iteration 1, the guardrail "
        "failed,\nso Ralph did not believe it and sent the failure back. In iteration 2 the "
        "guardrail passed,\nthe claim was believed, and the work was committed:\n\n"
        + "".join(f"  {line}\n" for line in log.stdout.decode().splitlines())
        + f"\nThe journal and everything else is in {home} (delete it when you like).\n"
        f"Next: {after}",
        err=True,
    )
