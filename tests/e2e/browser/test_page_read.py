"""The page as people read it: hostile words, long logs, small screens, the dark, other senses."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from backlog_support import COMPLETE, Project, project  # noqa: F401  a fixture
from page_support import WAIT, Web
from run_support import Running, prepare, program, ralph

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.web
Look = Callable[..., "Page"]
LINES = 100_000
HOSTILE = (
    "<script>alert('script')</script><img src=x onerror=alert('img')>"
    "<a href='javascript:alert(1)'>a</a> ${alert(2)} {{alert(3)}} \x1b[31mred\x1b]0;title\x07 "
    "\u202egnirts\u202c \x00"
)
PARTS = ("log", "iterations", "board", "charts", "workers", "signals")


def test_hostile_words_are_words(look: Look, repo: Path) -> None:
    name = "javascript:alert(1)<img src=x onerror=alert(2)>"
    turn = {
        "text": [HOSTILE, f"{HOSTILE} {'long' * 3000}"],
        "tools": [{"name": f"Bash{HOSTILE}", "input": {"command": HOSTILE}, "output": HOSTILE}],
        "thinking": HOSTILE,
        "files": {name: HOSTILE},
        "response": "DONE",
    }
    prepare(repo, turn, guardrails=[{"command": "true"}])
    done = ralph("run", "-p", f"Do it {HOSTILE}".replace("\x00", ""))
    assert done.code == 0, done.err
    page = look()
    page.get_by_text("Do it <script>alert('script')</script>").wait_for()
    page.locator(".run").click()
    page.locator(".iteration").get_by_role("button").first.click()
    page.get_by_label("Changes").get_by_text(name).first.wait_for()
    agent = page.get_by_label("Agent")
    agent.get_by_text("<script>alert('script')</script><img src=x").first.wait_for()
    page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.get_by_role("link", name="Log").click()
    page.locator(".log").get_by_text("<img src=x onerror=alert('img')>").first.wait_for()
    for part in PARTS:
        page.evaluate("part => { location.hash = location.hash.replace(/[a-z]+$/, part) }", part)
        page.locator("main h1").wait_for()
        assert not page.locator("main :is(img, script, iframe, a[href^='javascript'])").count()
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert "\x1b" not in page.content()


def test_a_log_of_a_hundred_thousand_lines_is_a_window(
    look: Look, repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [f"line {number} of many" for number in range(LINES)]
    texts = ["\n".join(said[at : at + 1000]) for at in range(0, LINES, 1000)]
    prepare(repo, {"text": [*texts, "the needle"], "response": "DONE"})
    done = ralph("run", "-p", "Say much")
    assert done.code == 0, done.err
    page = look()
    page.locator(".run").click()
    page.goto(f"{page.url}/log")
    page.add_init_script(
        "new MutationObserver((_, me) => document.querySelector('.line') && (me.disconnect(),"
        " window.linesAt = performance.now())).observe(document, {childList: true, subtree: true})"
    )
    page.reload()
    page.locator(".line").first.wait_for()
    page.locator(".log-foot", has_text=re.compile(r"^1\d{5} lines")).wait_for(timeout=5000)
    painted = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"
    first_paint, here = page.evaluate(painted), page.evaluate("() => window.linesAt")

    log = page.locator(".log")
    for part in (0.35, 0.95, 0.55, 0.15):
        log.evaluate("(log, part) => { log.scrollTop = log.scrollHeight * part }", part)
        log.get_by_text(f"line {int(LINES * part) // 10_000}").first.wait_for()
    page.keyboard.press("/")
    page.keyboard.type("the needle")
    page.locator(".line.is-current mark").wait_for()
    assert page.locator(".line").count() < 1000

    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    heap = next(one["value"] for one in metrics if one["name"] == "JSHeapUsedSize") / 1e6
    with capsys.disabled():
        print(f"\nfirst paint {first_paint:.0f} ms, log {here:.0f} ms, heap {heap:.1f} MB")
    assert heap < 150


@pytest.fixture
def two_runs(project: Project) -> Running:  # noqa: F811
    """A run by two workers: one task blocked, one asks, one at work. And a run that has ended."""
    cases = f"""case $id in
A) echo a > a; {COMPLETE} ;;
B) echo "<promise>BLOCKED: no key</promise>" ;;
C) echo "<promise>DECIDE: red or blue?</promise>" ;;
*) {WAIT.format(project.path.parent / "gate")}; {COMPLETE} ;;
esac"""
    project.tasks(*({"id": name, "title": f"The task {name}"} for name in "ABCD"))
    agent = project.agent(cases)
    once = program(project.path.parent / "once.sh", "echo once")
    ralph("run", "--agent", once, "-p", "Say it once", "-m", "1")
    flags = ("--parallel", "2", "--no-sandbox")
    return Running(project.path, "tasks", "run", "--agent", agent, *flags)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(
    look: Look, web: Web, two_runs: Running, theme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = look(color_scheme=theme)
    page.get_by_role("region", name="Waiting for you").get_by_text("red or blue?").wait_for()
    two_runs.await_that(lambda: "no key" in two_runs.err())
    page.locator(".run", has_text="tasks run").click()
    page.locator("h1").wait_for()
    run = page.url.partition("#")[2]
    found = []
    places = ["/", "/spending", *(f"{run}/{part}" for part in PARTS), f"{run}/iterations/1"]
    for place in places:
        page.evaluate("place => { location.hash = place }", place)
        page.locator("main h1").wait_for()
        found += [
            f"{theme} {place}: {one['impact']} {one['id']} {one['nodes'][0]['html']}"
            for one in Axe().run(page).response["violations"]
        ]
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    found += [one["id"] for one in Axe().run(page).response["violations"]]
    assert not found, "\n".join(found)
    paper = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    assert sum(map(int, paper[4:-1].split(","))) > 382 if theme == "light" else True


def test_a_phone_shows_everything_without_scrolling_sideways(look: Look, two_runs: Running) -> None:
    page = look(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.get_by_role("region", name="Waiting for you").get_by_text("red or blue?").wait_for()
    page.locator(".run", has_text="tasks run").click()
    page.get_by_role("button", name="Stop now").wait_for()
    run = page.url.partition("#")[2]
    for place in ("/", "/spending", *(f"{run}/{part}" for part in PARTS)):
        page.evaluate("place => { location.hash = place }", place)
        page.locator("main h1").wait_for()
        assert page.evaluate("() => document.documentElement.scrollWidth") == 390, place
    controls = page.locator(".controls :is(button, input, select)").all()
    assert min((one.bounding_box() or {"height": 0})["height"] for one in controls) >= 40
    assert two_runs.process.poll() is None


def test_everything_can_be_reached_by_keys(look: Look, two_runs: Running) -> None:
    page = look()
    page.get_by_role("region", name="Waiting for you").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.locator(".crumbs").wait_for()
    for number, heading in ((2, ".iterations"), (3, ".board"), (4, ".charts"), (5, ".lanes")):
        page.keyboard.press(str(number))
        page.locator(heading).wait_for()
    page.keyboard.press("2")
    page.locator(".iterations").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator(".iteration-head[aria-expanded=true]").wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    page.keyboard.press("1")
    page.locator(".log").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("f?j")
    assert page.get_by_label("Search the log").input_value() == "f?j"
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.keyboard.press("u")
    page.get_by_role("heading", name="Runs").wait_for()
    page.keyboard.press("Tab")
    focused = page.evaluate("() => document.activeElement.matches(':focus-visible')")
    assert focused
    assert two_runs.process.poll() is None
