"""Lists to import, and a `gh` that is a script with a file of issues behind it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from run_support import program

Json = dict[str, Any]
# Keeps its issues in a file, notes what it was asked, and does what the tests need of gh.
_GH = r"""
import json, os, sys
home = os.path.dirname(os.path.abspath(sys.argv[0]))
arguments = sys.argv[1:]
with open(os.path.join(home, "asked"), "a") as asked:
    asked.write(json.dumps(arguments) + "\n")
path = os.path.join(home, "issues.json")
if os.path.exists(os.path.join(home, "broken")):
    sys.stderr.write("some words\nerror connecting to api.github.com\n")
    sys.exit(1)
issues = json.load(open(path))
verb = arguments[1]
options = dict(a[2:].split("=", 1) for a in arguments if a.startswith("--") and "=" in a)
if verb == "list":
    wanted = [i for i in issues if options["state"] == "all" or i["state"] == "OPEN"]
    label = options.get("label")
    named = [i for i in wanted if not label or label in [one["name"] for one in i["labels"]]]
    print(json.dumps(named))
    sys.exit(0)
issue = next((i for i in issues if str(i["number"]) == arguments[2]), None)
if issue is None:
    sys.stderr.write("GraphQL: Could not resolve to an issue\n")
    sys.exit(1)
if verb == "view":
    print(json.dumps(issue))
else:
    issue["state"] = {"close": "CLOSED", "reopen": "OPEN"}[verb]
    json.dump(issues, open(path, "w"))
"""


class FakeGh:
    """GitHub, as far as the tests go."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home.mkdir()
        self._home = home
        (home / "gh.py").write_text(_GH)
        program(home / "gh", f'exec python3 "{home}/gh.py" "$@"')
        monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")

    def has(self, *issues: Json) -> None:
        """These issues are there."""
        (self._home / "issues.json").write_text(json.dumps(issues))

    def issue(self, number: int) -> Json:
        """An issue as it is now."""
        issues: list[Json] = json.loads((self._home / "issues.json").read_text())
        return next(issue for issue in issues if issue["number"] == number)

    def breaks(self) -> None:
        """From now on it fails."""
        (self._home / "broken").touch()

    def works(self) -> None:
        """From now on it does not."""
        (self._home / "broken").unlink()

    def asked(self, verb: str) -> list[list[str]]:
        """What it was asked with this verb."""
        path = self._home / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        return [asked for line in lines if (asked := json.loads(line))[1] == verb]


def issue(number: int, **more: Any) -> Json:  # noqa: ANN401
    """An open issue."""
    return {
        "number": number,
        "title": f"Issue {number}",
        "body": "Please.",
        "state": "OPEN",
        "labels": [],
        "url": f"https://github.com/some/where/issues/{number}",
        "createdAt": "2026-01-31T12:00:00Z",
        **more,
    }


def story(key: str, **more: Any) -> Json:  # noqa: ANN401
    """A story of a prd.json."""
    return {
        "id": key,
        "title": f"Do {key}",
        "description": "As a user",
        "acceptanceCriteria": ["It works"],
        "priority": 1,
        "passes": False,
        "notes": "",
        **more,
    }


def prd(path: Path, *stories: Json) -> str:
    """Write a prd.json; its text."""
    root = {"project": "App", "branchName": "ralph/app", "description": "An app"}
    text = json.dumps({**root, "userStories": list(stories)}, indent=2) + "\n"
    path.write_text(text)
    return text
