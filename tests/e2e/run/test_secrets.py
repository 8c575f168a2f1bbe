"""Secrets stay where they are: in no file that Ralph writes, and in no commit (ADR 13)."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from proof_support import Stage
from run_support import Done, prepare, program, ralph

pytestmark = pytest.mark.slow

COMMANDS = ("run", "tasks", "parallel", "prd")
by_all = pytest.mark.parametrize("command", COMMANDS)
TOKEN, PASSWORD, KEY = 'tok"very-secret', "from-settings-99", "sk-ant-api03-abcdefghijklmnop"
SAID = ("very-secret", PASSWORD, KEY)
PEM = "-----BEGIN EC PRIVATE KEY-----\\nMHcCAQEEIIrYSSNQFaA2Hwf1\\n-----END EC PRIVATE KEY-----\\n"
GOOD = 'write("work.txt", "good")'


@pytest.fixture
def stage(tmp_path: Path, command: str) -> Stage:
    return Stage(tmp_path / "project", command, "place")


# ------------------------------------------------------------------ sinks


def state_of(path: Path) -> list[Path]:
    """Every file that Ralph has written, but for the plan, by which a run goes on (ADR 9), and
    copies of protected files, which are put back to the byte."""
    roots = (path / ".ralph", Path(os.environ["RALPH_STATE_DIR"]))
    files = [file for root in roots for file in root.rglob("*") if file.is_file()]
    files = [file for file in files if file.parent.name != "protected"]
    return [file for file in files if file.name not in ("plan.json", "settings.json")]


def assert_silent(done: Done, path: Path) -> None:
    """Neither on the console nor in a file does anything secret stand."""
    told = {"stdout": done.out, "stderr": done.err}
    told |= {str(file): file.read_bytes().decode("utf-8", "replace") for file in state_of(path)}
    leaks = [(where, secret) for where, text in told.items() for secret in SAID if secret in text]
    assert not leaks


@by_all
def test_no_sink_tells_a_secret(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """ADR 13: "One redactor stands before every sink": console, journal, streams, prompts, logs of
    guardrails, records, what hooks and notifications are told, and commit messages."""
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    hear = f"cat >> {stage.path.parent}/heard; printenv RALPH_REASON >> {stage.path.parent}/heard"
    stage.begin(
        "echo guard $MY_TOKEN; printenv MY_TOKEN >&2; ! test -e bad",
        agent={"env": {"set": {"SVC_PASSWORD": PASSWORD}}},
        hooks={"onIterationEnd": hear, "onTaskEnd": hear},
        notify={"command": hear},
    )
    speak = f"import os\nsecrets = os.environ['MY_TOKEN'], os.environ['SVC_PASSWORD'], '{KEY}'\n"
    speak += "print(*secrets); print(*secrets, file=sys.stderr)\n"
    bad = 'write("bad", "") if n == 1 else os.path.exists("bad") and os.unlink("bad")\n'
    done = stage.play(f"{speak}{bad}{GOOD}", message=f"{speak}sys.exit()", turns=4)
    assert done.code == 0, done.err
    assert_silent(done, stage.path)
    assert "[redacted]" in done.out + done.err
    logs = [*stage.path.glob(".ralph/guardrail_*.log")]
    assert logs or stage.command == "parallel"
    assert {log.read_text() for log in logs} <= {"guard [redacted]\n[redacted]\n"}
    heard = stage.path.parent / "heard"
    words = heard.read_text() if heard.exists() else ""
    for secret in SAID:
        assert secret not in words + stage.git("log", "--format=%B")
    for more in (
        ("logs", "--raw"),
        ("logs", "--raw", "--events"),
        ("logs", "--json"),
        ("status", "--json"),
    ):
        assert_silent(ralph(*more, "-C", str(stage.path)), stage.path)


@pytest.mark.parametrize("via", ["arg", "stdin", "file"])
def test_the_agent_gets_its_prompt_and_its_environment_as_they_are(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, via: str
) -> None:
    """ADR 13: "What is executed is not altered"; what stays on disk is redacted."""
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    read = {"arg": 'printf %s "$1"', "stdin": "cat", "file": 'cat "$1"'}[via]
    line = f"{read} > ../prompt; printenv MY_TOKEN > ../env; echo '<response>DONE</response>'"
    agent = program(workspace.parent / "agent", line)
    prepare(workspace, agent={"command": agent, "kind": "text", "promptVia": via})
    prompt = f"Log in with {TOKEN} and {KEY}."
    done = ralph("run", "-p", prompt)
    assert done.code == 0, done.err
    assert (workspace.parent / "prompt").read_text().startswith(prompt)
    assert (workspace.parent / "env").read_text() == f"{TOKEN}\n"
    assert_silent(done, workspace)
    kept = [file for file in state_of(workspace) if "prompt" in file.name]
    assert len(kept) == (2 if via == "file" else 1)
    assert all(file.read_text().startswith("Log in with [redacted] and") for file in kept)
    assert_silent(ralph("run", "-p", prompt, "--dry-run"), workspace)


def test_a_token_that_is_a_common_word_eats_nothing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token "1" or "true", a password that is also the project's name."""
    for number, word in enumerate(("1", "true", "password", workspace.name)):
        monkeypatch.setenv(f"SOME_{number}_TOKEN", word)
    text = f"1 is true, the password of {workspace.name}"
    prepare(workspace, {"text": text, "response": "DONE"})
    done = ralph("run", "-p", "x")
    assert text in done.out
    assert "[redacted]" not in "".join(file.read_text() for file in state_of(workspace))


