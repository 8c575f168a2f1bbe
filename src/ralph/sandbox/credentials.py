"""Credentials at home that are no business of an agent's: a sandbox that contains it hides them."""

import os
from collections.abc import Iterable, Iterator, Mapping

from ralph.agents.kinds import KINDS
from ralph.errors import ConfigError
from ralph.kernel.value import value
from ralph.sandbox.logins import login_path

_AWS, _GOOGLE, _AZURE, _GITHUB = ".aws", ".config/gcloud", ".azure", ".config/gh"
_PLACES = (  # files and directories at home
    *(".ssh", ".gnupg", ".netrc", "_netrc", ".git-credentials", ".config/git/credentials"),
    *(_AWS, _AZURE, _GOOGLE, ".oci", ".config/doctl", ".config/hcloud", ".databrickscfg", ".fly"),
    *(".kube", ".docker/config.json", ".config/containers/auth.json"),
    *(_GITHUB, ".config/hub", ".config/glab-cli", ".config/tea"),
    *(".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".gem/credentials", ".m2/settings-security.xml", ".terraform.d/credentials.tfrc.json"),
    *(".vault-token", ".config/op", ".password-store", ".local/share/keyrings", ".config/rclone"),
    *(".pgpass", ".my.cnf", ".kaggle", ".cache/huggingface/token", ".huggingface/token"),
    *(".mozilla", ".config/google-chrome", ".config/chromium"),  # cookies are logins too
    ".dclaude_state",  # of sandboxes that are machines of their own
)
_MOVED = {  # variable -> what it moves; each may lie elsewhere, beside or instead
    "GNUPGHOME": ".gnupg",
    "NETRC": ".netrc",
    "AWS_SHARED_CREDENTIALS_FILE": _AWS,
    "AWS_CONFIG_FILE": _AWS,
    "AZURE_CONFIG_DIR": _AZURE,
    "CLOUDSDK_CONFIG": _GOOGLE,
    "GH_CONFIG_DIR": _GITHUB,
    "KUBECONFIG": ".kube",
    "NPM_CONFIG_USERCONFIG": ".npmrc",
    "PGPASSFILE": ".pgpass",
}
_XDG = {"XDG_CONFIG_HOME": ".config/", "XDG_DATA_HOME": ".local/share/"}
_OF_AGENTS = {  # kind -> its login, beside what it renews
    "claude": (".claude.json",),
    "gemini": (".gemini/mcp-oauth-tokens.json",),
    "opencode": (".local/share/opencode/mcp-auth.json",),
    "amp": (".local/share/amp/secrets.json",),
    "copilot": (".copilot/config.json", ".config/github-copilot"),
    "cursor-agent": (".config/cursor/auth.json",),
    "goose": (".config/goose/secrets.yaml",),
}
_PAYS_BY = {  # what an agent pays by, if this is set: its own login, then
    "CLAUDE_CODE_USE_BEDROCK": _AWS,
    "CLAUDE_CODE_USE_VERTEX": _GOOGLE,
    "CLAUDE_CODE_USE_FOUNDRY": _AZURE,
    "GOOGLE_GENAI_USE_VERTEXAI": _GOOGLE,
}
_OFF = ("", "0", "false")
_ANYBODY = "text"  # a command that may call any agent


@value
class Secrets:
    """Paths that a sandbox hides, of those that are there; and paths that it shows all the same."""

    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()  # what lies in something hidden


def secrets_of(
    agents: Iterable[tuple[str, Mapping[str, str]]], show: Iterable[str] = ()
) -> Secrets:
    """The secrets for these agents, each with its environment. ConfigError for what is to be shown
    and is never hidden."""
    known: dict[str, None] = {}
    own: set[str] = set()
    home = ""
    for kind, env in agents:
        if os.path.isabs(env.get("HOME", "")):
            home = env["HOME"]
            known |= dict.fromkeys(path for place in _PLACES for path in _paths(place, env))
            known |= dict.fromkeys(path for each in KINDS for path in _logins(each, env))
        own |= set(_own(kind, env))
    wanted = [_asked_for(text, home, tuple(known)) for text in show]
    hidden = [path for path in known if path not in (*own, *wanted) and os.path.lexists(path)]
    inner = [path for path in wanted if path not in known]
    return Secrets(tuple(hidden), tuple(inner))


def at_home(path: str, home: str) -> str:
    """A path as people write it."""
    return f"~{path[len(home) :]}" if home and path.startswith(f"{home.rstrip('/')}/") else path


def _own(kind: str, env: Mapping[str, str]) -> Iterator[str]:
    """The logins of this agent itself."""
    for each in KINDS if kind == _ANYBODY else (kind,):
        yield from _logins(each, env)
    needed = [place for name, place in _PAYS_BY.items() if env.get(name, "").lower() not in _OFF]
    for place in (*needed, *((_GITHUB,) if kind == "copilot" else ())):
        yield from _paths(place, env)


def _logins(kind: str, env: Mapping[str, str]) -> Iterator[str]:
    if path := login_path(kind, env):
        yield path
    for place in _OF_AGENTS.get(kind, ()):
        yield from _paths(place, env)


def _paths(place: str, env: Mapping[str, str]) -> Iterator[str]:
    """The paths of a place: the default, and those that variables name; some name several files."""
    yield os.path.join(env.get("HOME", ""), place)
    for name, above in _XDG.items():
        if place.startswith(above) and os.path.isabs(env.get(name, "")):
            yield os.path.join(env[name], place.removeprefix(above))
    for name, moved in _MOVED.items():
        if moved == place:
            yield from filter(os.path.isabs, env.get(name, "").split(os.pathsep))


def _asked_for(text: str, home: str, known: tuple[str, ...]) -> str:
    path = f"{home}/{text[2:]}" if text.startswith("~/") else text
    path = os.path.normpath(path) if os.path.isabs(path) else path
    if any(path == place or path.startswith(f"{place}/") for place in known):
        return path
    names = ", ".join(at_home(place, home) for place in known)
    raise ConfigError(
        f"sandboxShow: {text!r} is nothing that a sandbox hides",
        f"Name one of these, or what lies in it: {names}",
    )
