"""Ordinary projects complete: hooks that fix files, formatters, reports, no git (ADR 33)."""

import json
import shlex
from pathlib import Path

import pytest
from proof_support import GOOD, Stage
from run_support import ralph
from story_support import IN_OVERLAY

pytestmark = pytest.mark.slow

PLACES = ("place", pytest.param("overlay", marks=IN_OVERLAY))
by_host = pytest.mark.parametrize("command", ["run", "tasks", "parallel"])
everywhere = pytest.mark.parametrize("place", PLACES)
UGLY = 'write("work.txt", "good   \\n", 0o644)'
CHECK = "grep -q good work.txt"


@pytest.fixture
def stage(tmp_path: Path, command: str, place: str) -> Stage:
    return Stage(tmp_path / "project", command, place)


# As lint-staged does it, and as hooks of pre-commit do that fix files and fail.
HOOKS = {
    "stages what it fixes": "sed -i 's/ *$//' work.txt && git add work.txt",
    "fixes and refuses": "sed -i 's/ *$//' work.txt; git diff --quiet || exit 1",
}


@by_host
@pytest.mark.parametrize("place", ["place"])
@pytest.mark.parametrize("how", HOOKS)
def test_what_a_commit_hook_fixes_is_checked_and_committed(stage: Stage, how: str) -> None:
    """ "the commit is taken back and the gates run on that tree"."""
    stage.begin(CHECK)
    hook = stage.path / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\n{HOOKS[how]}\n")
    hook.chmod(0o755)
    done = stage.play(UGLY, turns=1)
    assert done.code == 0, done.err
    assert "commit hook: changed work.txt; the gates run again on the result" in done.err
    assert done.err.count(f"Running guardrail: {CHECK}") == 2
    assert stage.committed("work.txt") == GOOD
    assert stage.git("status", "--porcelain") == ""


@pytest.mark.parametrize(("command", "place"), [("run", "place"), ("tasks", "place")])
def test_a_hook_that_never_stops_changing_is_told(stage: Stage) -> None:
    """ "only if that fails or changes again it is a Continue (in `ralph run` reported)"."""
    stage.begin(CHECK)
    hook = stage.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho x >> work.txt && git add work.txt\n")
    hook.chmod(0o755)
    done = stage.play('write("work.txt", "good\\n", 0o644)', turns=2)
    assert (done.code == 0) == (stage.command == "run"), done.err
    assert "a commit hook changed work.txt, each time" in done.err
    assert stage.git("log", "-1", "--format=%s", "--", ".", ":!.ralph").strip() == "begin"


@everywhere
@by_host
def test_a_formatter_is_a_guardrail(stage: Stage) -> None:
    stage.begin("sed -i 's/ *$//' work.txt", CHECK)
    done = stage.play(UGLY, turns=1)
    assert done.code == 0, done.err
    assert stage.committed("work.txt") == GOOD
    assert done.err.count(f"Running guardrail: {CHECK}") == 1, "it passed on that very tree"


@everywhere
@by_host
def test_a_report_of_the_checks_is_not_committed(stage: Stage) -> None:
    stage.begin(f"date +%N > coverage.xml; {CHECK}")
    done = stage.play('write("work.txt", "good\\n", 0o644)', turns=1)
    assert done.code == 0, done.err
    assert "Left out of the commit (made by checks only): coverage.xml" in done.err
    assert stage.committed("coverage.xml") is None
    if stage.command == "tasks":
        assert stage.git("status", "--porcelain") == "?? coverage.xml\n"
        assert stage.play("").code == 0, "and the next run does not take it for a person's"


