"""Credentials at home: which a sandbox hides, which stay the agent's, and how one is shown."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from fake_support import fake, policy_now
from sandbox_support import needs_overlay, policy, tree

from ralph.errors import ConfigError
from ralph.kernel.value import replace
from ralph.sandbox.backends import overlay, srt
from ralph.sandbox.credentials import secrets_of
from ralph.sandbox.interface import SandboxPolicy

LOGINS = {
    "claude": {".claude/.credentials.json", ".claude.json"},
    "codex": {".codex/auth.json"},
    "gemini": {".gemini/oauth_creds.json"},
    "amp": {".local/share/amp/secrets.json"},
}
OTHERS = {".ssh", ".aws", ".netrc", ".config/gh", ".config/gcloud", ".npmrc", ".docker/config.json"}
DIRECTORIES = {".ssh", ".aws", ".config/gh", ".config/gcloud"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """One with a credential of every sort, and something else."""
    home = tmp_path / "at" / "home"
    for name in OTHERS.union(*LOGINS.values()):
        path = home / name / "key" if name in DIRECTORIES else home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret\n")
    return tree(home, **{".gitconfig": "[user]\n", ".config__tool": "x\n", ".docker__other": "x\n"})


def hidden(
    home: Path, *kinds: str, show: tuple[str, ...] = (), env: Mapping[str, str] = {}
) -> set[str]:
    agents = [(kind, {"HOME": str(home), **env}) for kind in kinds]
    return {os.path.relpath(path, home) for path in secrets_of(agents, show).hidden}


@pytest.mark.parametrize("kinds", [("claude",), ("codex",), ("goose",), ("claude", "codex")])
def test_what_an_agent_does_not_need_is_hidden(home: Path, kinds: tuple[str, ...]) -> None:
    """Issue: "Credential files that the agent does not need (…, other agents' logins and similar)
    are hidden"; "The agent's own login stays visible"."""
    others = [names for kind, names in LOGINS.items() if kind not in kinds]
    assert hidden(home, *kinds) == OTHERS.union(*others)


@pytest.mark.parametrize(
    ("kind", "env", "own"),
    [
        ("text", {}, set().union(*LOGINS.values())),  # a script that calls one of them
        ("claude", {"CLAUDE_CODE_USE_BEDROCK": "1"}, {".aws"}),
        ("claude", {"CLAUDE_CODE_USE_VERTEX": "1"}, {".config/gcloud"}),
        ("claude", {"CLAUDE_CODE_USE_BEDROCK": "0"}, set()),
        ("gemini", {"GOOGLE_GENAI_USE_VERTEXAI": "true"}, {".config/gcloud"}),
        ("copilot", {}, {".config/gh"}),
    ],
)
def test_what_an_agent_logs_in_with_stays(
    home: Path, kind: str, env: dict[str, str], own: set[str]
) -> None:
    known = OTHERS.union(*LOGINS.values())
    assert hidden(home, kind, env=env) == known - own - LOGINS.get(kind, set())


def test_what_a_variable_has_moved_is_hidden_there(home: Path) -> None:
    moved = tree(home / "else", gh__hosts="x", kube="x", credentials="x", **{"auth.json": "x"})
    env = {
        "XDG_CONFIG_HOME": str(moved),
        "KUBECONFIG": f"{moved}/kube:{moved}/none",
        "AWS_SHARED_CREDENTIALS_FILE": f"{moved}/credentials",
        "CODEX_HOME": str(moved),
    }
    found = hidden(home, "claude", env=env)
    assert {"else/gh", "else/kube", "else/credentials", "else/auth.json"} <= found
    assert "else/auth.json" not in hidden(home, "codex", env=env)
    assert "else/credentials" not in hidden(
        home, "claude", env={**env, "CLAUDE_CODE_USE_BEDROCK": "1"}
    )


