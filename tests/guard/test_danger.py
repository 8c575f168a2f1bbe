"""The guard's verdicts: a table of commands, 0 wrong (R §4, ADR 25)."""

import pytest
from danger_tables import (
    ALLOWED,
    DENIED,
    EVERYTHING,
    HIDDEN,
    LOOSE,
    NEVER_LOOSE,
    STANDARD,
    TABLES,
    WHERE,
    commands,
)
from hypothesis import given
from hypothesis import strategies as st

from ralph.guard.judge import Verdict, Where, judge, matches
from ralph.guard.rules.rule import CATEGORIES, UNREADABLE


def verdict(command: str, **changes: object) -> Verdict:
    world: dict[str, object] = {
        "cwd": WHERE.cwd,
        "home": WHERE.home,
        "project": WHERE.project,
        "temps": WHERE.temps,
        "strict": True,
    }
    return judge(command, Where(**(world | changes)))  # type: ignore[arg-type]


@pytest.mark.parametrize("category", CATEGORIES)
def test_dangerous_commands_are_refused_with_their_category(category: str) -> None:
    found = [(c, judge(c, WHERE)) for there, c in DENIED if there == category]
    assert found
    wrong = [(c, v.category, v.reason) for c, v in found if v.category != category or not v.reason]
    assert not wrong


def test_what_hides_a_deletion_is_refused() -> None:
    assert [command for command in HIDDEN if judge(command, WHERE).allowed] == []


def refused(commands: list[str]) -> list[tuple[str, str, str]]:
    found = [(command, judge(command, WHERE)) for command in commands]
    return [(command, v.category, v.reason) for command, v in found if not v.allowed]


def test_ordinary_work_is_let_pass() -> None:
    assert refused(ALLOWED) == []


def test_standard_lets_pass_what_strict_refuses_here_and_nothing_else_of_it() -> None:
    """The issue: "`strict` adds today's policy on local history and processes"."""
    found = [(c, judge(c, WHERE).allowed, judge(c, STANDARD)) for c in LOOSE]
    wrong = [(c, strict, v.category, v.reason) for c, strict, v in found if strict or not v.allowed]
    assert not wrong
    loose = {*LOOSE}
    rest = [c for c in (*HIDDEN, *(c for _, c in DENIED)) if c not in loose]
    assert [c for c in (*rest, *NEVER_LOOSE) if judge(c, STANDARD).allowed] == []
    assert [c for c in ALLOWED if not judge(c, STANDARD).allowed] == []


@pytest.mark.parametrize("part", ["", "-held-out"])
@pytest.mark.parametrize(
    ("kind", "least", "most"), [("everyday", 0.0, 0.02), ("accidents", 0.95, 1.0)]
)
def test_it_stops_accidents_and_not_work(kind: str, least: float, most: float, part: str) -> None:
    """The issue: "≤ 2 % of everyday commands refused, ≥ 95 % of accidents caught", by commands that
    were collected without a look at the rules."""
    found = commands(TABLES / "corpus" / f"{kind}{part}.txt")
    refused = sum(not judge(c, STANDARD).allowed for c in found)
    assert least <= refused / len(found) <= most


@pytest.mark.parametrize(
    ("command", "branch", "allowed"),
    [
        ("git push --force-with-lease", "feature/login", True),
        ("git push --force-with-lease", "main", False),
        ("git push --force-with-lease", "", False),
        ("git push -f origin HEAD", "mine", True),
        ("git push -f origin HEAD", "release/1.0", False),
        ("git push -f origin mine:main", "mine", False),
        ("git push -f origin $BRANCH", "mine", False),
        ("git push -f --all", "mine", False),
        ("git push origin +main", "mine", False),
        ("git push origin :mine", "mine", False),
        ("git push --delete origin mine", "mine", False),
        ("git checkout main && git push -f", "mine", False),
        ("git switch -c other && git push -f", "main", True),
        ("git checkout -- a.py && git push -f", "main", False),
        ("git branch -D main", "mine", False),
        ("git update-ref refs/ralph/run/start HEAD", "mine", False),
        ("git -C /home/me/other reset --hard", "mine", False),
        ("cd ../other && git reset --hard", "mine", False),
        ("git -C sub reset --hard", "mine", True),
        ("git clean -fd", "mine", False),
        ("git clean -fdx build ../other", "mine", False),
        ("pkill python", "mine", False),
        ("pkill -u root node", "mine", False),
        ("pkill -f claude", "mine", False),
        ("kill $PPID", "mine", False),
        ("ps aux | grep -v node | awk '{print $2}' | xargs kill", "mine", False),
        ("ps aux | awk '{print $2}' | xargs kill", "mine", False),
        ("dropdb app", "mine", False),
        ("dropdb -h db.example.com app_test", "mine", False),
        ("sqlite3 prod.db 'DROP TABLE t'", "mine", False),
        ("sqlite3 ~/x.db 'DROP TABLE t'", "mine", False),
        ("psql -c 'DROP DATABASE shop_test; DROP TABLE t'", "mine", False),
        ("RAILS_ENV=production rails db:reset", "mine", False),
        ("grep API_KEY .env", "mine", False),
        ("grep -v PORT .env", "mine", False),
        ("grep -A5 PORT .env", "mine", False),
        ("grep . .env", "mine", False),
        ("sed 's/PORT/x/' .env", "mine", False),
        ("env | grep -i secret", "mine", False),
        ("env | sort", "mine", False),
        ("env | tee x", "mine", False),
        ("env | $X", "mine", False),
        ('rm -rf "$BUILD_DIR"', "mine", False),
        ('rm -rf "${BUILD_DIR?}"', "mine", False),
        ('rm -rf "${HOME:?}"', "mine", False),
        ('rm -rf "${BUILD_DIR:?}/.."', "mine", False),
    ],
)
def test_standard_by_the_branch_and_by_what_is_named(
    command: str, branch: str, allowed: bool
) -> None:
    found = verdict(command, strict=False, branch=branch)
    assert found.allowed is allowed, found.reason


