"""The agent's environment (ADR 13): what passes, what does not, who pays."""

import pytest

from ralph.agents.clis import Environment, agent_environment

EVERYTHING = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "CLAUDECODE": "1",
    "ANTHROPIC_API_KEY": "a",
    "OPENAI_API_KEY": "o",
    "GEMINI_API_KEY": "g",
    "OPENROUTER_API_KEY": "r",
    "AMP_API_KEY": "m",
    "GITHUB_TOKEN": "t",
    "GH_TOKEN": "t",
    "GOOGLE_CLOUD_PROJECT": "p",
    "GOOGLE_APPLICATION_CREDENTIALS": "/adc.json",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "MY_API_KEY": "mine",
}


def environment(
    kind: str,
    environ: dict[str, str] = EVERYTHING,
    keep: tuple[str, ...] = (),
    unset: tuple[str, ...] = (),
    put: dict[str, str] | None = None,
    model: str | None = None,
) -> Environment:
    return agent_environment(environ, kind, keep=keep, unset=unset, put=put, model=model)


@pytest.mark.parametrize(
    ("kind", "removed"),
    [
        ("claude", "AMP_API_KEY CLAUDECODE GEMINI_API_KEY OPENAI_API_KEY OPENROUTER_API_KEY"),
        ("codex", "AMP_API_KEY ANTHROPIC_API_KEY CLAUDECODE GEMINI_API_KEY OPENROUTER_API_KEY"),
        # What Vertex and application credentials need is no other provider's key.
        ("gemini", "AMP_API_KEY ANTHROPIC_API_KEY CLAUDECODE OPENAI_API_KEY OPENROUTER_API_KEY"),
        ("amp", "CLAUDECODE"),
        ("opencode", "CLAUDECODE"),
        ("copilot", "CLAUDECODE"),
        ("cursor-agent", "CLAUDECODE"),
        ("goose", "CLAUDECODE"),
        ("text", "CLAUDECODE"),
    ],
)
def test_other_providers_keys_are_not_passed_on(kind: str, removed: str) -> None:
    """ "Everything passes except CLAUDECODE and, for claude, codex and gemini, other keys"."""
    found = environment(kind)
    assert found.removed == tuple(removed.split())
    assert found.values == {k: v for k, v in EVERYTHING.items() if k not in removed.split()}


_SOLD = ("COPILOT_GITHUB_TOKEN", "CURSOR_API_KEY", "OPENCODE_API_KEY", "OPENCODE_AUTH_CONTENT")


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
def test_keys_of_agents_that_sell_models_are_other_keys_too(kind: str) -> None:
    environ = dict.fromkeys(_SOLD, "x")
    assert environment(kind, environ).values == {}


def test_what_is_not_there_is_not_named_as_removed() -> None:
    assert environment("claude", {"PATH": "/bin"}).removed == ()


@pytest.mark.parametrize(
    ("kind", "environ", "payer"),
    [
        ("claude", {"ANTHROPIC_API_KEY": "a"}, "ANTHROPIC_API_KEY"),
        ("claude", {"CLAUDE_CODE_OAUTH_TOKEN": "c"}, "CLAUDE_CODE_OAUTH_TOKEN"),
        (
            "claude",
            {"CLAUDE_CODE_OAUTH_TOKEN": "c", "ANTHROPIC_API_KEY": "a"},
            "ANTHROPIC_API_KEY",
        ),
        ("claude", {"ANTHROPIC_API_KEY": ""}, "the agent's own login"),
        ("codex", {"OPENAI_API_KEY": "o"}, "OPENAI_API_KEY"),
        ("amp", {"AMP_API_KEY": "m"}, "AMP_API_KEY"),
        ("gemini", {"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": "g"}, "GEMINI_API_KEY"),
        ("gemini", {}, "the agent's own login"),
        ("copilot", {"GITHUB_TOKEN": "t", "GH_TOKEN": "t"}, "GH_TOKEN"),
        ("copilot", {}, "the agent's own login"),
        ("cursor-agent", {"CURSOR_API_KEY": "c"}, "CURSOR_API_KEY"),
        ("opencode", {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}, ""),
        ("goose", {"OPENAI_API_KEY": "o"}, ""),
        ("text", {"OPENAI_API_KEY": "o"}, ""),
    ],
)
def test_which_credential_will_pay(kind: str, environ: dict[str, str], payer: str) -> None:
    assert environment(kind, environ).payer == payer


def test_settings_can_keep_what_would_be_removed() -> None:
    found = environment("claude", keep=("OPENAI_API_KEY",))
    assert found.values["OPENAI_API_KEY"] == "o"
    assert "OPENAI_API_KEY" not in found.removed


def test_settings_can_remove_more_also_what_pays() -> None:
    found = environment("claude", unset=("ANTHROPIC_API_KEY", "MY_API_KEY"))
    assert {"ANTHROPIC_API_KEY", "MY_API_KEY"} <= set(found.removed)
    assert found.payer == "the agent's own login"


def test_settings_can_set_and_that_may_pay() -> None:
    found = environment("claude", {}, put={"ANTHROPIC_API_KEY": "mine", "X": "y"})
    assert found.values == {"ANTHROPIC_API_KEY": "mine", "X": "y"}
    assert found.payer == "ANTHROPIC_API_KEY"


PLACES = dict.fromkeys(
    ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), "http://127.0.0.1:1"
)


@pytest.mark.parametrize(
    ("model", "payer", "passes"),
    [
        ("anthropic:m", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY ANTHROPIC_BASE_URL"),
        ("openai:m", "OPENAI_API_KEY", "OPENAI_API_KEY OPENAI_BASE_URL"),
        ("openai-chat:m", "OPENAI_API_KEY", "OPENAI_API_KEY OPENAI_BASE_URL"),
        ("google:m", "GEMINI_API_KEY", "GEMINI_API_KEY GOOGLE_GEMINI_BASE_URL"),
        (None, "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY ANTHROPIC_BASE_URL"),
    ],
)
def test_our_own_agent_gets_the_key_and_the_place_of_its_model(
    model: str | None, payer: str, passes: str
) -> None:
    found = environment("ralph-agent", {**EVERYTHING, **PLACES}, model=model)
    assert found.payer == payer
    keys = {name for name in found.values if name.endswith(("_API_KEY", "_BASE_URL"))}
    assert keys == {*passes.split(), "MY_API_KEY"}
    assert {"GH_TOKEN", "GOOGLE_CLOUD_PROJECT"} < found.values.keys()


def test_our_own_agent_may_be_paid_by_settings_or_by_nobody() -> None:
    put = {"GEMINI_API_KEY": "g"}
    assert environment("ralph-agent", {"PATH": "/bin"}, put=put).payer == "GEMINI_API_KEY"
    both = environment("ralph-agent", EVERYTHING, unset=("ANTHROPIC_API_KEY",))
    assert (both.payer, "ANTHROPIC_API_KEY" in both.removed) == ("OPENAI_API_KEY", True)
    assert environment("ralph-agent", PLACES, model="openai-chat:m").payer == ""
    kept = environment("ralph-agent", keep=("OPENAI_API_KEY",), model="anthropic:m")
    assert kept.values["OPENAI_API_KEY"] == "o"


def test_our_own_environment_is_not_changed() -> None:
    before = dict(EVERYTHING)
    environment("claude", put={"X": "y"}, unset=("PATH",))
    assert before == EVERYTHING
