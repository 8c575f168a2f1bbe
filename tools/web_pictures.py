"""Takes the pictures of `ralph web` for the documentation again, in a real Chromium: runs of
scripted agents in an empty directory, and the real server.

    python tools/web_pictures.py DIR          docs/pictures/web-*.png
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from night import environment, prepare

from ralph.testing.scripted_agent.install import install_agent

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
ARGUMENTS = ("--no-sandbox", "--no-first-run", "--hide-scrollbars")
DESK, TALL, PHONE = (1200, 860), (1200, 1180), (390, 844)
RALPH = (sys.executable, "-m", "ralph")
HANG = {"name": "Bash", "input": {"command": "make test"}, "run": "sleep 600"}
QUIET: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
# Of each: what it is asked, the turns of its agent, more flags.
RUNS: tuple[tuple[str, str, list[dict[str, Any]], tuple[str, ...]], ...] = (
    (
        "notes",
        "Write the release notes for 2.4",
        [{"text": "They are written.", "response": "DONE", "cost": 0.41}],
        ("--max-cost", "2"),
    ),
    (
        "nightly",
        "Speed up the nightly report",
        [{"text": "It is a little faster.", "cost": 1.27}],
        ("-m", "3", "--max-cost", "5"),
    ),
    (
        "api",
        "Remove the deprecated endpoints",
        [{"tools": [HANG], "text": ["Two are left.", ""]}],
        (),
    ),
    (
        "site",
        "Make the test suite pass on Python 3.13",
        [
            {"text": "Eleven tests fail.", "cost": 0.62},
            {"tools": [HANG], "text": ["Four fail.", ""]},
        ],
        ("--max-cost", "4"),
    ),
)


def begin(place: Path, name: str, asked: str, turns: list[Any], flags: tuple[str, ...]) -> Any:  # noqa: ANN401
    """A run of a scripted agent, under way."""
    project = place / name
    project.mkdir(parents=True)
    for words in ("init -q -b main", "commit -q --allow-empty -m Begin"):
        subprocess.run(["git", *words.split()], cwd=project, env=environment(place), check=True)
    agent = install_agent(str(place / "bin" / name), turns)
    command = [*RALPH, "run", "--agent", agent, "-p", asked, *flags]
    return subprocess.Popen(command, cwd=project, env=environment(place), **QUIET)


def earlier(place: Path, days: int = 13) -> None:
    """What was spent on the days before."""
    usage = {"input": 9_000, "output": 4_100, "cache_read": 88_000, "cache_write": 0}
    what = {"profile": "tasks", "role": "work", "agent": "claude", "model": "", "usage": usage}
    lines = [
        {
            **what,
            "time": time.time() - day * 86_400 - turn * 900,
            "run": f"earlier-{day}",
            "iteration": turn + 1,
            "cost_usd": 0.4 + (day * 37 + turn * 11) % 23 / 10,
            "seconds": 300.0,
        }
        for day in range(1, days)
        for turn in range(1 + day * 7 % 5)
    ]
    ledger = place / "state" / "earlier-00000000" / "ledger.jsonl"
    ledger.parent.mkdir(parents=True)
    ledger.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")


@contextmanager
def world(place: Path) -> Iterator[str]:
    """Runs of every kind, and a server that shows them: its link."""
    earlier(place)
    begun = {run[0]: begin(place, *run) for run in RUNS}
    begun["notes"].wait()
    begun["nightly"].wait()
    time.sleep(1)
    begun["api"].send_signal(signal.SIGKILL)
    begun["api"].wait()
    project = prepare(place, pace=3.0)
    words = ("tasks", "run", "--parallel", "4", "--no-sandbox", "--max-cost", "12", "-m", "60")
    night = subprocess.Popen([*RALPH, *words], cwd=project, env=environment(place), **QUIET)
    web = subprocess.Popen(
        [*RALPH, "web", "--json"], cwd=place, env=environment(place), stdout=subprocess.PIPE
    )
    try:
        assert web.stdout is not None
        yield json.loads(web.stdout.readline())["url"]
    finally:
        for process in (web, night, begun["site"]):
            process.kill()
            process.wait()


def take(link: str) -> None:
    """Every page, at the moment at which there is something to see."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("RALPH_BROWSER", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))

        def opened(size: tuple[int, int], scheme: Any = "light", place: str = "") -> Any:  # noqa: ANN401
            viewport: Any = {"width": size[0], "height": size[1]}
            page = browser.new_page(viewport=viewport, color_scheme=scheme)
            page.goto(link)
            page.locator(".run").first.wait_for()
            if place:
                page.evaluate("place => { location.hash = place }", place)
                page.locator(".run-head, .table").first.wait_for()
            return page

        def save(page: Any, name: str, after: int = 600) -> None:  # noqa: ANN401
            page.wait_for_timeout(after)
            page.screenshot(path=PICTURES / f"web-{name}.png")

        runs = opened(DESK)
        runs.get_by_text("which database, sqlite or postgres?").first.wait_for()
        address = runs.locator(".run", has_text="tasks run").get_attribute("href")
        run = str(address).removeprefix("#")
        runs.get_by_label("which database").first.fill("Sqlite: one file, no server.")
        save(runs, "runs")
        phone = opened(PHONE)
        phone.get_by_text("which database").first.wait_for()
        save(phone, "phone")
        opened(DESK, place=run).wait_for_timeout(12_000)
        worker = opened(TALL, "dark", f"{run}/log")
        worker.locator(".at-work a").first.click()
        worker.locator(".line").nth(10).wait_for()
        save(worker, "log")
        board = opened(PHONE, "dark", f"{run}/board")
        board.locator(".strip").evaluate("one => one.scrollIntoView()")
        save(board, "phone-board")
        save(opened(TALL, place=f"{run}/board"), "board")
        save(opened(TALL, "dark", f"{run}/charts"), "charts")
        save(opened(DESK, place=f"{run}/workers"), "workers")
        claim = opened(TALL, place=f"{run}/iterations")
        claim.locator(".is-disbelieved .iteration-head").click()
        claim.locator(".verdict").wait_for()
        claim.locator(".is-disbelieved").evaluate("one => one.scrollIntoView()")
        save(claim, "claim")
        signals = opened(DESK, place=f"{run}/signals")
        signals.get_by_placeholder("Tell the agent something").fill(
            "Keep the names of the columns."
        )
        signals.get_by_role("button", name="Send note").click()
        save(signals, "signals", 6_000)
        save(opened(DESK, place="/spending"), "spending")
        stranger = browser.new_context(viewport={"width": DESK[0], "height": 480}).new_page()
        stranger.goto(link.partition("#")[0])
        save(stranger, "login")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path)
    PICTURES.mkdir(exist_ok=True)
    with world(parser.parse_args().place.resolve()) as printed:
        take(printed)
