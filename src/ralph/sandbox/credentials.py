"""Credentials at home: a sandbox that contains an agent hides those that are none of its business.

What an agent writes at home in a sandbox is thrown away, but a renewed login makes the old one
void: then neither the next turn nor the person at the terminal could go on. So that is kept.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from ralph.agents.kinds import KINDS
from ralph.errors import ConfigError
from ralph.files.safe_open import read_or_nothing
from ralph.files.state_dir import write_atomically
from ralph.kernel.value import value
from ralph.sandbox.interface import is_within

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
    ".config/ralph",  # the key of a fleet, the token of the web
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
_RENEWED = {  # kind -> its login: the variable that moves its directory, that at home, the file
    "claude": ("CLAUDE_CONFIG_DIR", ".claude", ".credentials.json"),
    "codex": ("CODEX_HOME", ".codex", "auth.json"),
    "gemini": ("", ".gemini", "oauth_creds.json"),
    "opencode": ("", ".local/share/opencode", "auth.json"),
}
_LARGEST = 1024 * 1024
_OF_A_TOKEN = re.compile(r"token$|expir|refresh", re.IGNORECASE)
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
    """The secrets for agents, each with its environment. ConfigError to show what is not hidden."""
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
    if any(is_within(path, place) for place in known):
        return path
    names = ", ".join(at_home(place, home) for place in known)
    raise ConfigError(
        f"sandboxShow: {text!r} is nothing that a sandbox hides",
        f"Name one of these, or what lies in it: {names}",
    )


class Login:
    """The file that holds an agent's login, if it has one."""

    def __init__(self, kind: str, env: Mapping[str, str]) -> None:
        self._path = login_path(kind, env)
        self._before = b""

    def remember(self) -> None:
        """Note the login as it is before a turn."""
        self._before = read_or_nothing(self._path, _LARGEST)

    def renew(self, read: Callable[[str], bytes], saved: str) -> bool:
        """Keep a login that the agent renewed, and save the one before; False if none is new.
        `read` reads a file as the agent sees it. Nothing is kept if somebody else has renewed it
        meanwhile, nor if it is another's: only tokens and times may be new."""
        if not self._before or read_or_nothing(self._path, _LARGEST) != self._before:
            return False
        after = read(self._path)
        try:  # one that was too large is no JSON
            text = after.decode()
            tokens = _differ_in_tokens(json.loads(text), json.loads(self._before))
        except (ValueError, RecursionError):
            return False
        if after == self._before or not tokens:
            return False
        try:
            write_atomically(saved, self._before.decode(), mode=0o600)
            write_atomically(self._path, text, mode=0o600)
        except OSError:
            return False  # then it could not be renewed outside either
        return True


def login_path(kind: str, env: Mapping[str, str]) -> str:
    """The file with the login of an agent of this kind; "" if that is not known."""
    if kind not in _RENEWED:
        return ""
    variable, directory, name = _RENEWED[kind]
    return os.path.join(env.get(variable) or os.path.join(env.get("HOME", ""), directory), name)


def _differ_in_tokens(new: object, old: object, name: str = "") -> bool:
    if isinstance(new, dict) and isinstance(old, dict):
        return new.keys() == old.keys() and all(
            _differ_in_tokens(new[key], old[key], key) for key in old
        )
    return new == old or (type(new) is type(old) and bool(_OF_A_TOKEN.search(name)))
