"""The report in a real browser: opened from a file, without scripts, on every size and on paper."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from kits.recaps import crew, hostile, single
from ralph.ui.paper.page import page as report_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = pytest.mark.web
DESK, PHONE = (1200, 820), (390, 844)
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"
PAPER = "getComputedStyle(document.body).backgroundColor"
UNFOLD = "all => all.forEach(each => each.open = true)"


class Opened:
    """A report that was opened from its file, and everything that it asked for or said."""

    def __init__(
        self,
        browser: "Browser",
        path: Path,
        size: tuple[int, int] = DESK,
        *,
        scripts: bool = False,
    ) -> None:
        viewport: ViewportSize = {"width": size[0], "height": size[1]}
        self._context = browser.new_context(viewport=viewport, java_script_enabled=scripts)
        self.page: Page = self._context.new_page()
        self.heard: list[str] = []
        self.page.on("console", lambda said: self.heard.append(said.text))
        self.page.on("dialog", lambda dialog: self.heard.append(dialog.message))
        self.page.on("request", lambda request: self.heard.append(request.url))
        self.page.goto(path.as_uri())
        self.heard.remove(path.as_uri())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A night, an attack, and three runs compared."""
    place = tmp_path_factory.mktemp("reports")
    runs = {"night": [crew()], "hostile": [hostile()], "several": [crew(), hostile(), single()]}
    for name, recaps in runs.items():
        (place / f"{name}.html").write_text(report_of(recaps), "utf-8")
    return {name: place / f"{name}.html" for name in runs}


@pytest.mark.parametrize("name", ["night", "hostile", "several"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_it_asks_for_nothing_and_fits_every_width(
    browser: "Browser", files: dict[str, Path], name: str, size: tuple[int, int]
) -> None:
    opened = Opened(browser, files[name], size)
    opened.page.locator("details").evaluate_all(UNFOLD)
    wide, window = opened.page.evaluate(WIDTHS)
    assert wide <= window
    assert not opened.heard


def test_a_mark_leads_to_its_iteration_and_a_fold_opens(
    browser: "Browser", files: dict[str, Path]
) -> None:
    page = Opened(browser, files["night"]).page
    page.get_by_role("link", name="Iteration 10").first.click()
    liar = page.locator("details:target")
    assert "not believed" in liar.locator("summary").first.inner_text()
    assert not liar.locator(".card").is_visible()
    liar.locator("summary").first.click()
    assert liar.locator(".card").is_visible()
    assert "by the rule objections" in liar.locator(".card").inner_text()


def test_it_is_dark_where_people_want_that_and_light_on_paper(
    browser: "Browser", files: dict[str, Path]
) -> None:
    page = Opened(browser, files["night"]).page
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(PAPER)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(PAPER) != dark
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    assert page.locator("details.matters .card").first.is_visible()  # open on paper
    assert not page.locator("details.went-on .card").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: "Browser", files: dict[str, Path], scheme: Literal["light", "dark"]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = Opened(browser, files["several"], scripts=True).page
    page.emulate_media(color_scheme=scheme)
    page.locator("details").evaluate_all(UNFOLD)
    serious = [
        (each["id"], [node["html"][:200] for node in each["nodes"]])
        for each in axe.run(page).response["violations"]
        if each["impact"] in {"serious", "critical"}
    ]
    assert not serious
