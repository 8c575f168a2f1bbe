"""The report as Markdown: short, and nothing that others wrote becomes more than words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kits.recaps import HOSTILE, bare, crew, hostile, single
from ralph.kernel.value import replace
from ralph.ui.paper.markdown import code, markdown, plain_words

NASTY = st.text(
    st.sampled_from("<>&\"'`*_[]()!|~$#@:/.\\-+=0123abcdefhtpswGHm \n\u202e\x1b"), max_size=60
)
OURS = {"<details>", "<summary>", "</summary>", "</details>"}


@given(NASTY)
def test_no_text_of_a_run_becomes_markup(text: str) -> None:
    """GitHub's dialect, and those of chats: no HTML, link, picture, mention, reference, list."""
    line = plain_words(text)
    bare_line = re.sub(r"\\.|&#?\w+;", "?", line)
    assert not re.search(r"[<>|`*_\[\]~]", bare_line)
    assert not re.search(r"://|[@#]\w|\bwww\.|\bmailto:|\$(?!\d)", bare_line)
    assert not re.match(r"\s*([-+=#]|\d+[.)])", line)
    assert "\n" not in line
    assert not re.search("[\x00-\x1f\u202a-\u202e]", line)


@given(NASTY)
def test_code_ends_where_it_should(text: str) -> None:
    """A fence is longer than any run of backticks inside."""
    shown = code(text)
    fence = re.match("`+", shown)
    assert fence is not None
    inner = shown[len(fence[0]) : -len(fence[0])]
    assert shown.endswith(fence[0])
    assert fence[0] not in re.findall("`+", inner)


def test_a_browser_sees_no_element_that_is_not_ours() -> None:
    module = pytest.importorskip("markdown")
    shown = module.markdown(markdown([hostile(), crew()]), extensions=["tables"])
    found = set(re.findall(r"<(\w+)", shown))
    ours = {"h2", "h3", "p", "strong", "code", "ul", "li", "blockquote", "details", "summary"}
    assert found <= {*ours, "table", "thead", "tbody", "tr", "th", "td"}


def test_every_row_of_a_table_has_as_many_cells() -> None:
    for text in (markdown([hostile(), hostile()]), markdown([crew()])):
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            counts = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
            assert len(counts) == 1, table


def test_a_run_in_words() -> None:
    lines = markdown([crew()]).splitlines()
    assert lines[0] == "## ⚠️ It needs you: `20261119-221500-3f2a`"
    assert "> 12 tasks of .ralph/tasks.jsonl" in lines
    assert "**1 claim was not believed**" in lines
    assert any("said **COMPLETE**; not believed: make test: exit code 1" in line for line in lines)
    row = "| ✅ done | **T-001** Parse dates in both formats | `f25413636d94` | +30 −2 | $0.27 |"
    assert f"{row} claimed: COMPLETE, passed: make lint, passed: make test |" in lines
    assert '- `ralph tasks answer T-003 "..."`' in lines
    assert [line for line in lines if "<" in line] == [
        "<details><summary>30 iterations</summary>",
        "</details>",
    ]


def test_a_prompts_run_has_its_evidence_and_no_table_of_tasks() -> None:
    text = markdown([replace(single(), done=("a1b2c3d  Add greet",))])
    assert text.startswith("## ✅ Completed: `20261119-010101-0001`")
    assert "- passed: make test" in text
    assert "1 turn of unknown cost" in text
    assert "| Task | Commit |" not in text


def test_a_run_of_which_nothing_is_known_is_told_too() -> None:
    assert markdown([bare()]).startswith("## ❌ Crashed: `20261119-000000-dead`\n")


def test_what_was_written_is_still_readable() -> None:
    """People must see what an agent tried."""
    assert "script" in plain_words(HOSTILE)
    assert plain_words("1. a_b at https://x.y") == "1\u2060. a\\_b at https:\u2060//x.y"