# ------------------------------------------------------------------ files

SECRET_FILES = [
    (".env", "A=1"),
    ("deploy/.env.local", "A=1"),
    ("server.pem", "a certificate"),
    ("keys/id_ed25519", "x"),
    ("config.py", f"KEY = '{KEY}'"),
    ("notes.txt", PEM),
]


@by_all
def test_a_new_file_that_looks_like_a_secret_is_not_committed(stage: Stage) -> None:
    """ "New files that look like secrets are a finding when the turn made them and they would be
    committed", whatever the guardrails are; the agent is told what to do."""
    stage.begin()
    writes = "\n".join(
        f'os.makedirs(os.path.dirname({name!r}) or ".", exist_ok=True); write({name!r}, "{text}")'
        for name, text in SECRET_FILES
    )
    commit = "git add -A && git commit -q -m work"
    done = stage.play(f"{GOOD}\n{writes}", turns=2, commit=commit)
    assert done.code != 0, done.err
    assert "These new files look like secrets and would be committed: " in done.err
    for name, why in (
        *((".env", "named like an environment with secrets"), ("server.pem", "named like a key")),
        *(("config.py", "shaped like a key in line 1"), ("notes.txt", "shaped like a key in")),
    ):
        assert f"{name} ({why}" in done.err
    assert KEY not in done.err
    if stage.command != "prd":  # there the agent commits
        assert {*stage.git("ls-files").split()}.isdisjoint(name for name, _ in SECRET_FILES)


@by_all
@pytest.mark.parametrize("mend", ["os.unlink('.env')", "open('.gitignore', 'a').write('.env\\n')"])
def test_an_agent_that_removes_or_ignores_it_goes_on(stage: Stage, mend: str) -> None:
    """ "Remove it or git-ignore it"; where the agent commits, it takes back its commit, too."""
    stage.begin()
    undo = "sh('git reset -q --soft HEAD~1; git rm -q --cached .env')"
    late = f"if os.path.exists('.env'): {mend}\n{undo if stage.command == 'prd' else ''}"
    first = 'write(".env", "A=1")'
    work = f"{GOOD}\nif n == 1: {first}\nelif n == 2:\n " + late.replace("\n", "\n ")
    done = stage.play(work, turns=4)
    assert done.code == 0, done.err
    assert "look like secrets" in done.err
    assert ".env" not in stage.git("log", "--name-only", "--format=").split()
    assert stage.committed("work.txt") == "good"


