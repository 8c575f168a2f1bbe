"""Notes to a crew, answers with their origin, and a pause that changes settings (ADR 38)."""

import os
from pathlib import Path

import pytest
from backlog_support import COMPLETE, Project, project  # noqa: F401  a fixture
from run_support import Done, Here, Running, assert_clear, journals, ralph

from ralph.errors import ConfigError
from ralph.journal.journal import read_journal
from ralph.journal.runs import Run, all_runs, worker_of
from ralph.kernel.facts import Asked, Fact, Resumed
from ralph.kernel.world import Origin
from ralph.runner import steering

WAIT = 'while [ ! -e "$NOTES/go-$id-$n" ]; do sleep 0.02; done; echo "$id" > "$id"'
SAID = "A note from the person you work for:"


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


class Crew:
    """Two workers at the first two of some tasks; each turn waits until it is told."""

    def __init__(self, project: Project, script: str, *names: str) -> None:  # noqa: F811
        self.project = project
        project.tasks(*({"id": name, "title": f"It is {name}"} for name in names))
        project.settings(guardrails=[{"command": "true"}])
        project.git("add", "-A")
        project.git("commit", "-q", "-m", "tasks")
        words = ("--agent", project.agent(script), "--no-sandbox", "--parallel", "2")
        self.running = Running(project.path, "tasks", "run", *words)
        self.running.await_that(lambda: all(map(project.turns, names[:2])))

    def go(self, *turns: str) -> None:
        for turn in turns:
            (self.project.notes / f"go-{turn}").touch()

    def end(self) -> Done:
        return self.running.end()

    @property
    def run(self) -> Run:
        return next(run for run in all_runs(os.environ["RALPH_STATE_DIR"]) if run.live)

    def told(self) -> dict[str, list[str]]:
        """By task and turn, the notes in its prompt."""
        return {
            path.name.removesuffix(".prompt"): path.read_text().split(SAID)[1:]
            for path in self.project.notes.glob("*.prompt")
            if SAID in path.read_text()
        }


def asked(journal: Path) -> list[tuple[str, str, str]]:
    return [
        (fact.request.request, fact.request.origin, fact.request.task)
        for fact in whole(journal)
        if isinstance(fact, Asked)
    ]


def whole(journal: Path) -> list[Fact]:
    return read_journal(str(journal))[0]


def test_a_note_to_a_crew_is_told_by_one_worker_and_that_of_a_task_by_its_own(
    project: Project,  # noqa: F811
    here: Here,
) -> None:
    crew = Crew(project, f"{WAIT}; {COMPLETE}", "T-1", "T-2", "T-3", "T-4")
    words = "Told with the next prompt, whichever task that is for.\n"
    assert here("note", "For anybody.").out == words
    assert here("note", "--task", "T-4", "For four.").out == "Told with the next prompt of T-4.\n"
    assert_clear(here("note", "--task", "T-9", "x"), 2, "has no task 'T-9'", "T-1, T-2, T-3, T-4")
    second = worker_of(crew.run, f"{crew.run.id}-002")
    assert steering.note(second, "For two.", Origin.WEB) == "Told with the next prompt of T-2."
    crew.go("T-1-1")
    crew.running.await_that(lambda: project.turns("T-3"))
    assert_clear(here("note", "--task", "T-1", "x"), 2, "T-1 is done: it has no next prompt")
    (lead,) = journals()
    crew.go("T-2-1", "T-3-1", "T-4-1")
    done = crew.end()
    assert_clear(done, 0, "Not told to any turn: Note from web for T-2: For two.")
    told = {turn: [text.strip() for text in texts] for turn, texts in crew.told().items()}
    assert told == {"T-3.1": ["For anybody."], "T-4.1": ["For four."]}
    assert asked(lead) == []
    workers = sorted(lead.parent.glob("runs/*/journal.jsonl"))
    notes = [each for journal in workers for each in asked(journal)]
    assert notes == [("note", "cli", ""), ("note", "cli", "T-4")]


def test_a_crew_goes_on_after_a_pause_by_its_settings_as_they_are_then(
    project: Project,  # noqa: F811
    here: Here,
) -> None:
    """Workers in the middle of a task are called back, and wired anew too."""
    again = f"{WAIT}; [ $n = 1 ] || {COMPLETE}"
    crew = Crew(project, again, "T-1", "T-2")
    here("pause")
    crew.go("T-1-1", "T-2-1")
    crew.running.await_that(lambda: "State      paused: " in here("status").out)
    project.settings(guardrails=[{"command": "echo >> ran"}])
    assert "guardrails is now" in here("resume").out
    crew.go("T-1-2", "T-2-2")
    assert_clear(crew.end(), 0, "2 tasks done")
    (lead,) = journals()
    assert [each[0] for each in asked(lead)] == ["pause", "resume"]
    for journal in (lead, *lead.parent.glob("runs/*/journal.jsonl")):
        (resumed,) = (fact for fact in whole(journal) if isinstance(fact, Resumed))
        assert [name for name, _, _ in resumed.changed] == ["guardrails"]
    assert project.turns("T-1") == project.turns("T-2") == 2


def test_an_answer_is_journaled_with_its_origin(
    project: Project,  # noqa: F811
    here: Here,
) -> None:
    ask = 'if [ $id = T-1 ] && [ $n = 1 ]; then echo "<promise>DECIDE: tabs?</promise>"; else'
    crew = Crew(project, f"{ask} {WAIT}; {COMPLETE}; fi", "T-1", "T-2")
    crew.running.await_that(lambda: "T-1 waits for you" in crew.running.err())
    run = crew.run
    with pytest.raises(ConfigError, match="T-2 asked nothing"):
        steering.answer(run, "T-2", "Tabs.", Origin.WEB)
    words = steering.answer(run, "T-1", " Tabs. ", Origin.WEB)
    assert words == "T-1 is pending again, with your answer."
    crew.running.await_that(lambda: project.turns("T-1") == 2)
    crew.go("T-1-2", "T-2-1")
    assert_clear(crew.end(), 0, "Answer to T-1 (web): Tabs.")
    assert "Tabs." in project.prompt("T-1", 2)
    (lead,) = journals()
    assert asked(lead) == [("answer", "web", "T-1")]


def test_what_is_typed_to_answer_a_run_is_journaled_too(
    project: Project,  # noqa: F811
) -> None:
    project.tasks({"id": "T-1", "title": "It is T-1"}, {"id": "T-2", "title": "It is T-2"})
    ask = 'if [ $id = T-1 ] && [ $n = 1 ]; then echo "<promise>DECIDE: tabs?</promise>"; else'
    assert project.run(f"{ask} {COMPLETE}; fi").code == 3
    assert ralph("tasks", "answer", "T-1", "Tabs.").code == 0
    assert ralph("resume").code == 0
    (journal,) = journals()
    assert asked(journal) == [("answer", "cli", "T-1")]
