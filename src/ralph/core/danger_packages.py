"""Rules about what is published, and signing in to where it is."""

from ralph.core.danger_loaders import judge_loading
from ralph.core.danger_rule import CREDENTIALS, GUARD, PERSISTENCE, PUBLISH, Call, Rule, for_real
from ralph.core.shell_text import names

_RUNS_SCRIPTS = frozenset({"run", "run-script"})
_MAKERS = frozenset({"make", "gmake", "just", "task"})
_TRIALS = frozenset({"dry", "dry-run", "preview", "local", "test", "check"})
_FOR_OTHERS = frozenset({"deploy", "publish"})


def _script_for_others(call: Call) -> bool:
    """`npm run deploy`, `make publish`: the name says what it does."""
    runs = call.args[:1] and call.args[0] in _RUNS_SCRIPTS
    names = call.args[1:2] if runs else call.args
    if call.name in _MAKERS:
        shows = call.has("--dry-run", "--just-print") or call.has_letter("n", "fCjI")
        names = [] if shows else names
    elif call.name in ("npm", "bun") and not runs:
        return False
    name, _, how = names[0].partition(":") if names else ("", "", "")
    return name in _FOR_OTHERS and how not in _TRIALS


def _by_python(call: Call) -> bool:
    """`python -m twine upload`, `python setup.py upload`"""
    module = call.value("-m")
    if module in ("twine", "poetry", "flit", "hatch"):
        return any(word in ("upload", "publish") for word in call.words)
    return any(word.endswith("setup.py") for word in call.args[:1]) and "upload" in call.args


def _in_workspace(call: Call) -> bool:
    return call.args[:1] in (["workspace"], ["workspaces"]) and "publish" in call.args


def _of_ralph(call: Call) -> bool:
    return any(word in ("ralph", "ralph-engine") for word in call.args)


def _token(call: Call) -> bool:
    return any("_auth" in word for word in call.words)


# By key: where packages come from, and what else would run them. Any value of the latter counts.
_SOURCES = names("registry npmregistryserver index-url extra-index-url find-links goproxy")
_SOURCES_BY_NAME = ("mirror.", "repositories.", "source.")
_RUNNERS = names("script-shell trusted-host")
_USUAL = (
    *("://registry.npmjs.org", "://registry.yarnpkg.com", "://pypi.org", "://proxy.golang.org"),
    *("://rubygems.org", "://index.rubygems.org", "://localhost", "://127.", "://[::1]"),
)


def _other_source(call: Call) -> bool:
    """`npm config set registry URL`, `go env -w GOPROXY=URL`, `gem sources --add URL`"""
    words = " ".join(call.args).replace("=", " ").split()
    if {"config", "c", "set", "env", "sources"}.isdisjoint(words[:3]):
        return False
    if call.name == "go" and call.has("-w"):
        judge_loading(*[*words[1:], "", ""][:2])
    keys = {word.rpartition(".")[2].rpartition(":")[2].lower() for word in words[:-1]}
    named = any(word.startswith(_SOURCES_BY_NAME) for word in words)
    adds = named or call.has("--add", "-a") or not keys.isdisjoint(_SOURCES)
    value = "".join(words[-1:])
    other = "://" in value and not any(mark in value for mark in _USUAL)
    return (adds and other) or not keys.isdisjoint(_RUNNERS)


