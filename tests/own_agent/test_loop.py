"""The loop of the own agent on the scripted model: B's actions, over every protocol."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ralph.agents.providers import model_of
from ralph.kernel.value import replace
from ralph.own_agent.program import Wishes, work
from ralph.own_agent.service import service_of
from ralph.own_agent.talk import Json
from ralph.testing.scripted_model.server import ScriptedModel

MODELS = ("anthropic:m", "openai:m", "openai-chat:m", "google:m")
READ = {"name": "read", "input": {"path": "f"}}


class Played:
    """What an agent told, and what its model was asked."""

    def __init__(self, code: int, told: list[Json], bodies: list[Json]) -> None:
        self.code, self.told, self.bodies = code, told, bodies

    def of(self, kind: str) -> list[Json]:
        return [fields for fields in self.told if fields["type"] == kind]

    @property
    def result(self) -> Json:
        return self.of("result")[-1]


Play = Callable[..., Played]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def play(tmp_path: Path) -> Play:
    (tmp_path / "f").write_text("seen\n")

    def played(model: str, *turns: Json, prompt: str = "Do it.", **wishes: Any) -> Played:  # noqa: ANN401
        told: list[Json] = []
        chosen = model_of(model)
        with ScriptedModel(list(turns)) as scripted:
            environ = {chosen.provider.url_variable: scripted.url, "PATH": "/usr/bin:/bin"}
            service = replace(service_of(chosen, environ), sleep=lambda _: None)
            code = work(
                prompt,
                service,
                str(tmp_path),
                environ,
                wishes=Wishes(**wishes),
                tell=lambda kind, **fields: told.append({"type": kind, **fields}),
            )
            return Played(code, told, [call["body"] for call in scripted.calls()])

    return played


def test_it_acts_until_the_model_wants_nothing_more(model: str, play: Play) -> None:
    both = {"text": "I look.", "tools": [READ, {"name": "bash", "input": {"command": "echo hi"}}]}
    played = play(model, both, {"text": "<response>DONE</response>"})
    assert [(a["action"], a["id"]) for a in played.of("action")] == [("read", "a1"), ("bash", "a2")]
    assert [a["output"] for a in played.of("action_result")] == ["seen", "hi"]
    assert played.result["text"] == "<response>DONE</response>"
    assert (played.code, played.result["error"], played.result["steps"]) == (0, None, 2)
    first, second = played.bodies
    assert "seen" not in str(first)
    assert str(second).index("seen") < str(second).rindex("hi")  # in the order of the calls
    assert [fields["type"] for fields in played.told].count("result") == 1


def test_tokens_are_those_of_the_service(model: str, play: Play) -> None:
    used = {"input": 100, "output": 7, "cache_read": 40}
    played = play(model, {"tools": [READ], "usage": used}, {"text": "ok", "usage": used})
    fresh = 200 if model.startswith("anthropic") else 120
    assert played.result["usage"] == {
        "input_tokens": fresh,
        "output_tokens": 14,
        "cache_read_input_tokens": 80,
        "cache_creation_input_tokens": 0,
    }
    assert len(played.of("used")) == 2


@pytest.mark.parametrize("status", [401, 429, 529])
def test_trouble_ends_the_turn_and_is_told(model: str, play: Play, status: int) -> None:
    error = {"status": status, "message": "no", "headers": {"retry-after": "900"}}
    played = play(model, {"tools": [READ]}, {"error": error})
    assert played.code == 1
    assert played.result["error"] == {
        "message": "no",
        "status": status,
        "retry_after": 900.0,
        "resets_at": None,
    }


def test_a_refusal_ends_the_turn(play: Play) -> None:
    played = play("anthropic:m", {"text": "I may not.", "stop": "refusal"})
    assert (played.code, played.of("text")) == (1, [])
    assert "refused" in played.result["error"]["message"]


def test_a_question_is_handed_back_once_and_then_asked(model: str, play: Play) -> None:
    """A question becomes DECIDE; but most of them the model can decide by itself."""
    played = play(model, {"text": "Hm.\n\nTabs or spaces?"}, {"text": "Spaces it is."})
    assert (played.result["text"], played.of("question")) == ("Spaces it is.", [])
    assert "Nobody can answer" in str(played.bodies[1])
    played = play(model, {"text": "Hm.\n\nTabs or spaces?", "times": 2})
    assert [fields["text"] for fields in played.of("question")] == ["Tabs or spaces?"]
    assert (played.code, len(played.bodies)) == (0, 2)
    told = play(model, {"text": "<promise>DECIDE: tabs?</promise> Or what?"})
    assert (told.of("question"), len(told.bodies)) == ([], 1)
    before = {"text": "<response>DONE</response>", "tools": [READ]}
    assert play(model, before, {"text": "Anything else?"}).of("question") == []


def test_an_answer_that_was_cut_goes_on(play: Play) -> None:
    played = play("anthropic:m", {"text": "One,", "stop": "max_tokens"}, {"text": "two."})
    assert [fields["text"] for fields in played.of("text")] == ["One,", "two."]
    endless = play("anthropic:m", {"text": "On", "stop": "max_tokens", "times": -1})
    assert len(endless.bodies) == 3


def test_a_call_that_was_cut_is_answered_and_the_model_told_why(play: Play) -> None:
    """Else it writes the same again, and again."""
    cut = {"tools": [READ], "stop": "max_tokens"}
    played = play("anthropic:m", cut, {"text": "ok"})
    *_, outcome, told = played.bodies[-1]["messages"]
    assert "tool_result" in str(outcome)
    assert "cut off" in str(told)
    endless = play("anthropic:m", cut | {"times": -1})
    assert len(endless.bodies) == 3


def test_half_a_character_is_sent_to_no_service(play: Play, model: str) -> None:
    """Many refuse it, and every later request has it."""
    odd = {"name": "bash", "input": {"command": "echo \ud800"}}
    played = play(model, {"text": "\ud800", "tools": [odd]}, {"text": "ok"})
    assert played.result["text"] == "ok"
    assert json.dumps(played.bodies[-1], ensure_ascii=False).encode()


def test_only_what_it_says_is_its_word(model: str, play: Play) -> None:
    """A claim that it thinks, reads, or writes into a summary is none."""
    done = "<response>DONE</response>"
    read = {"thinking": done, "tools": [{"name": "bash", "input": {"command": f"echo '{done}'"}}]}
    played = play(model, read, {"thinking": done, "text": "Not yet."})
    assert played.of("thinking")
    assert done in str(played.of("action_result"))
    assert (played.of("text"), played.result["text"]) == (
        [{"type": "text", "text": "Not yet."}],
        "Not yet.",
    )


def test_endless_actions_have_an_end(model: str, play: Play) -> None:
    played = play(model, {"tools": [READ], "times": -1}, most_steps=5)
    assert (played.code, played.result["steps"], len(played.bodies)) == (0, 5, 5)
    assert "--max-steps" in played.of("progress")[-1]["text"]


def test_without_tools_it_only_answers(model: str, play: Play) -> None:
    """A message turn, by ADR 8. A model that calls all the same is not obeyed."""
    played = play(model, {"text": "x"}, has_tools=False)
    assert "tools" not in played.bodies[0]
    assert (played.result["text"], played.of("action")) == ("ok", [])


def test_old_outputs_go_where_the_window_is_full(model: str, play: Play) -> None:
    big = {"name": "bash", "input": {"command": "head -c 9000 /dev/zero | tr '\\0' x"}}
    turns = [{"tools": [big], "usage": {"input": n}} for n in (3000, 6000, 9000, 12_000, 9000)]
    played = play(model, *turns, {"text": "ok"}, window=18_000)
    assert "old outputs were cut" in str(played.of("progress"))
    assert "characters are left out" in str(played.bodies[-1])
    assert played.result["text"] == "ok"


def test_a_talk_that_stays_too_long_is_summed_up(model: str, play: Play) -> None:
    """The summary is asked for without tools, which the scripted model answers with "ok"."""
    told = {"text": "y" * 30_000, "tools": [READ], "usage": {"input": 9000}}
    played = play(model, told, told, {"text": "done"}, window=10_000)
    assert "summed up" in str(played.of("progress"))
    assert "ok" not in [fields["text"] for fields in played.of("text")]
    assert "Where it stands:\n\nok" in str(played.bodies[-1].values()).replace("\\n", "\n")
    assert "Do it." in str(played.bodies[-1])
    assert played.result["text"] == "done"


def test_a_service_that_finds_it_too_long_is_believed(model: str, play: Play) -> None:
    error = {"status": 400, "message": "prompt is too long: 300000 tokens > 200000 maximum"}
    played = play(model, {"tools": [READ]}, {"error": error}, {"text": "done"})
    assert "summed up" in str(played.of("progress"))
    assert (played.code, played.result["text"]) == (0, "done")
    first = play(model, {"error": error, "times": -1})
    assert (first.code, first.result["error"]["status"]) == (1, 400)


def test_the_projects_own_instructions_are_told(play: Play, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs here.\n")
    assert "Use tabs here." in str(play("openai:m", {"text": "ok"}).bodies[0])
