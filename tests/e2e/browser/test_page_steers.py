"""Steering from the page: answers, notes, pauses and stops, and who may."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from backlog_support import COMPLETE, Project, project  # noqa: F401  a fixture
from page_support import WAIT, Web, waiting
from run_support import Running, prepare, prompts

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.web
Look = Callable[..., "Page"]


def test_an_answer_in_place_lets_the_run_go_on(look: Look, project: Project) -> None:  # noqa: F811
    gate = project.path.parent / "gate"
    asks = f'[ "$n" -gt 1 ] && {COMPLETE} || echo "<promise>DECIDE: red or blue?</promise>"'
    waits = f"{WAIT.format(gate)}; {COMPLETE}"
    agent = project.agent(f'case $id in A) {asks} ;; *) {waits} ;; esac; echo $id > "$id"')
    project.tasks({"id": "A", "title": "Paint it"}, {"id": "B", "title": "Wait for it"})
    run = Running(project.path, "tasks", "run", "--agent", agent, "--no-sandbox")

    page = look()
    question = page.get_by_role("region", name="Waiting for you")
    question.get_by_text("red or blue?").wait_for()
    page.get_by_text("asking").first.wait_for()
    assert page.title().startswith("asking")
    question.get_by_role("textbox").fill("Blue, <b>please</b>.")
    question.get_by_role("button", name="Answer").click()
    question.get_by_role("textbox").wait_for(state="detached")
    page.locator("#announcer", has_text="A is pending again, with your answer.").wait_for()

    page.locator(".run").click()
    page.get_by_role("link", name="Board").click()
    page.get_by_role("region", name="To do").get_by_text("Paint it").wait_for()
    gate.touch()
    page.locator(".run-head .badge", has_text="completed").wait_for()
    done = page.get_by_role("region", name="Done")
    done.get_by_text("Paint it").wait_for()
    assert run.end().code == 0
    assert "Blue, <b>please</b>." in project.prompt("A", 2)


def test_an_answer_to_a_run_that_has_ended_leaves_nothing_to_do_but_go_on(
    look: Look,
    project: Project,  # noqa: F811
) -> None:
    agent = project.agent('echo "<promise>DECIDE: red or blue?</promise>"; echo $id > "$id"')
    project.tasks({"id": "A", "title": "Paint it"})
    run = Running(project.path, "tasks", "run", "--agent", agent, "--no-sandbox")
    assert run.end().code == 3
    page = look()
    page.locator(".run").click()
    page.get_by_role("link", name="Iterations").click()
    achieved = page.locator(".achieved")
    achieved.get_by_role("heading", name="Left").wait_for()
    achieved.get_by_text('ralph tasks answer A "..."').wait_for()
    question = page.get_by_role("region", name="Waiting for you")
    question.get_by_role("textbox").fill("Blue.")
    question.get_by_role("button", name="Answer").click()
    page.locator("#announcer", has_text="A is pending again, with your answer.").wait_for()
    question.wait_for(state="detached")
    achieved.get_by_text("ralph tasks run", exact=True).wait_for()
    assert not achieved.get_by_role("heading", name="Left").count()


def test_a_note_reaches_the_next_prompt_and_a_stop_takes_two_presses(
    look: Look, repo: Path
) -> None:
    gates = [repo.parent / f"gate-{number}" for number in range(3)]
    agent = prepare(repo, *[waiting(gate, text=[f"word {n}", "."]) for n, gate in enumerate(gates)])
    run = Running(repo, "run", "-p", "Say words")
    page = look()
    page.locator(".run", has_text="Say words").click()
    page.locator(".log").get_by_text("word 0").wait_for()

    page.get_by_label("Note for the next prompt").fill("Mind the gap.")
    page.get_by_role("button", name="Send note").click()
    page.locator(".controls .told", has_text="next prompt").wait_for()
    page.get_by_role("link", name="Signals").click()
    row = page.get_by_role("row", name=re.compile("Mind the gap"))
    row.get_by_text("pending").wait_for()
    row.get_by_text("ralph web").wait_for()
    gates[0].touch()
    row.get_by_text("heard").wait_for()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").click()

    stop = page.get_by_role("button", name="Stop", exact=True)
    stop.click()
    page.get_by_role("button", name=re.compile("Press once more: Stop$")).click()
    page.locator(".controls .told", has_text="stops after its current operation").wait_for()
    gates[1].touch()
    page.locator(".run-head .badge", has_text="interrupted").wait_for()
    run.end()
    first, second = prompts(agent)
    assert "Mind the gap." not in first
    assert "Mind the gap." in second
    page.get_by_role("link", name="Iterations").click()
    page.get_by_role("button", name=re.compile("^2")).click()
    page.locator(".person-note").get_by_text("Mind the gap.").wait_for()


def test_a_reload_may_look_and_not_steer_until_the_link_is_opened_again(
    look: Look, web: Web, repo: Path
) -> None:
    gate = repo.parent / "gate"
    prepare(repo, waiting(gate, text=["I begin.", "."], response="DONE"))
    run = Running(repo, "run", "-p", "Say words")
    page = look()
    page.locator(".run").click()
    assert "token" not in page.url
    page.get_by_role("button", name="Pause").wait_for()
    page.reload()
    page.locator(".log").get_by_text("I begin.").wait_for()
    page.get_by_text("open the link that").wait_for()
    assert not page.get_by_role("button", name="Pause").count()
    stored = "() => [localStorage.length, sessionStorage.length, document.cookie]"
    assert page.evaluate(stored) == [0, 0, ""]
    page.goto(web.link)
    page.locator(".run").click()
    page.get_by_role("button", name="Pause").wait_for()
    gate.touch()
    page.locator(".run-head .badge", has_text="completed").wait_for()
    run.end()


def test_without_the_link_there_is_a_place_for_it(look: Look, web: Web) -> None:
    page = look(web.link.partition("#")[0])
    page.get_by_role("heading", name="Open the link that").wait_for()
    page.get_by_label("Link or token").fill("wrong")
    page.get_by_role("button", name="Open").click()
    page.get_by_role("alert").get_by_text("this is not the token").wait_for()
    page.get_by_label("Link or token").fill(web.link)
    page.get_by_role("button", name="Open").click()
    page.get_by_text("There are no runs yet").wait_for()