@everywhere
@by_host
def test_a_clean_room_has_what_the_tree_has(stage: Stage) -> None:
    """`proof: clean`: ignored files do not help, nor what an earlier gate wrote."""
    check = "test ! -e node_modules/cheat && test -e node_modules/dep && grep -q good work.txt"
    cheat = "touch left node_modules/cheat; rm node_modules/dep; rm -rf .git; ln -s /dev/null .git"
    gates = (check, f"test ! -e left && {{ {cheat}; echo bad > work.txt; }}")
    stage.write(".gitignore", ".turns\n.ralph-active\nnode_modules/\n")
    stage.begin(
        *gates,
        gates[1],
        check,
        proof="clean",
        loop={"setup": "mkdir -p node_modules && touch node_modules/dep"},
    )
    work = 'os.makedirs("node_modules", exist_ok=True); write("node_modules/cheat", "x")\n'
    done = stage.play(f'{work}write("work.txt", "good\\n", 0o644)', turns=1)
    assert done.code == 0, done.err
    assert stage.committed("work.txt") == GOOD
    assert len(stage.git("worktree", "list").splitlines()) == 1


COMMITS = """write("work.txt", "good\\n", 0o644)
sh("git add work.txt && git commit -qm mine")
"""


@pytest.mark.parametrize(("command", "place"), [("run", "place")])
@pytest.mark.parametrize(
    ("tasks", "work", "words", "pushed"),
    [
        (["commit", "push"], UGLY, "SCM task push done", True),
        (["push"], COMMITS, "SCM task push done", True),
        (["push"], UGLY, "Not pushed: HEAD holds another", False),
        (
            ["push"],
            f'{COMMITS}write("more.txt", "x")',
            "Not pushed: HEAD holds another tree",
            False,
        ),
    ],
    ids=["what Ralph committed", "what the agent committed", "not committed", "not all of it"],
)
def test_only_what_was_proven_is_pushed(
    stage: Stage, tmp_path: Path, tasks: list[str], work: str, words: str, *, pushed: bool
) -> None:
    """ "push" runs only if HEAD's tree is the proven one and HEAD moved."""
    stage.git("init", "-q", "--bare", str(tmp_path / "remote"))
    stage.git("remote", "add", "origin", str(tmp_path / "remote"))
    stage.git("config", "push.default", "current")
    stage.begin(CHECK, scm={"command": "git", "tasks": tasks})
    done = stage.play(work, turns=1)
    assert done.code == 0, done.err
    there = stage.git("ls-remote", "origin", "refs/heads/main").split()
    assert there[:1] == ([stage.git("rev-parse", "HEAD").strip()] if pushed else [])
    assert words in done.err
    failed = json.loads(ralph("status", "--json", "-C", str(stage.path)).out)["scm_failed"]
    assert [each["task"] for each in failed] == (["push"] if words.startswith("Not") else [])
    if pushed:
        stage.git("config", "branch.main.remote", "origin")
        assert "SCM task push" not in stage.play("pass", turns=1).err, "the other side has it all"


@pytest.mark.parametrize(("command", "place"), [("run", "place")])
def test_a_push_that_failed_is_tried_again_by_the_next_run(stage: Stage, tmp_path: Path) -> None:
    """ "whenever the gates pass, also on a clean tree": "a failed push" is tried again."""
    stage.git("remote", "add", "origin", str(tmp_path / "remote"))
    stage.git("config", "push.default", "current")
    tasks = ["commit", "push", "push --tags"]
    stage.begin(CHECK, scm={"command": "git", "tasks": tasks})
    done = stage.play('write("work.txt", "good\\n", 0o644)', turns=1)
    assert "Not pushed: fatal: " in done.err
    stage.git("init", "-q", "--bare", str(tmp_path / "remote"))
    stage.git("tag", "one")
    done = stage.play("pass", turns=1)
    assert done.code == 0, done.err
    there = {line.split()[1] for line in stage.git("ls-remote", "origin").splitlines()}
    assert there >= {"refs/heads/main", "refs/tags/one"}


