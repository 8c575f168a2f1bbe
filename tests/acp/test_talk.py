"""A talk with an ACP agent (ADR 53): histories of messages, in and out."""

from collections.abc import Callable

import pytest

from ralph.acp.talk import Answer, Json, Talk, Wishes

NO_MODES: Json = {"sessionId": "s"}
WISHES = Wishes("do it", "/work")


class Agent:
    """The other side: answers requests by a table, and keeps what it was asked."""

    def __init__(self, wishes: Wishes = WISHES, **answers: object) -> None:
        self.told: list[tuple[str, Json]] = []
        self.talk = Talk(
            wishes, self.judge, lambda kind, **fields: self.told.append((kind, fields))
        )
        self.asked: list[tuple[str, Json]] = []
        self.judged: list[tuple[object, object]] = []
        self.answers: dict[str, object] = {
            "initialize": {"protocolVersion": 1},
            "session/new": NO_MODES,
            **{name.replace("__", "/"): value for name, value in answers.items()},
        }
        self.sent = self.talk.begin()

    def judge(self, params: object, call: object) -> Answer:
        self.judged.append((params, call))
        return Answer("it", allowed=True, option="once")

    def goes_on(self) -> "Agent":
        """Answer until there is nothing to answer."""
        while self.sent:
            (request,) = self.sent
            method = request["method"]
            self.asked.append((method, request["params"]))
            answer = self.answers.get(method)
            if isinstance(answer, list):
                answer = answer.pop(0)
            if answer is None:
                return self
            how = "error" if isinstance(answer, dict) and "message" in answer else "result"
            self.sent = self.talk.hear({"jsonrpc": "2.0", "id": request["id"], how: answer})
        return self

    def says(self, **update: object) -> None:
        params = {"sessionId": "s", "update": update}
        self.sent = self.talk.hear({"method": "session/update", "params": params})

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]

    @property
    def words(self) -> str:
        assert self.talk.outcome is not None
        error = self.talk.outcome["error"]
        return str(error["message"])


DONE = {"stopReason": "end_turn"}
LOGIN = {"code": -32000, "message": "Authentication required"}


def test_a_turn_of_version_1_ends_with_the_answer_to_its_prompt() -> None:
    agent = Agent(session__prompt=DONE).goes_on()
    assert agent.methods == ["initialize", "session/new", "session/prompt"]
    (_, hello), (_, new), (_, prompt) = agent.asked
    assert (hello["protocolVersion"], hello["clientCapabilities"]["terminal"]) == (2, False)
    assert new == {"cwd": "/work", "mcpServers": []}
    assert prompt == {"sessionId": "s", "prompt": [{"type": "text", "text": "do it"}]}
    assert agent.talk.outcome == {"response": DONE}
    assert agent.talk.step == ""


def test_a_turn_of_version_2_ends_with_an_update() -> None:
    """Its prompt is only accepted, and it may be idle before it works."""
    agent = Agent(initialize={"protocolVersion": 2})
    agent.goes_on()
    agent.says(sessionUpdate="state_update", state="idle")
    agent.sent = agent.talk.hear({"id": 3, "result": {}})
    assert agent.talk.outcome is None
    agent.says(sessionUpdate="state_update", state="running")
    agent.says(sessionUpdate="state_update", state="requires_action")
    assert agent.talk.outcome is None
    ended = {"sessionUpdate": "state_update", "state": "idle", **DONE}
    agent.says(**ended)
    agent.says(**{**ended, "stopReason": "refusal"})
    assert agent.talk.outcome == {"response": ended}


def test_an_end_of_version_2_that_says_not_why_is_one() -> None:
    agent = Agent(initialize={"protocolVersion": 2}, session__prompt={}).goes_on()
    agent.says(sessionUpdate="state_update", state="running")
    agent.says(sessionUpdate="state_update", state="idle")
    assert agent.talk.outcome is not None


def test_a_state_update_ends_no_turn_of_version_1() -> None:
    agent = Agent().goes_on()
    agent.says(sessionUpdate="state_update", state="idle", **DONE)
    assert agent.talk.outcome is None


def test_who_answers_twice_is_heard_once() -> None:
    agent = Agent(session__prompt=DONE).goes_on()
    assert agent.talk.hear({"id": 3, "result": {"stopReason": "refusal"}}) == []
    assert agent.talk.hear({"id": 77, "result": {}}) == []
    assert agent.talk.outcome == {"response": DONE}