def test_a_path_that_nobody_knows_is_refused_with_what_to_write() -> None:
    assert "write ${NAME:?}" in verdict('rm -rf "$BUILD_DIR"', strict=False).reason


def test_the_table_is_large_and_has_every_category() -> None:
    assert len(set(EVERYTHING)) >= 300
    assert {category for category, _ in DENIED} == set(CATEGORIES)
    assert len(CATEGORIES) >= 18


@pytest.mark.parametrize("outer", ["( {} )", "{{ {}\n}}", "if true; then {}\nfi", "true && {}"])
def test_what_is_refused_is_refused_within_others(outer: str) -> None:
    commands = [command for category, command in DENIED if category != UNREADABLE]
    assert [c for c in commands if judge(outer.format(c), WHERE).allowed] == []


def test_what_is_allowed_is_allowed_after_others() -> None:
    assert refused([f"cd . && ls\n{command}" for command in ALLOWED]) == []


@given(st.text())
def test_any_text_has_a_verdict(command: str) -> None:
    """Whatever cannot be followed is denied, never an exception."""
    assert judge(command, WHERE).allowed in (True, False)


WORDS = "rm -rf / $( ${ (( [[ ]] if then fi case in esac do done for x echo a= f() 2> <<E \nE\n"
PIECES = st.sampled_from([*"$(){}[]<>|&;\"'`\\ \n#=!*?~", *WORDS.split(" ")])


@given(st.lists(PIECES, max_size=25).map(" ".join) | st.lists(PIECES, max_size=25).map("".join))
def test_any_mixture_of_syntax_has_a_verdict(command: str) -> None:
    assert judge(command, WHERE).allowed in (True, False)


@given(st.sampled_from(EVERYTHING), st.data())
def test_a_command_that_was_cut_off_has_a_verdict(command: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(command)))
    assert judge(command[:cut], WHERE).allowed in (True, False)


@pytest.mark.parametrize(
    "command",
    ["echo \0", "echo \1", "(" * 5000, "$(" * 3000, "a" * 500_000, "a=x;" + "a=$a$a;" * 30],
    ids=["nul", "mark", "parentheses", "substitutions", "long", "doubled"],
)
def test_what_no_shell_would_be_sent_is_refused(command: str) -> None:
    assert judge(command, WHERE).category == UNREADABLE


@pytest.mark.parametrize(
    "command",
    [
        "; ".join(f"x{i}=$(echo $(echo $(echo {i})))" for i in range(1500)),
        "for a in {1..50}; do for c in {1..50}; do for e in {1..50}; do x$a; done; done; done",
        "echo " + " ".join("{a,b,c,d}" * 8 for _ in range(2)),
        "; ".join(f"[ $x ] && {name}={i}" for name in "abcdef" for i in range(3))
        + "; ls $a$b$c$d$e$f",
    ],
)
def test_what_takes_too_long_to_follow_is_decided_all_the_same(command: str) -> None:
    assert judge(command, WHERE).category in ("", UNREADABLE)


BELOW_TEMP = {"project": "/tmp/work/p", "cwd": "/tmp/work/p"}


