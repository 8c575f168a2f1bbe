"""Which forge a project is at, and whom its token is told."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ralph.errors import ConfigError
from ralph.forge.commands import Run, runner
from ralph.forge.found import Origin, forge_of, open_github, origin_of
from ralph.text.redact import redact

HUB = {"GITHUB_API_URL": "https://hub.test/api/v3", "GITHUB_REPOSITORY": "o/r"}
LAB = {"CI_API_V4_URL": "https://lab.test/api/v4", "CI_PROJECT_PATH": "g/s/p"}


class Keepers:
    """gh and glab, which know a token for some hosts."""

    def __init__(self, **tokens: str) -> None:
        self.tokens = {name.replace("_", "."): token for name, token in tokens.items()}
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str]) -> tuple[int, str, str]:
        self.asked.append(" ".join(argv))
        token = self.tokens.get(argv[-1])
        return (0, f"{token}\n", "") if token else (1, "", "no oauth token found")


NOBODY = Keepers()


def found(
    repo: Path, origin: str, environ: dict[str, str], run: Run = NOBODY
) -> tuple[str, str, str, str]:
    """The forge, its API, the repository and the token."""
    if origin:
        subprocess.run(["git", "remote", "add", "origin", origin], check=True)
    there = forge_of({"PATH": os.environ["PATH"], **environ}, str(repo), run=run)
    token = there.service.authorization.removeprefix("Bearer ")
    return there.name, there.service.url, there.repository, token


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("git@github.com:o/r.git", Origin("github.com", "o/r")),
        ("github.com:o/r", Origin("github.com", "o/r")),
        ("https://github.com/o/r.git", Origin("github.com", "o/r")),
        ("https://www.GitHub.com/o/r/", Origin("github.com", "o/r")),
        ("https://user:secret@github.com/o/r", Origin("github.com", "o/r")),
        ("ssh://git@ssh.github.com:443/o/r.git", Origin("github.com", "o/r")),
        ("ssh://git@git.corp.test:2222/o/r.git", Origin("git.corp.test", "o/r")),
        ("https://git.corp.test:8443/g/s/p.git", Origin("git.corp.test:8443", "g/s/p")),
        ("http://127.0.0.1:8000/o/r", Origin("127.0.0.1:8000", "o/r", "http")),
        ("https://[::1]:8000/o/r", Origin("[::1]:8000", "o/r")),
        ("git@[::1]:o/r", Origin("[::1]", "o/r")),
        ("git@altssh.gitlab.com:g/s/p.git", Origin("gitlab.com", "g/s/p")),
        ("git://github.com/o/r", Origin("github.com", "o/r")),
        ("/srv/git/r.git", Origin()),
        ("../r.git", Origin()),
        ("file:///srv/r.git", Origin()),
        ("https://h:x/o/r", Origin()),
        ("", Origin()),
    ],
)
def test_the_place_of_an_origin(url: str, origin: Origin) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    ("origin", "environ", "answer"),
    [
        # Variables of one forge.
        (
            "git@github.com:a/b.git",
            {**HUB, "GITHUB_TOKEN": "t1"},
            ("GitHub", "https://hub.test/api/v3", "o/r", "t1"),
        ),
        (
            "git@github.com:a/b.git",
            {**LAB, "GITLAB_TOKEN": "t2", "GITHUB_TOKEN": "t1"},
            ("GitLab", "https://lab.test/api/v4", "g/s/p", "t2"),
        ),
        # Parts of them: origin has the rest.
        (
            "git@github.com:a/b.git",
            {"GITHUB_REPOSITORY": "o/r", "GH_TOKEN": "t1"},
            ("GitHub", "https://api.github.com", "o/r", "t1"),
        ),
        (
            "ssh://git@hub.test:22/a/b.git",
            {"GITHUB_API_URL": HUB["GITHUB_API_URL"], "GITHUB_TOKEN": "t1"},
            ("GitHub", "https://hub.test/api/v3", "a/b", "t1"),
        ),
        (
            "git@lab.test:a/b/c.git",
            {"CI_API_V4_URL": LAB["CI_API_V4_URL"], "GITLAB_TOKEN": "t2"},
            ("GitLab", "https://lab.test/api/v4", "a/b/c", "t2"),
        ),
        # Those of both: origin's host.
        (
            "git@hub.test:a/b.git",
            {**HUB, **LAB, "GITHUB_TOKEN": "t1", "GITLAB_TOKEN": "t2"},
            ("GitHub", "https://hub.test/api/v3", "o/r", "t1"),
        ),
        (
            "git@lab.test:a/b.git",
            {**HUB, **LAB, "GITHUB_TOKEN": "t1", "GITLAB_TOKEN": "t2"},
            ("GitLab", "https://lab.test/api/v4", "g/s/p", "t2"),
        ),
        # None: origin's host again.
        (
            "https://github.com/a/b",
            {"GITHUB_TOKEN": "t1", "GITLAB_TOKEN": "t2"},
            ("GitHub", "https://api.github.com", "a/b", "t1"),
        ),
        (
            "https://gitlab.com/a/b/c",
            {"GITHUB_TOKEN": "t1", "GITLAB_TOKEN": "t2"},
            ("GitLab", "https://gitlab.com/api/v4", "a/b/c", "t2"),
        ),
        (
            "https://corp.ghe.com/a/b",
            {"GITHUB_TOKEN": "t1"},
            ("GitHub", "https://api.corp.ghe.com", "a/b", "t1"),
        ),
        # What gh and glab keep is for that host.
        ("git@github.com:a/b", {}, ("GitHub", "https://api.github.com", "a/b", "kept1")),
        (
            "git@gitlab.corp.test:a/b",
            {},
            ("GitLab", "https://gitlab.corp.test/api/v4", "a/b", "kept2"),
        ),
        (
            "git@github.corp.test:a/b",
            {"GITHUB_TOKEN": "t1", "GH_ENTERPRISE_TOKEN": "t3"},
            ("GitHub", "https://github.corp.test/api/v3", "a/b", "kept3"),
        ),
        (
            "git@github.corp.test:a/b",
            {"GH_HOST": "github.corp.test", "GH_ENTERPRISE_TOKEN": "t3", "GITHUB_TOKEN": "t1"},
            ("GitHub", "https://github.corp.test/api/v3", "a/b", "t3"),
        ),
        # The host tells nothing: the token that is there does.
        (
            "/srv/git/r.git",
            {"GITHUB_REPOSITORY": "o/r", "GITHUB_TOKEN": "t1"},
            ("GitHub", "https://api.github.com", "o/r", "t1"),
        ),
    ],
)
def test_which_forge(
    repo: Path, origin: str, environ: dict[str, str], answer: tuple[str, str, str, str]
) -> None:
    kept = Keepers(github_com="kept1", gitlab_corp_test="kept2", github_corp_test="kept3")
    assert found(repo, origin, environ, kept) == answer
    assert redact(f"it is {answer[3]}!") == "it is [redacted]!" or len(answer[3]) < 4


@pytest.mark.parametrize(
    ("origin", "environ", "words", "remedy"),
    [
        ("", {}, "no forge is to be seen", "GITHUB_REPOSITORY=OWNER/NAME"),
        ("/srv/r.git", {"GITHUB_TOKEN": "t"}, "no forge is to be seen", "CI_PROJECT_PATH"),
        (
            "git@work:o/r",
            {},
            "origin is at work, which may be",
            "GITHUB_API_URL=https://HOST/api/v3",
        ),
        ("git@github.com:o/r", {}, "no token for GitHub at github.com", "gh auth login, or set"),
        ("git@gitlab.com:o/r", {}, "no token for GitLab at gitlab.com", "glab auth login"),
        ("git@github.com:o", {"GITHUB_TOKEN": "t"}, "'o' is no repository", "GITHUB_REPOSITORY="),
        (
            "git@github.com:o/r",
            {"GITHUB_REPOSITORY": "../x"},
            "no repository",
            "GITHUB_REPOSITORY=",
        ),
        ("git@gitlab.com:p", {"GITLAB_TOKEN": "t"}, "'p' is no repository", "CI_PROJECT_PATH="),
        ("", {"GITHUB_API_URL": "https://hub.test"}, "origin names none", "GITHUB_REPOSITORY="),
        ("git@github.com:o/r", {"GITHUB_TOKEN": "a\nb"}, "GITHUB_TOKEN is no token", "Set it anew"),
        (
            "git@github.com:o/r",
            {"GITHUB_API_URL": "http://hub.test", "GITHUB_TOKEN": "t"},
            "GITHUB_API_URL is no address",
            "https://",
        ),
        # A token is for whom the environment names, not for whoever origin is at.
        (
            "git@github.evil.test:o/r",
            {"GITHUB_TOKEN": "t", "GH_ENTERPRISE_TOKEN": "t"},
            "no token for GitHub at github.evil.test",
            "GITHUB_API_URL=https://github.evil.test/api/v3",
        ),
        (
            "git@gitlab.evil.test:o/r",
            {"GITLAB_TOKEN": "t"},
            "no token for GitLab at gitlab.evil.test",
            "CI_API_V4_URL=https://gitlab.evil.test/api/v4",
        ),
        ("git@evil.test:o/r", {"GITLAB_TOKEN": "t"}, "no token for GitLab", "glab auth login"),
        ("git@evil.test:o/r", {"GITHUB_TOKEN": "t"}, "no token for GitHub", "--hostname evil.test"),
    ],
)
def test_what_to_type_where_it_is_not_to_be_known(
    repo: Path, origin: str, environ: dict[str, str], words: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as error:
        found(repo, origin, environ)
    assert words in error.value.message
    assert remedy in error.value.remedy


def test_gh_is_asked_without_the_tokens_of_the_environment(repo: Path, tmp_path: Path) -> None:
    """It would give them out for any host."""
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "kept$GH_TOKEN$GITHUB_TOKEN$GH_ENTERPRISE_TOKEN"\n')
    program.chmod(0o755)
    environ = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "GH_TOKEN": "a",
        "GITHUB_TOKEN": "b",
        "GH_ENTERPRISE_TOKEN": "c",
    }
    subprocess.run(["git", "remote", "add", "origin", "git@github.corp.test:o/r"], check=True)
    assert forge_of(environ, str(repo)).service.authorization == "Bearer kept"


@pytest.mark.parametrize(
    ("environ", "url", "token"),
    [
        ({}, "https://api.github.com", ""),
        ({"GITHUB_TOKEN": "t"}, "https://api.github.com", "Bearer t"),
        ({"GH_HOST": "hub.test"}, "https://hub.test/api/v3", "Bearer kept"),
        ({"GH_HOST": "hub.test", "GH_TOKEN": "t"}, "https://hub.test/api/v3", "Bearer t"),
        ({**HUB, "GITHUB_TOKEN": "t"}, "https://hub.test/api/v3", "Bearer t"),
    ],
)
def test_github_for_issues_needs_no_origin(environ: dict[str, str], url: str, token: str) -> None:
    there = open_github(environ, Keepers(hub_test="kept"))
    assert (there.service.url, there.service.authorization) == (url, token)


@pytest.mark.parametrize("said", ["", "two\nlines", "with a blank", "é"])
def test_what_is_no_token_is_none(said: str) -> None:
    assert open_github({}, lambda _: (0, said, "")).service.authorization == ""


# ------------------------------------------------------------------ a command


def test_a_command_is_run_without_a_shell(workspace: Path) -> None:
    program = workspace / "gh"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@" "$GH_PROMPT_DISABLED"\n')
    program.chmod(0o755)
    run = runner(str(workspace), dict(os.environ))
    assert run([str(program), "a b", "$HOME;"]) == (0, "a b|$HOME;|1|", "")


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        (
            "echo out; echo one >&2; echo 'not logged in' >&2; exit 4",
            (4, "out\n", "one\nnot logged in\n"),
        ),
        ("sleep 60", (124, "", "it took longer than 0.5s")),
    ],
)
def test_a_command_that_fails_or_hangs_is_words(
    workspace: Path, script: str, answer: tuple[int, str, str]
) -> None:
    program = workspace / "gh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    patience = 0.5 if "sleep" in script else 60.0
    assert runner(str(workspace), dict(os.environ), patience)([str(program)]) == answer
    code, _, words = runner(str(workspace), dict(os.environ))(["/nowhere/gh"])
    assert (code, words[:16]) == (127, "it cannot be run")
