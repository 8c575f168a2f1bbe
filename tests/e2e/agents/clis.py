"""What each real CLI needs to run without a network, and how it differs from the others."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Json = dict[str, Any]
OWN = "ralph-agent"  # it is Ralph: nothing has to be installed


@dataclass(frozen=True)
class Cli:
    """How to reach the model from it, how its tools are called, how it takes a failure."""

    autonomy: str  # the flag that lets every tool run
    shell: Callable[[str], Json]  # the tool call that runs a command
    flags: Callable[[str], tuple[str, ...]] = lambda _: ()  # of the model's URL
    env: Callable[[str], dict[str, str]] = lambda _: {}
    settle_in: Callable[[Path, str], None] = lambda _home, _url: None  # files in its home
    command: tuple[str, ...] = ()  # where it is not the kind's own name


def claude_env(url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy",
        "IS_SANDBOX": "1",  # root may not skip permissions otherwise
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }


def own_env(url: str) -> dict[str, str]:
    """Keys and places of all services that it can call."""
    keys = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
    places = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
    return {**dict.fromkeys(keys, "dummy"), **dict.fromkeys(places, url)}


def codex_flags(url: str) -> tuple[str, ...]:
    retries = "request_max_retries=1,stream_max_retries=1"
    provider = f'name="mock",base_url="{url}/v1",wire_api="responses",env_key="MOCK_KEY"'
    return (
        "--disable plugins",  # codex would take 5 s to exit
        *("-c", "analytics.enabled=false"),
        *("-c", f"model_providers.mock={{{provider},{retries}}}"),
        *("-c", 'model_provider="mock"'),
        "-m gpt-5.5",
    )


def gemini_home(home: Path, _: str) -> None:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"maxAttempts": 2},  # else it tries for minutes
    }
    write_json(home / ".gemini" / "settings.json", settings)


def opencode_home(home: Path, url: str) -> None:
    model = {"name": "scripted", "cost": {"input": 3, "output": 15}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
        "models": {"scripted": {**model, "limit": {"context": 200_000, "output": 8_000}}},
    }
    settings = {"provider": {"mock": provider}, "model": "mock/scripted", "share": "disabled"}
    write_json(home / ".config" / "opencode" / "opencode.json", settings)


def write_json(path: Path, value: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def shell_tool(name: str, argument: str, **more: str) -> Callable[[str], Json]:
    return lambda command: {"name": name, "input": {argument: command, **more}}


CLIS = {
    "claude": Cli(
        env=claude_env,
        autonomy="--dangerously-skip-permissions",
        shell=shell_tool("Bash", "command"),
    ),
    "codex": Cli(
        flags=codex_flags,
        env=lambda _: {"MOCK_KEY": "dummy"},
        autonomy="--dangerously-bypass-approvals-and-sandbox",
        shell=shell_tool("exec_command", "cmd"),
    ),
    "gemini": Cli(
        flags=lambda _: ("--skip-trust", "-m gemini-2.5-flash"),
        env=lambda url: {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": url},
        settle_in=gemini_home,
        autonomy="--yolo",
        shell=shell_tool("run_shell_command", "command", description="work"),
    ),
    OWN: Cli(
        env=lambda url: {"ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_BASE_URL": url},
        autonomy="--tools",  # it always works unattended
        shell=shell_tool("bash", "command"),
    ),
    "opencode": Cli(
        env=lambda _: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        settle_in=opencode_home,
        autonomy="--auto",
        shell=shell_tool("bash", "command", description="work"),
    ),
}


def codex_home(home: Path, url: str) -> None:
    """What its flags say elsewhere: codex-acp takes none."""
    provider = f'name="mock"\nbase_url="{url}/v1"\nwire_api="responses"\nenv_key="MOCK_KEY"'
    retries = "request_max_retries=1\nstream_max_retries=1"
    first = 'model="gpt-5.5"\nmodel_provider="mock"\n'
    off = "[analytics]\nenabled=false\n[features]\nplugins=false\n"
    (home / ".codex").mkdir(parents=True, exist_ok=True)
    words = f"{first}{off}[model_providers.mock]\n{provider}\n{retries}\n"
    (home / ".codex" / "config.toml").write_text(words)


def by_acp(kind: str, *command: str, **how: Any) -> Cli:  # noqa: ANN401  fields of Cli
    """The same agent, driven by ACP: its flags are part of its command."""
    return replace(CLIS[kind], flags=lambda _: (), autonomy="", command=command, **how)


ASKS = {"OPENCODE_PERMISSION": json.dumps({"bash": "ask", "edit": "ask"})}
ACP = {  # one of each agent, by the name of the program
    "claude-agent-acp": by_acp("claude", "claude-agent-acp"),
    "codex-acp": by_acp("codex", "codex-acp", settle_in=codex_home),
    "gemini-acp": by_acp("gemini", "gemini", "--acp", "--skip-trust", "-m", "gemini-2.5-flash"),
    "opencode-acp": by_acp(
        "opencode", "opencode", "acp", env=lambda url: {**CLIS["opencode"].env(url), **ASKS}
    ),
}
