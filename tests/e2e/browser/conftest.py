"""A real browser that looks at the real `ralph web`, at runs of the scripted agent."""

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from page_support import Watcher, Web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

if find_spec("pytest_playwright") is None:
    collect_ignore_glob = ["test_*.py"]
BROWSER = os.environ.get("RALPH_BROWSER", "/usr/bin/chromium")
USUAL = {"width": 1200, "height": 820}
ARGUMENTS = (
    *("--no-sandbox", "--no-first-run", "--disable-quic", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@pytest.fixture(scope="session")
def browser_type_launch_args(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Debian's Chromium, in a home of its own."""
    env = {**os.environ, "HOME": str(tmp_path_factory.mktemp("browser"))}
    return {"executable_path": BROWSER, "args": list(ARGUMENTS), "env": env}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    """`ralph web` over the runs of this test."""
    server = Web(tmp_path)
    yield server
    server.end()


@pytest.fixture
def look(browser: "Browser", web: Web) -> Iterator[Callable[..., "Page"]]:
    """Opens the printed link. Whatever the page complains about fails the test, and so does
    everything that an attacker would want: a dialog, an error, a violation of its policy."""
    watchers: list[Watcher] = []

    def opened(link: str = "", **context: Any) -> "Page":  # noqa: ANN401
        watcher = Watcher(browser.new_context(**{"viewport": USUAL, **context}))
        watchers.append(watcher)
        watcher.page.goto(link or web.link)
        return watcher.page

    yield opened
    complaints = [each for watcher in watchers for each in watcher.close()]
    assert not complaints, "\n".join(complaints)
