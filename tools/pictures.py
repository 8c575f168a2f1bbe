"""Takes the pictures of the documentation again, in a real Chromium (tools/browser finds one).

python tools/night.py DIR                 a run to look at
python tools/pictures.py DIR              docs/pictures/report-*.png of it
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from night import environment

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
ARGUMENTS = ("--no-sandbox", "--no-first-run", "--hide-scrollbars")
DESK, PHONE = (1120, 1180), (390, 844)
LIAR = "details.disbelieved"
UNFOLD = "all => all.forEach(each => each.open = true)"


def report(place: Path) -> Path:
    """The report of the run that is there."""
    path = Path(tempfile.mkdtemp()) / "report.html"
    command = (sys.executable, "-m", "ralph", "report", "-o", str(path))
    subprocess.run(command, cwd=place / "project", env=environment(place), check=True)
    return path


def take(path: Path) -> None:
    """The top in light and dark, the plots, a claim that was not believed, the phone."""
    from playwright.sync_api import sync_playwright

    browser_path = os.environ.get("RALPH_BROWSER", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=list(ARGUMENTS))

        def opened(size: tuple[int, int], scheme: Any = "light") -> Any:  # noqa: ANN401
            viewport: Any = {"width": size[0], "height": size[1]}
            page = browser.new_page(viewport=viewport, color_scheme=scheme)
            page.goto(path.as_uri())
            return page

        def save(part: Any, name: str) -> None:  # noqa: ANN401
            part.screenshot(path=PICTURES / f"report-{name}.png")

        save(opened(DESK), "top")
        save(opened(DESK, "dark"), "dark")
        save(opened(DESK).locator(".plots"), "plots")
        page = opened(DESK)
        page.locator(LIAR).evaluate_all(UNFOLD)
        box = page.locator(LIAR).first.bounding_box()
        path_ = PICTURES / "report-claim.png"
        page.screenshot(path=path_, full_page=True, clip={**box, "height": min(box["height"], 780)})
        save(opened(PHONE), "phone")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path)
    PICTURES.mkdir(exist_ok=True)
    take(report(parser.parse_args().place.resolve()))
