"""A project with stories, an agent that is a Python script, and what became of the list."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from run_support import Done, ralph

from kits.sandbox.stage import overlay_is_usable

Json = dict[str, Any]
# What an honest agent does by R's modes; a test says what each turn does beside, or instead.
# By way of a shell: a `#!` line breaks on blanks.
AGENT = r"""#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import json, os, re, shutil, subprocess, sys
prompt = sys.argv[-1]
notes = {notes!r}
os.makedirs(notes, exist_ok=True)
n = len(os.listdir(notes)) + 1
with open(os.path.join(notes, f"{{n:02d}}.prompt"), "w") as file:
    file.write(prompt)
mode = re.search(r"^Mode: (\S+)", prompt, re.M)[1]
name = re.search(r"^Story: (\S+)", prompt, re.M)[1]
path = os.path.join({folder!r}, "tasks.json")
with open(path) as file:
    listing = json.load(file)
stories = {{story["id"]: story for story in listing["userStories"]}}
s = stories[name]
rejections, skip_review, commits, save = {rejections!r}, {skip!r}, True, True
if mode == "implement" and s["reviewStatus"] != "approved":
    s.update(notes="done", passes=True) if skip_review else s.update(
        reviewStatus="needs_review", notes="done")
elif mode == "review":
    s["reviewCount"] += 1
    if s["reviewCount"] <= rejections:
        s.update(reviewStatus="changes_requested", reviewFeedback="mend line 3")
    else:
        s.update(reviewStatus="approved", passes=True)
elif mode == "review-fix":
    s.update(reviewStatus="needs_review", reviewFeedback="")
with open(f"{{name}}.txt", "a") as file:
    file.write(f"{{mode}} {{n}}\n")
said = f"{{mode}} {{name}}"
{script}
if save:
    with open(path, "w") as file:
        json.dump(listing, file, indent=2)
if commits:
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", f"{{mode}}: {{name}}"], check=False)
if said:
    print(said)
"""


IN_OVERLAY = pytest.mark.skipif(not overlay_is_usable(), reason="this machine allows no namespaces")
APPROVED = {"passes": True, "reviewStatus": "approved", "reviewCount": 1, "notes": "done"}


class StoryProject:
    """A git repository with stories."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.notes = path.parent / "notes"
        self.notes.mkdir()
        monkeypatch.chdir(path)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A Person")
        self.git("config", "user.email", "person@example.com")
        self.write({"prompt.md": "Work on it.\n", "prd.md": "# What is wanted\n"})
        self.write({"progress.txt": "# Log\n"})
        (path / ".gitignore").write_text(".ralph-active\n")

    def write(self, files: dict[str, str]) -> None:
        """Files of the ralph folder."""
        (self.path / "ralph").mkdir(exist_ok=True)
        for name, text in files.items():
            (self.path / "ralph" / name).write_text(text)

    def stories(self, *stories: Json, **top: object) -> None:
        """Write the list, and commit everything."""
        head = {"project": "p", "branchName": "ralph/x", "description": "", "verifyCommands": []}
        self.write({"tasks.json": json.dumps({**head, **top, "userStories": stories}, indent=2)})
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "begin")

    def git(self, *arguments: str) -> str:
        """What git says; an error if it fails."""
        done = subprocess.run(
            ("git", *arguments), cwd=self.path, capture_output=True, check=False, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def agent(
        self,
        script: str = "",
        *,
        rejections: int = 0,
        skip: bool = False,
        name: str = "agent",
        notes: str = "",
        folder: str = "ralph",
    ) -> str:
        """Install the agent; the script runs in every turn before the list is saved."""
        program = self.path.parent / name
        program.write_text(
            AGENT.format(
                python=sys.executable,
                notes=notes or str(self.notes),
                folder=folder,
                rejections=rejections,
                skip=skip,
                script=script,
            )
        )
        program.chmod(0o755)
        return str(program)

    def run(self, script: str = "", *arguments: str, rejections: int = 0) -> Done:
        """`ralph prd run` in place, with an agent that does this."""
        skip = "--skip-review" in arguments
        agent = self.agent(script, rejections=rejections, skip=skip)
        return ralph("prd", "run", "--agent", agent, "--no-sandbox", *arguments)

    def story(self, number: int) -> Json:
        """A story as the file has it now."""
        name = f"US-{number:03d}"
        listing = json.loads((self.path / "ralph" / "tasks.json").read_text())
        [found] = [s for s in listing["userStories"] if s["id"] == name]
        return dict(found)

    def fates(self) -> list[tuple[bool, object, int]]:
        """What a review decides, of every story."""
        listing = json.loads((self.path / "ralph" / "tasks.json").read_text())
        return [(s["passes"], s["reviewStatus"], s["reviewCount"]) for s in listing["userStories"]]

    def modes(self) -> str:
        """What the turns were for: `implement review`."""
        firsts = [prompt.splitlines()[0] for prompt in self.prompts()]
        return " ".join(first.removeprefix("Mode: ") for first in firsts)

    def prompts(self) -> list[str]:
        """What the agent was told, turn by turn."""
        return [path.read_text() for path in sorted(self.notes.iterdir())]

    def subjects(self) -> list[str]:
        """What was committed, newest first."""
        return self.git("log", "--format=%s").splitlines()

    def dirt(self) -> str:
        """What is not committed."""
        return self.git("status", "--porcelain")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoryProject:
    """A project of its own."""
    path = tmp_path / "project"
    path.mkdir()
    return StoryProject(path, monkeypatch)