@pytest.mark.parametrize("version", [3, 0, "1", None, True])
def test_a_version_that_nobody_knows_ends_the_run(version: object) -> None:
    agent = Agent(initialize={"protocolVersion": version}).goes_on()
    assert agent.talk.outcome is not None
    assert agent.talk.outcome["unstartable"] is True
    assert f"version {version!r}" in agent.words


def test_who_does_not_know_the_newest_version_is_offered_the_first() -> None:
    refuses = [{"code": -32602, "message": "bad version"}, {"protocolVersion": 1}]
    agent = Agent(initialize=refuses, session__prompt=DONE).goes_on()
    assert [params["protocolVersion"] for _, params in agent.asked[:2]] == [2, 1]
    assert agent.talk.outcome == {"response": DONE}


def test_a_refused_handshake_is_told() -> None:
    agent = Agent(initialize={"code": -32601, "message": "what?"}).goes_on()
    assert agent.words == "the agent refused the handshake of ACP: what?"


@pytest.mark.parametrize("where", ["initialize", "session/new", "session/prompt"])
def test_a_login_that_is_wanted_is_a_failure_of_its_own(where: str) -> None:
    agent = Agent()
    agent.answers[where] = LOGIN
    agent.goes_on()
    assert agent.talk.outcome is not None
    assert agent.talk.outcome["error"]["code"] == -32000
    assert "unstartable" not in agent.talk.outcome


METHODS = [{"id": "chat", "name": "Log in with a browser"}, {"id": "api-key", "name": "API key"}]


def test_a_key_in_the_environment_is_a_login() -> None:
    agent = Agent(
        initialize={"protocolVersion": 1, "authMethods": METHODS},
        session__new=[LOGIN, NO_MODES],
        authenticate={},
        session__prompt=DONE,
    ).goes_on()
    assert agent.asked[2] == ("authenticate", {"methodId": "api-key"})
    assert agent.talk.outcome == {"response": DONE}


def test_without_one_the_ways_to_log_in_are_named() -> None:
    methods = [{"methodId": "api-key", "name": "API key"}, {"methodId": "chat", "name": "Browser"}]
    agent = Agent(
        initialize={"protocolVersion": 2, "authMethods": methods},
        session__new=LOGIN,
        auth__login={"message": "no key", "code": 1},
    ).goes_on()
    assert agent.methods[-1] == "auth/login"
    assert agent.words == "Authentication required (it offers: API key, Browser)"


def test_a_session_that_cannot_be_opened_is_a_failure() -> None:
    agent = Agent(session__new={"code": -32603, "message": "no disk"}).goes_on()
    assert agent.talk.outcome == {"error": {"code": -32603, "message": "no disk"}}
    assert "no session" in Agent(session__new={}).goes_on().words


def options(category: str, values: object, name: str = "id") -> Json:
    return {
        "sessionId": "s",
        "configOptions": [{name: "x", "category": category, "options": values}],
    }


SMALL = {"value": "vendor/small", "name": "Small"}
GROUPED = [{"group": "g", "name": "G", "options": [{"value": "large", "name": "Large"}]}, SMALL]


@pytest.mark.parametrize(
    ("session", "wanted", "chosen"),
    [
        (options("model", GROUPED), "large", ("session/set_config_option", "large")),
        (options("model", GROUPED), "LARGE", ("session/set_config_option", "large")),
        (options("model", GROUPED), "small", ("session/set_config_option", "vendor/small")),
        (
            {"sessionId": "s", "models": {"availableModels": [{"modelId": "large"}]}},
            "large",
            ("session/set_model", "large"),
        ),
    ],
)
def test_the_model_is_chosen_by_what_the_agent_offers(
    session: Json, wanted: str, chosen: tuple[str, str]
) -> None:
    agent = Agent(
        Wishes("p", "/w", model=wanted),
        session__new=session,
        session__set_config_option={},
        session__set_model={},
        session__prompt=DONE,
    ).goes_on()
    method, params = agent.asked[2]
    assert (method, params.get("value", params.get("modelId"))) == chosen
    assert agent.talk.outcome == {"response": DONE}


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (NO_MODES, "the agent has no choice, and not 'huge'"),
        (options("model", GROUPED), "the agent offers vendor/small, large, and not 'huge'"),
        (options("model", [{"value": f"m{n}"} for n in range(20)]), "m7, ..., and not"),
    ],
)
def test_a_model_that_is_not_offered_is_refused(session: Json, words: str) -> None:
    agent = Agent(Wishes("p", "/w", model="huge"), session__new=session).goes_on()
    assert agent.talk.outcome is not None
    assert agent.talk.outcome["unstartable"] is True
    assert words in agent.words


