"""Tells which forge a project is at, and by which token it is asked (ADR 43).

A token of the environment goes to the host that the environment names, or to github.com and
gitlab.com: `origin`, which an agent may change, never says who gets to see it. What gh and glab
keep is kept for one host.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from ralph.errors import ConfigError
from ralph.forge import github, gitlab
from ralph.forge.commands import Run, runner
from ralph.forge.github import GitHub
from ralph.forge.gitlab import GitLab
from ralph.forge.http import Secret, Service, address
from ralph.git.digest import git_line
from ralph.kernel.value import value
from ralph.text.plain import plain
from ralph.text.redact import know

_SCP = re.compile(r"(?:[^@/\s]+@)?(\[[0-9A-Fa-f:.]+\]|[^:/\s@]+):(?!//)(.+)")
_SCHEMES = ("https", "http", "ssh", "git", "git+ssh")
_GITHUB_PATH = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}")
_GITLAB_PATH = re.compile(r"[A-Za-z0-9_][\w.-]*(?:/[A-Za-z0-9_][\w.-]*){1,20}", re.ASCII)
_BY_SSH = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}
_SAY = (
    "Say where it is: export GITHUB_API_URL=https://HOST/api/v3 GITHUB_REPOSITORY=OWNER/NAME, or "
    "export CI_API_V4_URL=https://HOST/api/v4 CI_PROJECT_PATH=GROUP/NAME"
)


@value
class Origin:
    """The place that `origin` names: `host` may have a port, `scheme` is that of its API."""

    host: str = ""
    path: str = ""
    scheme: str = "https"


def forge_of(
    environ: Mapping[str, str], workspace: str, *, run: Run | None = None
) -> GitHub | GitLab:
    """The forge of a project; ConfigError, with what to type, where that or its token is not to be
    known. `run` runs gh and glab."""
    run = run or runner(workspace, environ)
    origin = origin_of(git_line(workspace, environ, "remote", "get-url", "origin") or "")
    if _is_gitlab(environ, origin):
        return _gitlab(environ, origin, run)
    return _github(environ, origin, run)


def open_github(environ: Mapping[str, str], run: Run) -> GitHub:
    """GitHub for the issues of any repository; without a token, for what everybody may read."""
    host = environ.get("GH_HOST", "").strip().lower() or "github.com"
    url = environ.get("GITHUB_API_URL") or _github_api(Origin(host))
    return GitHub(_github_service(environ, address(url, "GITHUB_API_URL"), run), "")


def origin_of(url: str) -> Origin:
    """The host and the path that a URL of git names; nothing where it is no forge's."""
    url, scheme = url.strip(), "https"
    if "://" not in url and (found := _SCP.fullmatch(url)):
        host, path = found[1], found[2]
    else:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return Origin()
        if parts.scheme not in _SCHEMES or not parts.hostname:
            return Origin()
        host, path = parts.hostname, parts.path
        host = f"[{host}]" if ":" in host else host
        if parts.scheme in ("https", "http"):  # any other port is not that of the API
            scheme = parts.scheme
            host += f":{port}" if port else ""
    host = _BY_SSH.get(host.lower(), host.lower()).removeprefix("www.")
    return Origin(host, path.strip("/").removesuffix(".git").rstrip("/"), scheme)


def _is_gitlab(environ: Mapping[str, str], origin: Origin) -> bool:
    """True for GitLab: the variables of one forge alone say so, else origin's host does, else the
    token that is there."""
    here = _any(environ, "GITHUB_API_URL", "GITHUB_REPOSITORY")
    there = _any(environ, "CI_API_V4_URL", "CI_PROJECT_PATH")
    if here != there:
        return there
    name = origin.host.partition(":")[0]
    if origin.host and origin.host == _site(environ.get("GITHUB_API_URL", "")):
        return False
    if origin.host and origin.host == _site(environ.get("CI_API_V4_URL", "")):
        return True
    if name == "github.com" or name.endswith(".ghe.com") or "github" in name:
        return False
    if "gitlab" in name:
        return True
    here, there = _any(environ, "GITHUB_TOKEN", "GH_TOKEN"), _any(environ, "GITLAB_TOKEN")
    if here != there and (origin.host or environ.get("GITHUB_API_URL")):
        return there
    if not origin.host:
        raise ConfigError("no forge is to be seen: origin is at none", _SAY)
    where = plain(origin.host, 100)
    raise ConfigError(f"origin is at {where}, which may be a GitHub or a GitLab", _SAY)


