"""Results: their order, how they are kept, and what is made of them."""

import html.parser
import json
from pathlib import Path
from typing import Any

import pytest

from ralph.errors import ConfigError, LockedError, StateError
from ralph.evaluation.page import page
from ralph.evaluation.schema import SuiteFile
from ralph.evaluation.standings import Standings, as_document, standings
from ralph.evaluation.store import begun, last_of, refuse_another, resumed
from ralph.evaluation.suite import Suite
from ralph.evaluation.trials import (
    Result,
    Standing,
    TaskCheck,
    Trial,
    as_json,
    from_json,
    shuffled,
    trials_of,
)
from ralph.evaluation.verdict import ERROR, FAILED, PASSED, Verdict
from ralph.evaluation.words import markdown, notes, row_of

EVIL = '<script>alert("x")</script> & [a](javascript:b) \u202e\x1b[31m'


def result(number: int, agent: str, outcome: str = PASSED, **more: Any) -> Result:  # noqa: ANN401
    verdict = Verdict(outcome, seconds=float(number), iterations=1, **more)
    return Result(
        Trial(number, "t1" if number < 10 else "t2", agent, number), verdict, f"run{number}"
    )


RESULTS = (
    result(1, "honest", claimed=True, cost_usd=0.5),
    result(2, "honest", FAILED, why="check: exit code 1", cost_usd=0.25),
    result(3, "honest", ERROR, why="no credit"),
    result(4, EVIL, FAILED, claimed=True, false_claim=True, said=EVIL, output=EVIL, why=EVIL),
    result(5, EVIL, FAILED, claimed=True, false_claim=True, tampered=("Protected path x",)),
    result(6, EVIL, claimed=True),
    result(11, "honest", claimed=True, false_claim=True),
)
PLANNED = (
    *(each.trial for each in RESULTS),
    Trial(12, "t2", EVIL, 1),
    Trial(13, "t3", "honest", 1),
)
CHECKS = {
    "t1": TaskCheck("t1", passes_at_start=True),
    "t2": TaskCheck("t2"),
    "t3": TaskCheck("t3", problem=f"node is not on PATH {EVIL}"),
}


def found() -> Standings:
    standing = Standing(PLANNED, {r.trial.number: r for r in RESULTS}, CHECKS, "its 1h are used up")
    return standings(("a suite", "20260101-000000-aaaa", 5.0), standing, 9.0)


def test_each_rate_has_its_own_trials() -> None:
    honest, evil = found().agents
    assert (honest.passes.count, honest.passes.of, honest.errors) == (2, 3, 1)
    assert (honest.falsehoods.count, honest.falsehoods.of) == (1, 2)
    assert (honest.cost_usd, honest.uncounted, honest.seconds) == (0.75, 1, 2.0)
    assert (evil.passes.count, evil.falsehoods.count, evil.falsehoods.of) == (1, 2, 3)
    assert (evil.cost_usd, evil.tampered) == (None, 1)
    assert found().without_result == 3


def test_the_document_has_the_names_that_programs_know() -> None:
    told = json.loads(json.dumps(as_document(found())))
    honest, _ = told["agents"]
    assert {"agent", "pass_rate", "false_claim_rate", "pass_interval", "claims"} <= honest.keys()
    assert (honest["pass_rate"], honest["false_claim_rate"]) == (0.6667, 0.5)
    assert told["trials_planned"], told["trials_without_result"] == (9, 3)
    assert [task["problem"] is None for task in told["tasks"]] == [True, True, False]
    assert told["trials"][0]["verdict"] == PASSED
    nobody = standings(("s", "e", 0.0), Standing((PLANNED[0],), {}, {}), 0.0)
    (unknown,) = as_document(nobody)["agents"]
    assert (unknown["false_claim_rate"], unknown["false_claim_interval"]) == (0.0, [0.0, 1.0])


def test_what_a_reader_has_to_know() -> None:
    told = " ".join(notes(found()))
    for words in (
        "t1: its check passes before anybody has worked",
        "Not tried: t3: node is not on PATH",
        "changed protected files in 1 trial",
        "Errors, which count for nothing: honest: no credit",
        "its 1h are used up",
        "3 of 9 trials have no result",
    ):
        assert words in told
    assert row_of(found().agents[0])[1:6] == ("2 of 3", "67% (21-94)", "2", "50% (9-91)", "$0.75+")


