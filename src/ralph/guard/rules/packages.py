"""Rules about what is published, and signing in to where it is."""

from ralph.guard.rules.environment import judge_loading
from ralph.guard.rules.rule import Call, for_real, rules
from ralph.guard.shell.text import names

_TRIALS = names("dry dry-run preview local test check")
# By key: where packages come from, and what else would run them. Any value of the latter counts.
_SOURCES = names("registry npmregistryserver index-url extra-index-url find-links goproxy")
_USUAL = (
    *("://registry.npmjs.org", "://registry.yarnpkg.com", "://pypi.org", "://proxy.golang.org"),
    *("://rubygems.org", "://index.rubygems.org", "://localhost", "://127.", "://[::1]"),
)


def _script_for_others(call: Call) -> bool:
    """`npm run deploy`, `make publish`: the name says what it does."""
    runs = call.args[:1] in (["run"], ["run-script"])
    scripts = call.args[1:2] if runs else call.args
    if call.name in ("make", "gmake", "just", "task"):
        scripts = [] if call.given("--dry-run --just-print -n/fCjI") else scripts
    elif call.name in ("npm", "bun") and not runs:
        return False
    name, _, how = scripts[0].partition(":") if scripts else ("", "", "")
    return name in ("deploy", "publish") and how not in _TRIALS


def _by_python(call: Call) -> bool:
    """`python -m twine upload`, `python setup.py upload`"""
    if call.value("-m") in ("twine", "poetry", "flit", "hatch"):
        return any(word in ("upload", "publish") for word in call.words)
    return any(word.endswith("setup.py") for word in call.args[:1]) and "upload" in call.args


def _other_source(call: Call) -> bool:
    """`npm config set registry URL`, `go env -w GOPROXY=URL`, `gem sources --add URL`"""
    words = " ".join(call.args).replace("=", " ").split()
    if {"config", "c", "set", "env", "sources"}.isdisjoint(words[:3]):
        return False
    if call.name == "go" and call.has("-w"):
        judge_loading(*[*words[1:], "", ""][:2])
    keys = {word.rpartition(".")[2].rpartition(":")[2].lower() for word in words[:-1]}
    named = any(word.startswith(("mirror.", "repositories.", "source.")) for word in words)
    adds = named or call.has("--add", "-a") or not keys.isdisjoint(_SOURCES)
    value = "".join(words[-1:])
    other = "://" in value and not any(mark in value for mark in _USUAL)
    return (adds and other) or not keys.isdisjoint({"script-shell", "trusted-host"})


RULES = rules(
    """\
persistence: from now on packages, or what runs them, would come from elsewhere; name the source \
in the command that needs it
    npm|pnpm|yarn|bun|pip|pip3|poetry|bundle|go|gem|conda|python|python3 (other source)
publish: it publishes a package
    npm|pnpm|bun|jsr|deno|lerna|changeset|vsce|ovsx|semantic-release publish (for real)
    semantic-release|goreleaser|release-it|np|standard-version (for real)
    yarn publish (for real)
    yarn npm publish (for real)
    twine upload
    poetry|uv|flit|hatch|pdm|maturin|rye publish|upload (for real)
    python|python3 (by python)
    cargo publish|yank|owner (for real)
    gem push|yank|owner
    mix hex.publish|hex.retire|hex.owner
    vsce|ovsx publish|unpublish
    mvn|mvnw (_deploys)
    gradle|gradlew (_publishes)
    dotnet nuget push|delete
    nuget push|delete
    pod trunk push|delete|deprecate
    yarn (in workspace)
    cargo release --execute -x
    sbt publish|publishSigned|release
publish: it changes what is published
    npm|pnpm unpublish|deprecate|dist-tag|owner|access
publish: it publishes an app
    fastlane deliver|release|supply|pilot|upload_to_app_store|upload_to_play_store|beta
    eas|eas-cli submit|update
publish: it publishes an image
    docker|podman|nerdctl|helm|buildah push
    docker|podman --push
    skopeo|crane|oras copy|push|delete
publish: it publishes images
    docker|docker-compose compose|image|manifest push
publish: it publishes a release
    gh release create|upload|edit
    glab release create|upload|delete
publish: its name says that it deploys or publishes; leave that to a person
    npm|pnpm|yarn|bun|make|gmake|just|task (script for others)
credentials: it signs in and keeps a credential outside the project
    npm|pnpm|yarn|docker|podman|helm|cargo|gem|vercel|netlify|heroku|fly|flyctl|az|
        pulumi login|adduser|add-user|logout
    gh|glab|gcloud|firebase|aws auth|sso login|logout|refresh
credentials: it reads or writes a credential
    npm|pnpm|yarn config (token)
guard: it removes Ralph itself
    pip|pip3|pipx|uv uninstall|pip|tool (of ralph)
""",
    *(_other_source, for_real, _by_python, _script_for_others),
    _deploys=lambda c: "deploy" in c.args or any(word.startswith("release:") for word in c.args),
    _publishes=lambda c: any(
        w.rpartition(":")[2].startswith("publish") and "Local" not in w for w in c.args
    ),
    in_workspace=lambda c: c.args[:1] in (["workspace"], ["workspaces"]) and "publish" in c.args,
    token=lambda c: c.mentions("_auth"),
    of_ralph=lambda c: not {"ralph", "ralph-engine"}.isdisjoint(c.args),
)