RULES = (
    Rule(
        PERSISTENCE,
        "from now on packages, or what runs them, would come from elsewhere; name the source in"
        " the command that needs it",
        "npm pnpm yarn bun pip pip3 poetry bundle go gem conda python python3",
        test=_other_source,
    ),
    Rule(
        PUBLISH,
        "it publishes a package",
        "npm pnpm bun jsr deno lerna changeset vsce ovsx semantic-release",
        sub="publish",
        test=for_real,
    ),
    Rule(
        PUBLISH,
        "it publishes a package",
        "semantic-release goreleaser release-it np standard-version",
        test=for_real,
    ),
    Rule(
        PUBLISH,
        "it changes what is published",
        "npm pnpm",
        sub="unpublish|deprecate|dist-tag|owner|access",
    ),
    Rule(PUBLISH, "it publishes a package", "yarn", sub="publish", test=for_real),
    Rule(PUBLISH, "it publishes a package", "yarn", sub="npm publish", test=for_real),
    Rule(PUBLISH, "it publishes a package", "twine", sub="upload"),
    Rule(
        PUBLISH,
        "it publishes a package",
        "poetry uv flit hatch pdm maturin rye",
        sub="publish|upload",
        test=for_real,
    ),
    Rule(PUBLISH, "it publishes a package", "python python3", test=_by_python),
    Rule(PUBLISH, "it publishes a package", "cargo", sub="publish|yank|owner", test=for_real),
    Rule(PUBLISH, "it publishes a package", "gem", sub="push|yank|owner"),
    Rule(PUBLISH, "it publishes a package", "mix", sub="hex.publish|hex.retire|hex.owner"),
    Rule(PUBLISH, "it publishes a package", "vsce ovsx", sub="publish|unpublish"),
    Rule(
        PUBLISH,
        "it publishes an app",
        "fastlane",
        sub="deliver|release|supply|pilot|upload_to_app_store|upload_to_play_store|beta",
    ),
    Rule(PUBLISH, "it publishes an app", "eas eas-cli", sub="submit|update"),
    Rule(
        PUBLISH,
        "it publishes a package",
        "mvn mvnw",
        test=lambda c: "deploy" in c.args or any(w.startswith("release:") for w in c.args),
    ),
    Rule(
        PUBLISH,
        "it publishes a package",
        "gradle gradlew",
        test=lambda c: any(
            w.rpartition(":")[2].startswith("publish") and "Local" not in w for w in c.args
        ),
    ),
    Rule(PUBLISH, "it publishes a package", "dotnet", sub="nuget push|delete"),
    Rule(PUBLISH, "it publishes a package", "nuget", sub="push|delete"),
    Rule(PUBLISH, "it publishes a package", "pod", sub="trunk push|delete|deprecate"),
    Rule(PUBLISH, "it publishes an image", "docker podman nerdctl helm buildah", sub="push"),
    Rule(PUBLISH, "it publishes an image", "docker podman", flags="--push"),
    Rule(
        PUBLISH, "it publishes images", "docker docker-compose", sub="compose|image|manifest push"
    ),
    Rule(PUBLISH, "it publishes an image", "skopeo crane oras", sub="copy|push|delete"),
    Rule(PUBLISH, "it publishes a release", "gh", sub="release create|upload|edit"),
    Rule(PUBLISH, "it publishes a release", "glab", sub="release create|upload|delete"),
    Rule(PUBLISH, "it publishes a package", "yarn", test=_in_workspace),
    Rule(PUBLISH, "it publishes a package", "cargo", sub="release", flags="--execute", letters="x"),
    Rule(PUBLISH, "it publishes a package", "sbt", sub="publish|publishSigned|release"),
    Rule(
        PUBLISH,
        "its name says that it deploys or publishes; leave that to a person",
        "npm pnpm yarn bun make gmake just task",
        test=_script_for_others,
    ),
    Rule(
        CREDENTIALS,
        "it signs in and keeps a credential outside the project",
        "npm pnpm yarn docker podman helm cargo gem vercel netlify heroku fly flyctl az pulumi",
        sub="login|adduser|add-user|logout",
    ),
    Rule(
        CREDENTIALS,
        "it signs in and keeps a credential outside the project",
        "gh glab gcloud firebase aws",
        sub="auth|sso login|logout|refresh",
    ),
    Rule(
        CREDENTIALS, "it reads or writes a credential", "npm pnpm yarn", sub="config", test=_token
    ),
    Rule(
        GUARD,
        "it removes Ralph itself",
        "pip pip3 pipx uv",
        sub="uninstall|pip|tool",
        test=_of_ralph,
    ),
)