def _any(environ: Mapping[str, str], *names: str) -> bool:
    return any(environ.get(name, "").strip() for name in names)


# -------------------------------------------------------------------- GitHub


def _github(environ: Mapping[str, str], origin: Origin, run: Run) -> GitHub:
    url = environ.get("GITHUB_API_URL") or _github_api(origin)
    path = environ.get("GITHUB_REPOSITORY") or origin.path
    if not _GITHUB_PATH.fullmatch(path):
        raise _no_name("GitHub", path, "export GITHUB_REPOSITORY=OWNER/NAME")
    service = _github_service(environ, address(url, "GITHUB_API_URL"), run)
    if not service.authorization:
        words = f"there is no token for GitHub at {_site(service.url)}"
        raise ConfigError(words, service.login)
    return GitHub(service, path)


def _github_service(environ: Mapping[str, str], url: str, run: Run) -> Service:
    site = _site(url)
    cloud = site == "github.com" or site.endswith(".ghe.com")
    named = _any(environ, "GITHUB_API_URL") or environ.get("GH_HOST") == site
    names = ("GITHUB_TOKEN", "GH_TOKEN") if cloud or named else ()
    if named and not cloud:
        names = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", *names)
    token, source = _token(environ, names, run, "gh", "auth", "token", "--hostname", site)
    host = "" if site == "github.com" else f" --hostname {site}"
    also = "" if cloud or named else f" and GITHUB_API_URL={url}"
    login = f"Type: gh auth login{host}, or set GITHUB_TOKEN{also}"
    return Service("GitHub", url, github.HEADERS, token, source, login, github.RIGHTS)


def _github_api(origin: Origin) -> str:
    """The address of GitHub's API at a host."""
    if origin.host == "github.com" or not origin.host:
        return "https://api.github.com"
    if origin.host.endswith(".ghe.com"):
        return f"https://api.{origin.host}"
    return f"{origin.scheme}://{origin.host}/api/v3"


# -------------------------------------------------------------------- GitLab


def _gitlab(environ: Mapping[str, str], origin: Origin, run: Run) -> GitLab:
    host = origin.host or "gitlab.com"
    url = environ.get("CI_API_V4_URL") or f"{origin.scheme}://{host}/api/v4"
    path = environ.get("CI_PROJECT_PATH") or origin.path
    if not _GITLAB_PATH.fullmatch(path):
        raise _no_name("GitLab", path, "export CI_PROJECT_PATH=GROUP/NAME")
    url = address(url, "CI_API_V4_URL")
    site = _site(url)
    named = _any(environ, "CI_API_V4_URL") or site == "gitlab.com"
    names = ("GITLAB_TOKEN",) if named else ()
    token, source = _token(environ, names, run, "glab", "config", "get", "token", "--host", site)
    also = "" if named else f" and CI_API_V4_URL={url}"
    login = f"Type: glab auth login --hostname {site}, or set GITLAB_TOKEN{also}"
    if not token:
        raise ConfigError(f"there is no token for GitLab at {site}", login)
    return GitLab(Service("GitLab", url, {}, token, source, login, gitlab.RIGHTS), path)


# -------------------------------------------------------------------- both


def _token(
    environ: Mapping[str, str], names: Iterable[str], run: Run, *argv: str
) -> tuple[str, str]:
    """What lets in, as a header has it, and where it is from; "" for both if there is nothing. It
    is told nobody from here on."""
    for name in names:
        token = environ.get(name, "").strip()
        if token and not (token.isascii() and token.isprintable()):
            raise ConfigError(f"{name} is no token: it holds what a header cannot", "Set it anew")
        if token:
            know([token])
            return Secret(f"Bearer {token}"), name
    code, said, _ = run(argv)
    token = said.strip()
    if code or not token or not (token.isascii() and token.isprintable()) or " " in token:
        return "", ""
    know([token])
    return Secret(f"Bearer {token}"), argv[0]


def _no_name(forge: str, path: str, remedy: str) -> ConfigError:
    what = f"{plain(path, 80)!r} is no repository of {forge}" if path else "origin names none"
    return ConfigError(
        f"the repository at {forge} is not to be seen: {what}", f"Say which: {remedy}"
    )


def _site(url: str) -> str:
    """The host that people, gh and glab know an API by."""
    host = urlsplit(url).netloc.lower()
    is_cloud = host == "api.github.com" or host.endswith(".ghe.com")
    return host.removeprefix("api.") if is_cloud else host