@pytest.mark.parametrize(
    ("session", "version", "asked"),
    [
        (
            options("mode", [{"value": "default"}, {"value": "read-only"}], "configId"),
            2,
            {"configId": "x", "value": "read-only", "type": "id"},
        ),
        (
            {"sessionId": "s", "modes": {"availableModes": [{"id": "yolo"}, {"id": "plan"}]}},
            1,
            {"modeId": "plan"},
        ),
    ],
)
def test_a_turn_for_words_is_taken_read_only(session: Json, version: int, asked: Json) -> None:
    agent = Agent(
        Wishes("p", "/w", has_tools=False),
        initialize={"protocolVersion": version},
        session__new=session,
        session__set_mode={"code": 1, "message": "I will not"},
        session__set_config_option={},
    ).goes_on()
    assert agent.asked[2][1] == {"sessionId": "s", **asked}
    assert agent.methods[-1] == "session/prompt"


def test_a_turn_for_words_goes_on_where_there_is_no_such_mode() -> None:
    assert Agent(Wishes("p", "/w", has_tools=False)).goes_on().methods[-1] == "session/prompt"


def test_only_what_is_said_to_the_prompt_is_about_it() -> None:
    """Not before it, nor in another session, nor our own requests' answers."""
    said = {"method": "session/update", "params": {"sessionId": "s", "update": {}}}
    other = {"method": "session/update", "params": {"sessionId": "t", "update": {}}}
    agent = Agent()
    assert not agent.talk.is_about(said)
    agent.goes_on()
    assert agent.talk.is_about(said)
    assert not agent.talk.is_about(other)
    assert agent.talk.is_about({"method": "session/request_permission", "id": 1})
    assert not agent.talk.is_about({"id": 1, "result": {}})


def test_requests_are_answered() -> None:
    agent = Agent().goes_on()
    agent.says(sessionUpdate="tool_call", toolCallId="c", title="ls", kind="execute")
    agent.says(sessionUpdate="tool_call_update", toolCallId="c", title=None, status="pending")
    params = {"toolCall": {"toolCallId": "c"}}
    asked = {"id": "x", "method": "session/request_permission", "params": params}
    (reply,) = agent.talk.hear(asked)
    assert reply["result"] == {"outcome": {"outcome": "selected", "optionId": "once"}}
    (judged,) = agent.judged
    assert judged[0] == params
    assert isinstance(judged[1], dict)
    assert (judged[1]["title"], judged[1]["kind"]) == ("ls", "execute")
    assert agent.told[-1][0] == "permission"
    agent.says(sessionUpdate="tool_call_update", toolCallId="c", status="completed")
    agent.talk.hear(asked)
    assert agent.judged[1] == (params, None)
    (reply,) = agent.talk.hear({"id": 0, "method": "elicitation/create", "params": {}})
    assert reply["result"] == {"action": "cancel"}
    (reply,) = agent.talk.hear({"id": 1, "method": "fs/read_text_file", "params": {}})
    assert reply["error"]["code"] == -32601


def test_after_a_cancel_nothing_is_allowed() -> None:
    agent = Agent().goes_on()
    (cancel,) = agent.talk.cancel()
    assert cancel["method"] == "session/cancel"
    assert "id" not in cancel
    (reply,) = agent.talk.hear({"id": 1, "method": "session/request_permission", "params": {}})
    assert reply["result"] == {"outcome": {"outcome": "cancelled"}}
    assert agent.judged == []
    assert Agent().talk.cancel() == [], "there is no session yet"


@pytest.mark.parametrize(
    "hear",
    [
        lambda talk: talk.hear({"method": "session/update"}),
        lambda talk: talk.hear({"method": "session/update", "params": {"update": []}}),
        lambda talk: talk.hear({"method": "_new/notice", "params": {}}),
        lambda talk: talk.hear({"method": 7}),
        lambda talk: talk.hear({}),
    ],
)
def test_what_is_not_understood_is_passed_over(hear: Callable[[Talk], list[Json]]) -> None:
    agent = Agent().goes_on()
    assert hear(agent.talk) == []
    assert agent.talk.outcome is None
