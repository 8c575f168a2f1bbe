"""Rules about containers: none leaves itself, and what others keep in one is not deleted."""

from ralph.core.danger_databases import is_for_tests
from ralph.core.danger_files import judge_change
from ralph.core.danger_paths import OUTSIDE
from ralph.core.danger_rule import CONTAINER, CREDENTIALS, STRICT, Call, Rule
from ralph.core.danger_secrets import is_credential, judge_environment_file, judge_reading
from ralph.core.shell_text import BOXES, unknown

_CAPABILITIES = frozenset({"ALL", "SYS_ADMIN", "SYS_PTRACE", "SYS_MODULE", "DAC_READ_SEARCH"})
_LETTERS_VALUED = "eupwlmahc"  # of `docker run`: they take the rest of their word
_TAKES_AWAY = frozenset({"rm", "rmi", "kill", "stop", "remove", "pause"})


def _mounts(call: Call) -> list[str]:
    """Where the host's directories come from that a container gets, those it may write."""
    found = [*call.clustered("v", _LETTERS_VALUED), *call.values("--volume")]
    for text in call.values("--mount"):
        parts = dict(part.partition("=")[::2] for part in text.split(","))
        source = parts.get("source", parts.get("src", ""))
        found.append(source + (":x:ro" if {"readonly", "ro"} & parts.keys() else ":x"))
    return [mount.removeprefix("=") for mount in found]


def _outer_mount(call: Call) -> bool:
    home = call.places.where.home
    for mount in _mounts(call):
        source, _, rest = mount.partition(":")
        if not rest:
            continue  # a volume without a name
        if unknown(source):
            return True
        if "/" not in source and source[:1] not in ("~", "."):
            continue  # a volume's name
        source = f"{home}{source[1:]}" if source[:1] == "~" else source
        kind = call.places.kind(source, call.state.cwd)
        whole = call.places.absolute(source, call.state.cwd)
        if "docker.sock" in source or whole in ("/", "/etc", "/root", home):
            return True
        if kind == OUTSIDE and not rest.endswith(":ro"):
            return True
        if is_credential(source, call.places, call.state.cwd):
            return True
    return False


def _copies(call: Call) -> bool:
    """`docker cp CONTAINER:PATH PATH`, and the other way round."""
    words = [word for word in call.subs if word not in ("compose", "container")]
    source, target = [*words[1:3], "", ""][:2]
    if words[:1] != ["cp"] or not target:
        return False
    if ":" not in target and target != "-":
        judge_change(target, call.places, call.state.cwd, "overwrites", into=True)
    if call.places.at_home(source, call.state.cwd):
        judge_reading(source, call.places, call.state.cwd)
        judge_environment_file(source)
    return False


def _capable(call: Call) -> bool:
    caps = {cap.upper().removeprefix("CAP_") for cap in call.values("--cap-add")}
    shared = call.values("--pid", "--ipc", "--userns", "--uts")
    return not caps.isdisjoint(_CAPABILITIES) or "host" in shared


def _on_our_network(call: Call) -> bool:
    return "host" in call.values("--net", "--network")


def _removes_volumes(call: Call) -> bool:
    compose = call.name == "docker-compose" or call.subs[:1] == ["compose"]
    takes = {"down", "rm"}.intersection(call.subs)
    return (
        compose
        and bool(takes)
        and (call.has("--volumes") or call.has_letter("v", "" if "rm" in takes else "ftp"))
    )


def _of_all(call: Call) -> bool:
    """`docker rm $(docker ps -aq)`: those of others too."""
    return not _TAKES_AWAY.isdisjoint(call.subs[:2]) and any(BOXES in word for word in call.words)


def _unconfined(call: Call) -> bool:
    return any("unconfined" in word for word in call.words if "=" in word or ":" in word)


def _controls(call: Call) -> bool:
    return any("docker.sock" in word for word in call.words)


RULES = (
    Rule(
        CONTAINER,
        "the container could leave itself",
        "docker podman nerdctl kubectl oc",
        flags="--privileged --device",
    ),
    Rule(
        CONTAINER,
        "the container could change this machine's files",
        "docker podman nerdctl docker-compose",
        test=_outer_mount,
    ),
    Rule(CONTAINER, "", "docker podman nerdctl docker-compose kubectl oc", test=_copies),
    Rule(CONTAINER, "the container could leave itself", "docker podman nerdctl", test=_capable),
    Rule(
        CONTAINER,
        "the container would have this machine's network",
        "docker podman nerdctl",
        test=_on_our_network,
        level=STRICT,
    ),
    Rule(
        CREDENTIALS,
        "it shows the environment of a container, with its secrets",
        "docker podman nerdctl",
        test=lambda c: any("Config.Env" in word for word in c.words),
    ),
    Rule(
        CONTAINER,
        "it enters or leaves namespaces",
        "nsenter unshare chroot pivot_root runc ctr crictl bwrap",
    ),
    Rule(
        CONTAINER,
        "it deletes what others may use",
        "docker podman nerdctl",
        sub="system|volume|image|container|network|builder prune",
    ),
    Rule(
        CONTAINER,
        "it deletes data volumes",
        "docker podman nerdctl",
        sub="volume rm|remove",
        test=lambda c: c.strict or not all(map(is_for_tests, c.subs[2:])),
    ),
    Rule(
        CONTAINER,
        "it deletes data volumes; leave out -v",
        "docker podman docker-compose",
        test=_removes_volumes,
        level=STRICT,
    ),
    Rule(
        CONTAINER,
        "it stops or deletes every container or image; name yours",
        "docker podman nerdctl",
        test=_of_all,
    ),
    Rule(CONTAINER, "the container could leave itself", "docker podman nerdctl", test=_unconfined),
    Rule(CONTAINER, "it speaks to the container host itself", "curl nc socat", test=_controls),
    Rule(CONTAINER, "it deletes what others may use", "podman docker", sub="system reset"),
    Rule(CONTAINER, "it deletes what others may use", "docker", sub="swarm leave"),
)