class Elements(html.parser.HTMLParser):
    """Collects the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_page_shows_what_others_wrote_as_text_and_fetches_nothing() -> None:
    text = page(found())
    elements = Elements()
    elements.feed(text)
    names = {name for name, _ in elements.seen}
    assert not names & {"script", "img", "link", "iframe", "a"}
    assert not [a for _, attrs in elements.seen for a in attrs if a in ("src", "style", "onload")]
    policies = [attrs["content"] for _, attrs in elements.seen if "http-equiv" in attrs]
    assert [str(policy)[:19] for policy in policies] == ["default-src 'none';"]
    assert 'content="ralph eval' in text
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text
    assert text.count('class="plot"') == 2
    assert "ralph report run4" in text
    assert "was wrong 2 of the 3 times it said done" in text
    trials = [a for name, a in elements.seen if name == "details" and "trial" in str(a["class"])]
    assert len(trials) == 5  # all but those that passed without a false word


def test_a_page_of_nothing_can_be_made_too() -> None:
    nothing = standings(("s", "e", 0.0), Standing((PLANNED[0],), {}, {}), 0.0)
    assert "No trial has a result" in page(nothing)
    honest = Standing((PLANNED[0],), {1: RESULTS[0]}, {"t1": TaskCheck("t1")})
    assert "Nobody said done when it was not" in page(standings(("s", "e", 0.0), honest, 0.0))


def test_markdown_holds_no_html_of_others() -> None:
    text = markdown(found())
    assert "<script>" not in text
    assert "| honest | 2 of 3 |" in text


# ------------------------------------------------------------------ order and keeping


def test_every_trial_stands_once_in_an_order_by_chance() -> None:
    trials = trials_of(["a", "b", "c"], ["x", "y"], 4)
    assert [trial.number for trial in trials] == [*range(1, 25)]
    order = shuffled(trials, 1)
    assert sorted(order, key=lambda trial: trial.number) == trials
    assert order == shuffled(reversed(trials), 1)
    assert order != shuffled(trials, 2)
    assert [trial.repeat for trial in order] == [r for r in (1, 2, 3, 4) for _ in range(6)]
    assert [trial.agent for trial in order[:6]] != sorted(trial.agent for trial in order[:6])


def test_what_is_missing_can_be_made_where_its_task_can_be_tried() -> None:
    standing = Standing(PLANNED, {r.trial.number: r for r in RESULTS}, CHECKS)
    assert [trial.number for trial in standing.missing] == [3, 12, 13]
    assert [trial.number for trial in standing.possible] == [3, 12]


def test_results_come_back_as_they_were() -> None:
    for each in RESULTS:
        assert from_json(json.loads(json.dumps(as_json(each)))) == each


def suite(tmp_path: Path, digest: str = "d1") -> Suite:
    return Suite(str(tmp_path / "s.toml"), digest, SuiteFile())


def test_the_newest_result_counts_and_a_torn_line_does_not(tmp_path: Path) -> None:
    evaluation = begun(str(tmp_path / "state"), suite(tmp_path), {})
    evaluation.keep(result(1, "x", ERROR))
    evaluation.keep(result(2, "x"))
    evaluation.keep(result(1, "x", FAILED))
    evaluation.keep_check(TaskCheck("t1", passes_at_start=True))
    with open(evaluation.place("results.jsonl"), "ab") as file:
        file.write(b'{"type":"trial","number":7}\n')  # as somebody has edited it
        file.write(b'{"type":"trial","number":3,"ta')  # torn off by a kill
    found = evaluation.results()
    assert {number: r.verdict.outcome for number, r in found.items()} == {1: FAILED, 2: PASSED}
    assert evaluation.checks() == {"t1": TaskCheck("t1", passes_at_start=True)}
    evaluation.keep(result(4, "x"))
    assert sorted(evaluation.results()) == [1, 2, 4]


def test_what_is_resumed_is_the_same_suite(tmp_path: Path) -> None:
    root, path = str(tmp_path / "state"), suite(tmp_path).path
    with pytest.raises(ConfigError, match=r"no evaluation of s\.toml was begun"):
        resumed(root, path, "s.toml")
    evaluation = begun(root, suite(tmp_path), {"fleet": "local"})
    assert resumed(root, path, "s.toml") == evaluation
    refuse_another(evaluation, suite(tmp_path), "s.toml")
    with pytest.raises(StateError, match="is not what it was"):
        refuse_another(evaluation, suite(tmp_path, "d2"), "s.toml")
    with evaluation.held(), pytest.raises(LockedError), evaluation.held():
        pass
    evaluation.forget_unbegun()
    assert last_of(root, path) is None


def test_what_has_results_is_not_forgotten(tmp_path: Path) -> None:
    evaluation = begun(str(tmp_path / "state"), suite(tmp_path), {})
    evaluation.keep(result(1, "x"))
    evaluation.forget_unbegun()
    assert last_of(str(tmp_path / "state"), suite(tmp_path).path) == evaluation
