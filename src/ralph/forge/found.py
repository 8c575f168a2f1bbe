"""Tells which forge a project is at, and by which token it is asked (ADR 43).

A token of the environment goes to the host that the environment names, or to github.com and
gitlab.com: `origin` alone, which an agent may change, never says who gets to see it. What gh and
glab keep is kept for one host.
"""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from ralph.errors import ConfigError
from ralph.forge import github
from ralph.forge.commands import Run, runner
from ralph.forge.github import GitHub
from ralph.forge.http import Service, address
from ralph.git.digest import git_line
from ralph.kernel.value import value
from ralph.text.plain import plain
from ralph.text.redact import know

_SCP = re.compile(r"(?:[^@/\s]+@)?(\[[0-9A-Fa-f:.]+\]|[^:/\s@]+):(?!//)(.+)")
_GITHUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}")
_GITLAB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*(?:/[A-Za-z0-9_][\w.-]*){1,20}", re.ASCII)
_BY_SSH = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}
_SAY = (
    "Say where it is: export GITHUB_API_URL=https://HOST/api/v3 GITHUB_REPOSITORY=OWNER/NAME, or "
    "export CI_API_V4_URL=https://HOST/api/v4 CI_PROJECT_PATH=GROUP/NAME"
)
_GITHUB = ("GITHUB_API_URL", "GITHUB_REPOSITORY")
_GITLAB = ("CI_API_V4_URL", "CI_PROJECT_PATH")


@value
class Origin:
    """The place that `origin` names: `host` may have a port, `scheme` is that of its API."""

    host: str = ""
    path: str = ""
    scheme: str = "https"

    @property
    def name(self) -> str:
        return self.host.partition(":")[0]


def forge_of(environ: Mapping[str, str], workspace: str, *, run: Run | None = None) -> GitHub:
    """The forge of a project; ConfigError, with what to type, where that or the token is not to be
    known. `run` runs gh."""
    run = run or runner(workspace, environ)
    origin = origin_of(git_line(workspace, environ, "remote", "get-url", "origin") or "")
    return _github(environ, origin, run)


def open_github(environ: Mapping[str, str], run: Run) -> GitHub:
    """GitHub for the issues of any repository; without a token, for what everybody may read."""
    url = address(environ.get("GITHUB_API_URL") or _api(Origin(_host(environ))), "GITHUB_API_URL")
    return GitHub(_service(environ, url, run), "")


def origin_of(url: str) -> Origin:
    """The host and the path that a URL of git names; nothing where it is no forge's."""
    scheme, found = "https", _SCP.fullmatch(url.strip())
    if found and "://" not in url:
        host, path = found[1], found[2]
    else:
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError:
            return Origin()
        if parts.scheme not in ("https", "http", "ssh", "git", "git+ssh") or not parts.hostname:
            return Origin()
        web = parts.scheme in ("https", "http")
        scheme = parts.scheme if web else "https"
        host, path = parts.hostname, parts.path
        host = f"[{host}]" if ":" in host else host
        host += f":{port}" if web and port else ""
    host = _BY_SSH.get(host.lower(), host.lower()).removeprefix("www.")
    return Origin(host, path.strip("/").removesuffix(".git").rstrip("/"), scheme)


def _github(environ: Mapping[str, str], origin: Origin, run: Run) -> GitHub:
    url = environ.get("GITHUB_API_URL") or (_api(origin) if origin.host else "")
    repository = environ.get("GITHUB_REPOSITORY") or origin.path
    if not url or not repository:
        raise ConfigError("no forge is to be seen: there is no origin at GitHub or GitLab", _SAY)
    if not _GITHUB_NAME.fullmatch(repository):
        remedy = "Say which: export GITHUB_REPOSITORY=OWNER/NAME"
        raise ConfigError(f"{plain(repository, 80)!r} is no repository of GitHub", remedy)
    service = _service(environ, address(url, "GITHUB_API_URL"), run)
    if not service.authorization:
        raise ConfigError(f"there is no token for GitHub ({_site(service.url)})", f"{_login(url)}")
    return GitHub(service, repository)


def _service(environ: Mapping[str, str], url: str, run: Run) -> Service:
    token, source = _github_token(environ, url, run)
    know([token] if token else [])
    authorization = f"Bearer {token}" if token else ""
    return Service("GitHub", url, github.HEADERS, authorization, source, _login(url), github.RIGHTS)


def _github_token(environ: Mapping[str, str], url: str, run: Run) -> tuple[str, str]:
    """A token, and where it is from."""
    site = _site(url)
    usual = site == "github.com" or site.endswith(".ghe.com")
    names = ("GITHUB_TOKEN", "GH_TOKEN") if usual or environ.get("GITHUB_API_URL") else ()
    if not usual and (environ.get("GITHUB_API_URL") or environ.get("GH_HOST") == site):
        names = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", *names)
    for name in names:
        if token := environ.get(name, "").strip():
            return token, name
    code, said, _ = run(("gh", "auth", "token", "--hostname", site))
    token = said.strip() if code == 0 else ""
    return (token, "gh") if token.isascii() and token.isprintable() and token else ("", "")


def _login(url: str) -> str:
    site = _site(url)
    host = "" if site == "github.com" else f" --hostname {site}"
    return f"Type: gh auth login{host}, or set GITHUB_TOKEN"


def _api(origin: Origin) -> str:
    """The address of GitHub's API at a host."""
    if origin.name == "github.com":
        return "https://api.github.com"
    if origin.name.endswith(".ghe.com"):
        return f"https://api.{origin.host}"
    return f"{origin.scheme}://{origin.host}/api/v3"


def _site(url: str) -> str:
    """The host that people and gh know an API by."""
    host = urlsplit(url).netloc.lower()
    return host.removeprefix("api.") if host.endswith(("github.com", ".ghe.com")) else host


def _host(environ: Mapping[str, str]) -> str:
    return environ.get("GH_HOST", "").strip().lower() or "github.com"
