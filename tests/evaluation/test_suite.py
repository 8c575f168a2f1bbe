"""Suites are read strictly, and what is wrong is said with its place."""

from pathlib import Path

import pytest

from ralph.errors import ConfigError
from ralph.evaluation.suite import read_suite

TASK = '[[tasks]]\nname = "a"\nprompt = "Do a"\ncheck = "true"\n'
AGENT = '[[agents]]\nname = "x"\n'


def suite_file(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "some.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def objection(tmp_path: Path, text: str | bytes, **given: object) -> str:
    with pytest.raises(ConfigError) as caught:
        read_suite(suite_file(tmp_path, text), **given)  # type: ignore[arg-type]
    assert caught.value.remedy
    return caught.value.message


def test_everything_has_its_default(tmp_path: Path) -> None:
    suite = read_suite(suite_file(tmp_path, TASK + AGENT))
    file = suite.file
    assert (suite.name, suite.home) == ("some", str(tmp_path))
    assert (file.repeats, file.iterations, file.timeout, file.agents[0].command) == (
        1,
        1,
        1800,
        "x",
    )


def test_durations_flags_and_names_that_were_typed(tmp_path: Path) -> None:
    path = suite_file(tmp_path, f'timeout = "5m"\n{TASK}{AGENT}')
    (tmp_path / "mine").touch()
    mine = str(tmp_path / "mine")
    suite = read_suite(path, ["x", "claude", mine], ["a"], repeats=7, parallel=None)
    assert (suite.file.timeout, suite.file.repeats) == (300, 7)
    told = [(agent.name, agent.command) for agent in suite.file.agents]
    assert told == [("x", "x"), ("claude", "claude"), ("mine", mine)]


@pytest.mark.parametrize(
    ("command", "is_run"),
    [
        ('"claude --fast"', "claude --fast"),
        ('["claude", "a b"]', "claude 'a b'"),
        ('["one word"]', "one word"),
        ('"./agent.sh -x"', "{home}/agent.sh -x"),
        ('["python3", "agent.sh", "-q"]', "python3 {home}/agent.sh -q"),
        ('"agent.sh"', "agent.sh"),  # a program is looked for on PATH
        ('"./not there"', "./not there"),
        ('"./a path/agent"', "{home}/a path/agent"),
    ],
)
def test_commands_are_text_or_lists_and_paths_are_from_the_suite(
    tmp_path: Path, command: str, is_run: str
) -> None:
    (tmp_path / "agent.sh").touch()
    (tmp_path / "a path").mkdir()
    (tmp_path / "a path" / "agent").touch()
    text = f'{TASK}[[agents]]\nname = "x"\ncommand = {command}\n'
    (agent,) = read_suite(suite_file(tmp_path, text)).file.agents
    assert agent.command == is_run.format(home=tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "tasks: there are none"),
        (TASK, "agents: there are none"),
        (TASK + TASK + AGENT, "tasks: 2 of them are named 'a'"),
        (TASK + AGENT + AGENT, "agents: 2 of them are named 'x'"),
        ("repeats = 0", "repeats: found 0; allowed: a whole number, 1 or more"),
        (f"repeats = 100_001\n{TASK}{AGENT}", "repeats: that makes 100,001 trials"),
        ("repets = 2", "repets: unknown key; did you mean repeats?"),
        ("x = ", "Invalid value (at end of document)"),
        ("tasks = 1", "tasks: found 1; allowed: a list"),
        (f"{TASK}chek = 1\n{AGENT}", "tasks[0].chek: unknown key; did you mean tasks[0].check?"),
        ('[[tasks]]\nname = "a"\n', "tasks[0]: prompt is missing"),
        (f"when = 1979-05-27\n{TASK}", "when: unknown key"),
        (f'{TASK}timeout = "soon"\n{AGENT}', 'tasks[0].timeout: found "soon"'),
        (f'{TASK}dir = "gone"\n{AGENT}', "tasks[0].dir: there is no folder"),
        (f'{TASK}repo = "."\ndir = "."\n{AGENT}', "tasks[0].repo: a task begins with"),
        (f'{TASK}files = {{"../x" = "1"}}\n{AGENT}', "'../x' is not a path within the checkout"),
        (f'{TASK}hidden_files = {{"/x" = "1"}}\n{AGENT}', "'/x' is not a path within the checkout"),
        (
            f'{TASK}files = {{".git/config" = "1"}}\n{AGENT}',
            "'.git/config' belongs to git or to Ralph",
        ),
        (f"{TASK}{AGENT}settings = {{maxCst = 1}}\n", "agents[0].settings.maxCst: unknown key"),
        (f"{TASK}{AGENT}settings = {{proof = 'tree'}}\n", "settings.proof: an evaluation sets it"),
        (f"{TASK}{AGENT}settings = {{guardrails = []}}\n", "an evaluation sets it itself"),
        (f'{TASK}[[agents]]\nname = "a\\nb"\n', "a name is one line"),
        (f"{TASK}[[agents]]\nname = 'x'\ncommand = [1]\n", "agents[0].command: found a list"),
        (b"\xff\xfe", "is not UTF-8"),
        ("a = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, text: str | bytes, words: str
) -> None:
    assert words in objection(tmp_path, text)


def test_a_suite_that_is_not_there_or_is_no_file(tmp_path: Path) -> None:
    for named, words in (
        (str(tmp_path / "gone"), "there is no suite"),
        (str(tmp_path), "cannot read the suite"),
        ("/dev/zero", "cannot read the suite"),
    ):
        with pytest.raises(ConfigError, match=words):
            read_suite(named)
    assert "has no task 'b'" in objection(tmp_path, TASK + AGENT, tasks=["b"])


def test_the_digest_is_that_of_all_that_decides(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    (start / "a").write_text("1")
    text = f'{TASK}dir = "start"\n{AGENT}'
    first = read_suite(suite_file(tmp_path, text)).digest
    assert read_suite(suite_file(tmp_path, f"# more words\n{text}"), parallel=3).digest == first
    assert read_suite(suite_file(tmp_path, text), repeats=2).digest != first
    (start / "a").write_text("2")
    assert read_suite(suite_file(tmp_path, text)).digest != first


def test_the_suite_that_we_bring_along_can_be_read() -> None:
    file = read_suite("small", ["anything"]).file
    assert len(file.tasks) == 10
    kinds = {task.name.partition("-")[0] for task in file.tasks}
    assert kinds == {"py", "js", "sh"}
    assert all(task.hidden_files for task in file.tasks)
