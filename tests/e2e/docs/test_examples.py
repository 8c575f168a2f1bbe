"""The examples of README and docs print what the pages show; in an empty home, without a key.

`RALPH_UPDATE_EXAMPLES=1 pytest tests/e2e/docs` writes what they print into the pages.
"""

import os
from pathlib import Path

import pytest

from kits.examples import HAND_WRITTEN, ROOT, alike, blocks, play, shown
from kits.sandbox.stage import overlay_is_usable
from kits.thorough import dealt

UPDATE = bool(os.environ.get("RALPH_UPDATE_EXAMPLES"))
SESSIONS = [p for p in HAND_WRITTEN if any(b.language == "console" for b in blocks(p))]


@pytest.mark.parametrize(
    "page", dealt(SESSIONS, 3), ids=[str(p.relative_to(ROOT)) for p in SESSIONS]
)
def test_an_example_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    if page.name == "sandbox.md" and not overlay_is_usable():
        pytest.skip("this machine allows no namespaces")
    home = tmp_path / "home"
    wrong = []
    text, place = page.read_text("utf-8"), 0
    for block, command, shall, printed in play(page, home):
        got = shown(printed, home)
        if not alike(shall, got):
            wrong.append(f"{page.name}:{block.line}: $ {command}\n{got}")
            place = text.index(f"$ {command}\n{shall}", place) + len(f"$ {command}\n")
            text = text[:place] + got.strip("\n") + "\n" + text[place + len(shall) :]
    if UPDATE:
        page.write_text(text, "utf-8")
    assert not wrong, "\n".join(wrong)


PAGE = """```sh title="dir/say"
#!/bin/sh
echo "it is $(date +%H:%M:%S)"; pwd; exit 3
```
```console
$ cd dir && chmod +x say && ./say
it is 11:22:33
/home/me/work/dir
$ echo "exit code $?" && \\
    ls
exit code 3
say
```
"""


@pytest.mark.parametrize(
    ("true", "said", "right"),
    [
        ("", "", True),
        ("exit code 3", "exit code 4", False),
        ("it is 11:22:33\n", "", False),
        ("it is 11:22:33\n", "...\n", True),
        ("/home/me/work/dir", "/home/…/dir", True),
    ],
)
def test_a_page_that_does_not_say_what_is_printed_is_found(
    true: str, said: str, right: bool, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(true, said))
    home = tmp_path / "home"
    played = play(page, home)
    assert all(alike(shall, shown(got, home)) for _, _, shall, got in played) is right
