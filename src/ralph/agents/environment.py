"""The environment that an agent gets, and the credential that will pay (ADR 13)."""

from collections.abc import Mapping

from ralph.kernel.value import value

_PAYS = {  # kind -> what pays for it; the first that is set wins
    "claude": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "codex": ("CODEX_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    "amp": ("AMP_API_KEY",),
    "copilot": ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    "cursor-agent": ("CURSOR_API_KEY",),
    # opencode, goose and unknown ones choose among many keys by settings of their own.
}
OWN_LOGIN = "the agent's own login"
_ONE_PROVIDER = ("claude", "codex", "gemini")  # amp and others may need several keys
_MORE_THAN_A_KEY = frozenset({"GH_TOKEN", "GITHUB_TOKEN"})  # git and gh need them too
_OTHERS = (
    *("CEREBRAS_API_KEY", "COHERE_API_KEY", "DEEPSEEK_API_KEY", "FIREWORKS_API_KEY"),
    *("GROQ_API_KEY", "MISTRAL_API_KEY", "OPENCODE_API_KEY", "OPENROUTER_API_KEY"),
    *("PERPLEXITY_API_KEY", "TOGETHER_API_KEY", "XAI_API_KEY"),
)


@value
class Environment:
    """The agent's variables, those taken out, and who pays; "" where we cannot know."""

    values: Mapping[str, str]
    removed: tuple[str, ...]
    payer: str


def agent_environment(
    environ: Mapping[str, str],
    kind: str,
    *,
    keep: tuple[str, ...] = (),
    unset: tuple[str, ...] = (),
    put: Mapping[str, str] | None = None,
) -> Environment:
    """Everything passes but CLAUDECODE and, where one provider pays, all the others' keys."""
    unwanted = {"CLAUDECODE"}
    if kind in _ONE_PROVIDER:
        others = (names for provider, names in _PAYS.items() if provider != kind)
        unwanted.update(*others, _OTHERS)
        unwanted -= _MORE_THAN_A_KEY
    unwanted = (unwanted - set(keep)) | set(unset)
    values = {k: v for k, v in environ.items() if k not in unwanted} | dict(put or {})
    own = _PAYS.get(kind, ())
    paying = next((name for name in own if values.get(name)), None)
    removed = tuple(sorted(unwanted & environ.keys()))
    return Environment(values, removed, paying or (OWN_LOGIN if own else ""))