def test_a_variable_that_holds_a_credential_itself_moves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inline JSON where a path is usual, and a path that means another file everywhere."""
    monkeypatch.chdir(home)
    tree(home, kube="x")
    inline = '{"type":"service_account","private_key_id":"0a1b"}'
    env = {"AWS_SHARED_CREDENTIALS_FILE": inline, "KUBECONFIG": f"kube:{inline}", "NETRC": ""}
    assert hidden(home, "claude", env=env) == hidden(home, "claude")


@pytest.mark.parametrize("home_", ["", "relative"])
def test_without_a_home_nothing_is_known(home_: str) -> None:
    assert secrets_of([("claude", {"HOME": home_})]).hidden == ()


def test_what_is_to_be_shown(home: Path) -> None:
    """Issue: "with a setting to show one"."""
    whole = hidden(home, "claude", show=("~/.ssh", f"{home}/.config/gh/", "~/.kube"))
    assert whole == hidden(home, "claude") - {".ssh", ".config/gh"}
    part = secrets_of([("claude", {"HOME": str(home)})], ("~/.ssh/known_hosts",))
    assert part.shown == (f"{home}/.ssh/known_hosts",)
    assert f"{home}/.ssh" in part.hidden


@pytest.mark.parametrize("text", ["~/.shh", ".ssh", "~", "/", "~/.config", "~/.sshx", "~/.ssh/.."])
def test_what_is_never_hidden_cannot_be_shown(home: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="is nothing that a sandbox hides") as caught:
        hidden(home, "claude", show=(text,))
    assert "~/.ssh, ~/.gnupg" in caught.value.remedy


def wish(home: Path, *show: str) -> SandboxPolicy:
    secrets = secrets_of([("claude", {"HOME": str(home)})], show)
    own = replace(policy(), home=str(home), secret=secrets.hidden)
    return replace(own, visible=(*own.visible, *secrets.shown))


LIST = "cd {home}; find . -type f | sort; cat .ssh/key .netrc .npmrc; find .ssh .config/gh -type f"


@needs_overlay
@pytest.mark.parametrize("inside", [False, True], ids=["project elsewhere", "project at home"])
def test_an_overlay_hides_them_and_home_works_on(home: Path, tmp_path: Path, inside: bool) -> None:
    project = tree(home / "p" if inside else tmp_path / "p", a="1\n")
    before = {path: path.read_text() for path in home.rglob("*") if path.is_file()}
    with overlay.open(str(project), wish(home)) as sandbox:
        done = sandbox.bash(LIST.format(home=home))
        seen = {name.removeprefix("./") for name in done.output.decode().split()}
        work = "echo x > .ssh/known_hosts && echo x > .npmrc && cat .npmrc .ssh/known_hosts"
        assert sandbox.bash(f"cd {home}; {work}").output == b"x\nx\n"
        assert sandbox.changes() == ()
    assert seen - {"p/a"} == LOGINS["claude"] | {".gitconfig", ".config/tool", ".docker/other"}
    after = {path: path.read_text() for path in home.rglob("*") if path in before}
    assert after == before


@needs_overlay
@pytest.mark.parametrize(
    "script",
    [
        "umount {home}/.ssh; cat {home}/.ssh/key",
        "unshare -Urm umount {home}/.ssh; cat {home}/.ssh/key",
        "unshare -Urm sh -c 'mount --bind {home} /mnt && cat /mnt/.ssh/key'",
        (
            "cd /tmp; mkdir m u w; unshare -Urm sh -c 'mount -t overlay x m -o "
            "userxattr,lowerdir={home},upperdir=u,workdir=w && cat m/.ssh/key m/.netrc'"
        ),
        "rm -r {home}/.netrc {home}/.ssh; cat {home}/.netrc {home}/.ssh/key",
        "cat /proc/1/root{home}/.netrc",
    ],
)
def test_what_is_hidden_stays_hidden(home: Path, tmp_path: Path, script: str) -> None:
    project = tree(tmp_path / "p", a="1\n")
    with overlay.open(str(project), wish(home)) as sandbox:
        done = sandbox.bash(script.format(home=home))
    assert done.code != 0
    assert b"secret" not in done.output


@needs_overlay
def test_an_overlay_shows_what_is_to_be_shown(home: Path, tmp_path: Path) -> None:
    project = tree(tmp_path / "p", a="1\n")
    tree(home, **{".ssh__known_hosts": "hosts\n"})
    with overlay.open(str(project), wish(home, "~/.aws", "~/.ssh/known_hosts")) as sandbox:
        done = sandbox.bash(f"cd {home}; cat .aws/key .ssh/known_hosts; ls .ssh")
    assert done.output == b"secret\nhosts\nknown_hosts\n"


@needs_overlay
def test_links_to_them_lead_nowhere(home: Path, tmp_path: Path) -> None:
    """Who keeps his files in a repository has links at home."""
    project = tree(tmp_path / "p", a="1\n")
    tree(home, dotfiles__netrc="secret\n", dotfiles__kube__config="secret\n", dotfiles__x="x\n")
    (home / ".netrc").unlink()
    (home / ".netrc").symlink_to("dotfiles/netrc")
    (home / ".kube").symlink_to("dotfiles/kube")
    with overlay.open(str(project), wish(home)) as sandbox:
        done = sandbox.bash(f"cd {home}; cat .netrc .kube/config dotfiles/*; ls dotfiles")
    assert done.output == b"x\nkube\nx\n"


@needs_overlay
def test_where_home_has_no_layer_files_are_empty(home: Path, tmp_path: Path) -> None:
    project = tree(tmp_path / "p", a="1\n")
    shown = replace(wish(home), home="", visible=(str(home),))
    with overlay.open(str(project), shown) as sandbox:
        done = sandbox.bash(f"cd {home}; cat .netrc .npmrc .gitconfig; ls -A .ssh; echo > .netrc")
    assert done.output == b"[user]\n"
    assert b"Read-only" in done.error
    assert (home / ".netrc").read_text() == "secret\n"


@needs_overlay
def test_what_is_in_the_project_is_the_projects(home: Path) -> None:
    """Else a commit in there would delete it."""
    with overlay.open(str(home), wish(home)) as sandbox:
        assert sandbox.bash("cat .npmrc .ssh/key").output == b"secret\nsecret\n"


@needs_overlay
def test_srt_is_told_to_deny_them(
    home: Path, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, monkeypatch, "srt")
    secrets = secrets_of([("claude", {"HOME": str(home)})])
    given = replace(policy_now(), secret=secrets.hidden, visible=(str(home),))
    with srt.open(str(repo), given) as box:
        denied = box._filesystem()["denyRead"]
    assert {f"{home}/.ssh", f"{home}/.netrc", f"{home}/.codex/auth.json"} <= set(denied)
    assert f"{home}/.claude/.credentials.json" not in denied
