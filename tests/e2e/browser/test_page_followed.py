"""A run in the page, from its start to its end, whatever happens to it and to the connection."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from page_support import WAIT, Cable, Web, waiting
from run_support import Running, prepare, ralph

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.web
Look = Callable[..., "Page"]
CLAIM = "Everything is finished."


@pytest.fixture
def cable(web: Web) -> Iterator[Cable]:
    """The way to the server, for who wants to cut it."""
    cable = Cable(web.port)
    yield cable
    cable.end()


def test_a_run_is_followed_from_its_start_to_its_end(look: Look, repo: Path) -> None:
    page = look()
    page.get_by_text("There are no runs yet").wait_for()
    page.get_by_text("ralph run -p 'what to do'").wait_for()

    first, second = repo.parent / "first", repo.parent / "second"
    turns = [
        waiting(first, text=["I begin.", CLAIM], response="DONE", cost=0.4),
        waiting(
            second,
            files={"made": "yes"},
            text=["I look again.", "Now it is made."],
            response="DONE",
        ),
    ]
    prepare(repo, *turns, guardrails=[{"command": "test -e made"}])
    run = Running(repo, "run", "-p", "Make the file", "--max-cost", "2")
    entry = page.locator(".run", has_text="Make the file")
    entry.get_by_text("running").wait_for()
    assert page.title().startswith("running")

    entry.click()
    page.locator(".log").get_by_text("I begin.").wait_for()
    page.get_by_text("$2.00").wait_for()
    first.touch()
    page.locator(".log").get_by_text("I look again.").wait_for()
    page.get_by_role("link", name="Iterations").click()
    disbelieved = page.locator(".iteration.is-disbelieved")
    disbelieved.get_by_text("not believed").first.wait_for()
    disbelieved.get_by_role("button").first.click()
    verdict = disbelieved.get_by_label("Verdict")
    verdict.get_by_text("Rule").wait_for()
    verdict.get_by_role("heading", name="Objections").wait_for()
    disbelieved.get_by_label("Gates").get_by_text("objected").wait_for()

    second.touch()
    page.locator(".run-head .badge", has_text="completed").wait_for()
    assert run.end().code == 0
    accepted = page.locator(".iteration").first
    accepted.get_by_role("button").first.click()
    accepted.get_by_label("Verdict").get_by_text("Evidence").wait_for()
    accepted.get_by_label("Prompt").get_by_text("Fed back from the iteration before").wait_for()
    accepted.get_by_label("Changes").get_by_text("made").first.wait_for()
    assert page.title().startswith("completed")
    assert page.locator("link#icon").get_attribute("href") == "/static/icons/good.svg"
    assert not page.get_by_role("button", name="Stop").count()


def test_a_killed_run_is_shown_as_crashed_in_the_list_and_on_its_page(
    look: Look, repo: Path
) -> None:
    prepare(repo, waiting(repo.parent / "never", text=["I begin.", "no"]))
    run = Running(repo, "run", "-p", "Go on for ever")
    page = look()
    page.locator(".run", has_text="Go on for ever").click()
    page.locator(".log").get_by_text("I begin.").wait_for()
    listing = look()
    listing.locator(".run .badge", has_text="running").wait_for()

    run.send(signal.SIGKILL)

    listing.locator(".run.is-crashed").get_by_text("ralph resume").wait_for(timeout=10_000)
    page.locator(".run-head .badge", has_text="crashed").wait_for(timeout=10_000)
    assert page.title().startswith("crashed")


def test_a_cut_connection_loses_no_line_and_shows_none_twice(
    look: Look, cable: Cable, web: Web, repo: Path
) -> None:
    gates = [repo.parent / f"gate-{number}" for number in range(3)]
    turns = [waiting(gate, text=[f"word {n}", f"end {n}"]) for n, gate in enumerate(gates)]
    prepare(repo, *turns)
    run = Running(repo, "run", "-p", "Say words", "-m", "3")
    page = look(web.link.replace(f":{web.port}/", f":{cable.port}/"))
    page.locator(".run", has_text="Say words").click()
    page.locator(".log").get_by_text("word 0").wait_for()

    cable.cut()
    page.get_by_text("reconnecting…").wait_for()
    gates[0].touch()
    gates[1].touch()
    run.await_that(lambda: "Iteration 3" in run.err() or "word 2" in run.err())
    cable.mend()

    page.get_by_text("live", exact=True).wait_for()
    log = page.locator(".log")
    log.get_by_text("word 2").wait_for()
    gates[2].touch()
    page.locator(".run-head .badge", has_text="limit").wait_for()
    numbers = [int(line.get_attribute("data-line") or -1) for line in log.locator(".line").all()]
    assert numbers == list(range(len(numbers)))
    for words in ("word 0", "end 0", "word 1", "end 1", "word 2", "end 2"):
        assert log.get_by_text(words).count() == 1
    run.end()


def test_a_run_that_is_not_there_is_not_waited_for(look: Look, web: Web) -> None:
    page = look()
    page.get_by_text("There are no runs yet").wait_for()  # it has logged in
    page.goto(f"{web.link.partition('#')[0]}#/run/20260101-000000-0000")
    page.get_by_role("alert").get_by_text("there is no such run").wait_for()
    page.locator(".link").wait_for(state="detached")
    page.get_by_role("link", name="Runs").click()
    page.get_by_text("live", exact=True).wait_for()


def test_tabs_in_the_background_leave_connections_to_the_next_one(
    look: Look, web: Web, repo: Path
) -> None:
    """A browser has six for one server."""
    prepare(repo, waiting(repo.parent / "gate", text=["I begin.", "."]))
    run = Running(repo, "run", "-p", "Say words")
    first = look()
    tabs = [first.context.new_page() for _ in range(5)]
    for tab in tabs:
        tab.clock.install()
        tab.add_init_script(
            "Object.defineProperty(document, 'hidden', { get: () => Boolean(window.isAway) })"
        )
        tab.goto(web.link)
        tab.locator(".run", has_text="Say words").wait_for()
        tab.evaluate("() => { window.isAway = true }")
        tab.clock.fast_forward(70_000)
        tab.clock.run_for(5000)
    first.get_by_text("live", exact=True).wait_for()
    last = first.context.new_page()
    last.goto(web.link)
    last.locator(".run", has_text="Say words").click()
    last.locator(".log").get_by_text("I begin.").wait_for()

    run.send(signal.SIGKILL)
    last.locator(".run-head .badge", has_text="crashed").wait_for()
    while not tabs[1].title().startswith("0 running"):  # it looks in now and then
        tabs[1].clock.run_for(1000)
    for tab in tabs:
        tab.evaluate(
            "() => { window.isAway = false; document.dispatchEvent(new Event('visibilitychange')) }"
        )
        tab.clock.run_for(5000)
    tabs[0].locator(".run.is-crashed").wait_for()


def test_a_run_tells_what_is_likely_left(look: Look, repo: Path) -> None:
    """ADR 46: a line below the meters, and on each bar where it will likely end."""
    for _ in range(5):
        prepare(repo, {"text": "on it", "cost": 0.5}, {"response": "DONE", "cost": 0.5})
        assert ralph("run", "-p", "x", "-m", "9").code == 0
    release = repo.parent / "release"
    waits = {"tools": [{"name": "Bash", "run": WAIT.format(release)}], "response": "DONE"}
    prepare(repo, {"text": "on it", "cost": 0.5}, waits)
    running = Running(repo, "run", "-p", "x", "-m", "9", "--max-cost", "4")
    running.await_that(lambda: "Iteration 2/9" in running.err())
    page = look()
    page.locator(".run").first.click()
    line = page.locator(".ahead")
    line.wait_for()
    assert line.inner_text().startswith("Forecast 1 ")
    assert line.inner_text().endswith("the limits will likely hold (by 5 earlier runs)")
    bars = page.locator(".meter .bar s")
    assert bars.count() == 2
    box, end = page.locator(".meter .bar").first.bounding_box(), bars.first.bounding_box()
    assert box is not None
    assert end is not None
    assert box["x"] < end["x"] < end["x"] + end["width"] <= box["x"] + box["width"] + 1
    release.touch()
    assert running.end().code == 0
    line.wait_for(state="detached")
