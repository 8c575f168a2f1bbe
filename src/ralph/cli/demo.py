"""`ralph demo`: the whole idea in a few seconds, with a scripted agent in place of a real one."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

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
_WRITE = {"name": "Write", "input": {"file_path": "greet.py"}, "output": "File written."}
_SCRIPT = {
    "turns": [
        {"text": words, "files": {"greet.py": content}, "tools": [_WRITE], "response": "DONE"}
        for words, content in (
            (
                "I write greet.py. That should do it.",
                'def greet(name):\n    return f"Hello {name}"\n',
            ),
            (
                "The check shows what is missing: a comma and a bang.",
                'def greet(name):\n    return f"Hello, {name}!"\n',
            ),
        )
    ]
    + [{"text": "Add greet"}]
}


@command()
@option("--json", "Print what the run prints with --json.", "in_json")
def demo(*, in_json: bool) -> int:
    """See Ralph at work, without any agent, key or network.

    In a temporary git repository a scripted agent claims success too early. The guardrail does
    not pass, so the claim is not believed; the failure goes into the next prompt, and the second
    iteration is.

    Examples:
      ralph demo                     watch it, then look into the directory it names
      ralph demo --json | tail -1    how it ended, for a program
    """
    if shutil.which("git") is None:
        raise ConfigError("ralph demo needs git", "Install it: sudo apt-get install git")
    home = tempfile.mkdtemp(prefix="ralph-demo-")
    project = os.path.join(home, "project")
    environ = _prepare(home, project)
    if not in_json:
        click.echo(f"A scripted agent works in {project}.\nIts guardrail is: {_CHECK}\n", err=True)
    arguments = [sys.executable, "-m", "ralph", "run", "-C", project, "-p", _PROMPT, "-m", "5"]
    done = subprocess.run([*arguments, *(["--json"] if in_json else [])], env=environ, check=False)
    if not in_json and done.returncode == 0:
        _conclude(home, project, environ)
    return done.returncode


def _prepare(home: str, project: str) -> dict[str, str]:
    from ralph.testing.scripted_agent.install import install_agent

    os.makedirs(os.path.join(project, ".ralph"))
    bin_dir = os.path.join(home, "bin")
    agent = install_agent(bin_dir, _SCRIPT, kind="claude", name="scripted-agent")
    settings = {
        "agent": {"command": agent, "kind": "claude"},
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
        **{k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
        "RALPH_STATE_DIR": os.path.join(home, "state"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in identity.items()},
    }
    for words in ("init -q", "add -A", "commit -q -m Begin"):
        subprocess.run(["git", *words.split()], cwd=project, env=environ, check=True)
    return environ


def _conclude(home: str, project: str, environ: dict[str, str]) -> None:
    log = subprocess.run(
        ["git", "log", "--oneline"], cwd=project, env=environ, check=True, capture_output=True
    )
    click.echo(
        "\nWhat happened: the agent said <response>DONE</response> in iteration 1, the guardrail "
        "failed,\nso Ralph did not believe it and sent the failure back. In iteration 2 the "
        "guardrail passed,\nthe claim was believed, and the work was committed:\n\n"
        + "".join(f"  {line}\n" for line in log.stdout.decode().splitlines())
        + f"\nThe journal and everything else is in {home} (delete it when you like).\n"
        "Next: ralph init in a project of yours, then ralph run -p 'what to do'.",
        err=True,
    )