@by_host
@pytest.mark.parametrize("place", ["place"])
def test_a_commit_is_signed_as_the_person_has_it(stage: Stage) -> None:
    """ "hooks and signing work": git itself commits, on our index."""
    gpg = stage.path / ".git" / "gpg"
    words = "-----BEGIN PGP SIGNATURE-----\n\nsigned\n-----END PGP SIGNATURE-----"
    told = 'printf "[GNUPG:] SIG_CREATED \\n" >&2'
    gpg.write_text(f"#!/bin/sh\ncat > /dev/null\n{told}\ncat <<E\n{words}\nE\n")
    gpg.chmod(0o755)
    stage.begin(CHECK)
    stage.git("config", "gpg.program", str(gpg))
    stage.git("config", "commit.gpgsign", "true")
    done = stage.play(UGLY, turns=1)
    assert done.code == 0, done.err
    assert "gpgsig -----BEGIN PGP" in stage.git("cat-file", "commit", "HEAD")


@pytest.mark.parametrize(("command", "place"), [("run", "overlay"), ("tasks", "overlay")])
def test_a_clean_room_is_set_up_in_the_sandbox(stage: Stage, tmp_path: Path) -> None:
    """What `loop.setup` runs can be the agent's: a script of a package, a Makefile."""
    stage.write("install.sh", "true\n")
    stage.write(".gitignore", ".turns\n.ralph-active\ndep\n")
    stage.begin(f"test -e dep && {CHECK}", proof="clean", loop={"setup": "sh install.sh"})
    escape = shlex.quote(str(tmp_path / "escaped"))
    work = f"write('install.sh', {f'touch dep; touch {escape} || true'!r})\n"
    done = stage.play(f'{work}write("work.txt", "good\\n", 0o644)', turns=1)
    assert done.code == 0, done.err
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize(("command", "place"), [("run", "place")])
def test_a_setup_that_fails_is_told(stage: Stage) -> None:
    stage.begin(CHECK, proof="clean", loop={"setup": "echo no such package; exit 3"})
    done = stage.play('write("work.txt", "good\\n", 0o644)', turns=1)
    assert done.code == 1
    assert "loop.setup failed in a clean worktree (exit code 3)" in done.err


@pytest.mark.parametrize(("command", "place"), [("tasks", "place"), ("prd", "place")])
def test_tree_and_commit_are_shown(stage: Stage) -> None:
    """ "Evidence names tree and commit; `ralph status`, `tasks show` … print both"."""
    stage.begin(CHECK)
    done = stage.play('write("work.txt", "good\\n", 0o644)')
    assert done.code == 0, done.err
    where = ("-C", str(stage.path))
    head = stage.git("rev-parse", "HEAD").strip()
    status = json.loads(ralph("status", "--json", *where).out)
    assert status["proof"]["commit"] == head
    differs = stage.git("diff-tree", "-r", "--name-only", status["proof"]["tree"], head).split()
    assert all(path.startswith(".ralph/") for path in differs)
    assert f"commit {head[:12]}" in ralph("status", *where).out
    if stage.command == "tasks":
        task = json.loads(ralph("tasks", "show", "T-001", "--json", *where).out)
        assert (task["tree"], task["commit"]) == (status["proof"]["tree"], head)
        assert task["evidence"]["outside"] == "ignored files"
        assert f"commit: {head}" in ralph("tasks", "show", "T-001", *where).out


def test_outside_git_the_evidence_says_so(tmp_path: Path) -> None:
    """ "Without git the tree is null and the evidence says so"."""
    project = tmp_path / "project"
    (project / ".ralph").mkdir(parents=True)
    settings = {"guardrails": [{"command": "true"}]}
    (project / ".ralph/settings.json").write_text(json.dumps(settings))
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\necho '<response>DONE</response>'\n")
    agent.chmod(0o755)
    done = ralph("run", "-p", "x", "--agent", str(agent), "-C", str(project))
    assert done.code == 0, done.err
    assert "passed (no tree: not a git repository)" in done.err
    status = json.loads(ralph("status", "--json", "-C", str(project)).out)
    assert status["proof"] is None