@pytest.mark.parametrize(
    ("command", "changes", "allowed"),
    [
        ("rm -rf build", {"cwd": "/home/me/project/sub"}, True),
        ("rm -rf *", {"cwd": "/home/me/project/sub"}, True),
        ("rm -rf ..", {"cwd": "/home/me/project/sub"}, False),
        ("rm -rf ../build", {"cwd": "/home/me/project/sub"}, True),
        ("rm -rf build", {"cwd": "/etc"}, False),
        ("rm -rf /home/me/project/x", {"cwd": "/etc"}, True),
        ("rm x", {"project": "/"}, False),
        ("rm x", {"project": "/home"}, False),
        ("rm x", {"project": "/home/me", "cwd": "/home/me"}, True),
        ("rm -r .config", {"project": "/home/me", "cwd": "/home/me"}, False),
        ("rm -rf ~", {"project": "/home/me", "cwd": "/home/me"}, False),
        ("rm /tmp/x", {"temps": ()}, False),
        ("rm $TMPDIR/x", {"temps": ()}, False),
        ("rm $(mktemp)", {"temps": ()}, False),
        ("rm $(mktemp)", {"temps": ("/scratch",)}, True),
        ("rm -rf /tmp/x", {"project": "/tmp/a/project", "cwd": "/tmp/a/project"}, True),
        ("rm -rf build", {"project": "/tmp/a/project", "cwd": "/tmp/a/project"}, True),
        ("rm -rf .", {"project": "/tmp/a/project", "cwd": "/tmp/a/project"}, False),
        ("rm -rf ../b", {"project": "/tmp/a/project", "cwd": "/tmp/a/project"}, False),
        ("rm -rf /tmp/a", {"project": "/tmp/a/project", "cwd": "/tmp/a/project"}, False),
        ("rm -rf /tmp/*", BELOW_TEMP, False),
        ("rm -rf /tmp/w*", BELOW_TEMP, False),
        ("rm -rf /tmp/[^x]*", BELOW_TEMP, False),
        ("rm -rf /tmp/*/p", BELOW_TEMP, False),
        ("cd /tmp && rm -rf *", BELOW_TEMP, False),
        ("find /tmp -mindepth 1 -delete", BELOW_TEMP, False),
        ("rm -rf /tmp/other/*", BELOW_TEMP, True),
        ("rm -rf /tmp/x*", BELOW_TEMP, True),
        ("rm -rf /tmp/*/p/build/*", BELOW_TEMP, True),
        ("rm -rf /tmp/$(date +%s)", BELOW_TEMP, True),
        ("find /tmp/other -delete", BELOW_TEMP, True),
        ("rm -rf /tmp/*", {"home": "/tmp/home"}, False),
        ("rm -rf ~", {"home": "/tmp/a/home"}, False),
        ("rm -rf ~/x", {"home": "/tmp/a/home"}, False),
        ("rm -rf /tmp/a", {"home": "/tmp/a/home"}, False),
        ("rm -rf /tmp/x", {"home": "/"}, True),
        ("rm -rf /link/x", {"aliases": (("/link", "/home/me/project"),)}, True),
        ("rm -rf /link", {"aliases": (("/link", "/home/me/project"),)}, False),
    ],
)
def test_paths_are_judged_from_the_directory_the_home_and_the_project(
    command: str, changes: dict[str, object], allowed: bool
) -> None:
    found = verdict(command, **changes)
    assert found.allowed is allowed, found.reason


@pytest.mark.parametrize(
    ("pattern", "command", "allowed"),
    [
        ("git commit --amend", "git commit --amend", True),
        ("git commit --amend", "git commit --amend --no-edit", False),
        ("git commit --amend *", "git commit --amend --no-edit", True),
        ("git commit --amend *", "git commit --amend", True),
        ("git commit *", "git push --force", False),
        ("rm -rf /opt/cache/*", "rm -rf /opt/cache/x", True),
        ("rm -rf /opt/cache/*", "rm -rf /opt/cache/../../etc", False),
        ("rm -rf /opt/cache/*", "rm -rf /opt/cache/x /etc", False),
        ("rm -rf *", "rm -rf $UNKNOWN", True),
        ("rm -rf /opt/?", "rm -rf $UNKNOWN", False),
        ("git commit --amend *", "git add -A && git commit --amend", True),
        ("git commit --amend *", "git commit --amend; git push -f", False),
        ("git commit --amend", "bash -c 'git commit --amend'", True),
        ("bash -c *", "bash -c 'git commit --amend'", True),
        ("pkill *", "pkill -f vite", True),
        ("*", "rm -rf /", False),
        ("", "rm -rf /", False),
        ("echo *", "echo x > /etc/motd", False),
        ("rm *", "echo 'unclosed", False),
    ],
)
def test_a_person_may_allow_commands(pattern: str, command: str, allowed: bool) -> None:
    """`guard.allow`: word by word; a last `*` stands for any further words."""
    assert judge(command, WHERE, (pattern,)).allowed is allowed


def test_a_pattern_of_more_words_than_the_command_matches_nothing() -> None:
    assert not matches(["a", "b", "*"], ["a"])


def test_a_refusal_names_the_part_that_is_refused() -> None:
    found = judge("ls && x=/ && rm -rf $x", WHERE)
    assert found.command == "rm -rf /"