@by_all
def test_what_is_ignored_allowed_or_an_example_is_nobodys_business(stage: Stage) -> None:
    stage.write(".gitignore", ".turns\n.ralph-active\n.env\n")
    stage.begin(secrets={"allow": ["tests/*.pem", "fixtures"]})
    names = ("tests/a.pem", "fixtures/id_rsa", ".env.example", ".env.sample", "a/.env.dist", ".env")
    writes = "\n".join(
        f'os.makedirs(os.path.dirname({name!r}) or ".", exist_ok=True); write({name!r}, "x=")'
        for name in names
    )
    done = stage.play(f"{GOOD}\n{writes}", turns=3)
    assert done.code == 0, done.err
    assert "secret" not in done.err.replace("passed: secrets", "")
    assert {*stage.git("ls-files").split()} >= {*names[:-1]}


@by_all
def test_one_that_git_kept_before_is_told_of_once(stage: Stage) -> None:
    """ "Tracked ones that already existed are only warned about (once)"."""
    stage.write(".env", "A=1\n")
    stage.begin("test $(cat .turns) -gt 1" if stage.command != "parallel" else "true")
    done = stage.play(f'{GOOD}\nwrite(".env", f"A={{n}}")', turns=4)
    assert done.code == 0, done.err
    assert done.err.count(".env was in git before this run and looks like a secret") == 1
    assert stage.committed(".env") != "A=1\n"


@pytest.mark.parametrize("command", ["run", "prd"])
def test_a_commit_that_held_one_is_found_although_a_later_one_removed_it(stage: Stage) -> None:
    """ "There the agent commits itself: a commit with such a file is a finding too"."""
    stage.begin()
    leak = "sh('git add .env && git commit -qm a && git rm -q .env && git commit -qm b')"
    done = stage.play(f'{GOOD}\nif n == 1:\n write(".env", "A=1"); {leak}', turns=2)
    first = stage.git("log", "--format=%h", "--abbrev=12", "--diff-filter=A", "--", ".env").split()[
        0
    ]
    assert done.code != 0, done.err
    assert f"Commit {first} of this run holds what looks like a secret: .env" in done.err
    assert f"git reset --soft {first}~1" in done.err


@pytest.mark.parametrize("command", ["run"])
def test_a_persons_own_file_is_a_finding_only_if_a_turn_would_commit_it(stage: Stage) -> None:
    stage.begin()
    stage.write(".env", "A=1\n")
    untouched = stage.play(GOOD)
    assert untouched.code == 0, untouched.err
    assert stage.committed(".env") is None
    touched = stage.play('write(".env", f"A=2{n}")', turns=1)
    assert "look like secrets and would be committed: .env" in touched.err
    assert stage.committed(".env") is None


def test_settings_say_what_may_be_allowed(workspace: Path) -> None:
    """Bad input is exit 2, and the message says what is allowed."""
    prepare(workspace, {"text": "x"}, secrets={"allow": "*.pem"})
    done = ralph("run", "-p", "x")
    assert done.code == 2
    assert "secrets.allow" in done.err
    schema = json.loads(
        subprocess.run(
            ("python3", "-m", "ralph", "explain", "--schema"), capture_output=True, check=True
        ).stdout
    )
    assert "secrets" in json.dumps(schema)


@pytest.mark.parametrize("command", ["run"])
def test_a_run_that_commits_nothing_has_nothing_against_it(stage: Stage) -> None:
    """They "are a finding" where they would be committed."""
    stage.begin("true", scm={"command": "git", "tasks": []})
    done = stage.play(f'{GOOD}\nwrite(".env", "A=1")', turns=1)
    assert done.code == 0, done.err
    assert "secrets" not in done.err
