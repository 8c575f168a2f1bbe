"""Rules about containers: none leaves itself, and what others keep in one is not deleted."""

from ralph.guard.paths import OUTSIDE
from ralph.guard.rules.databases import is_for_tests
from ralph.guard.rules.files import change
from ralph.guard.rules.rule import Call, rules
from ralph.guard.rules.secrets.files import is_credential, judge_environment_file, judge_reading
from ralph.guard.shell.text import BOXES, names, unknown

_CAPABILITIES = frozenset({"ALL", "SYS_ADMIN", "SYS_PTRACE", "SYS_MODULE", "DAC_READ_SEARCH"})
_TAKES_AWAY = names("rm rmi kill stop remove pause")


def own_call(call: Call) -> Call:
    """A container's command without the words that are for the program in the container."""
    ends = [place for place, word in enumerate(call.words) if word in ("exec", "run")]
    words = call.words[: ends[0] + 1] if ends else call.words
    return Call([call.name, *words], call.state, call.places)


def _mounts(call: Call) -> list[str]:
    """The host's directories that a container gets, with `:ro` where it may only read."""
    # These letters of `docker run` take the rest of their word.
    found = [*call.clustered("v", "eupwlmahc"), *call.values("--volume")]
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
        if "docker.sock" in source or call.whole(source) in ("/", "/etc", "/root", home):
            return True
        if call.kind(source) == OUTSIDE and not rest.endswith(":ro"):
            return True
        if is_credential(source, call.places, call.state.cwd):
            return True
    return False


def _copies(call: Call) -> None:
    """`docker cp CONTAINER:PATH PATH`, and the other way round."""
    words = [word for word in call.subs if word not in ("compose", "container")]
    source, target = [*words[1:3], "", ""][:2]
    if words[:1] != ["cp"] or not target:
        return
    if ":" not in target and target != "-":
        change(call, [target], "overwrites", into=True)
    if call.places.at_home(source, call.state.cwd):
        judge_reading(source, call.places, call.state.cwd)
        judge_environment_file(source)


def _capable(call: Call) -> bool:
    caps = {cap.upper().removeprefix("CAP_") for cap in call.values("--cap-add")}
    shared = call.values("--pid", "--ipc", "--userns", "--uts")
    return not caps.isdisjoint(_CAPABILITIES) or "host" in shared


def _removes_volumes(call: Call) -> bool:
    compose = call.name == "docker-compose" or call.subs[:1] == ["compose"]
    takes = {"down", "rm"}.intersection(call.subs)
    volumes = call.has("--volumes") or call.has_letter("v", "" if "rm" in takes else "ftp")
    return compose and bool(takes) and volumes


_TABLE = """\
container: the container could leave itself
    docker|podman|nerdctl|kubectl|oc --privileged --device
container: the container could change this machine's files
    docker|podman|nerdctl|docker-compose (outer mount)
container:
    docker|podman|nerdctl|docker-compose|kubectl|oc (copies)
container: the container could leave itself
    docker|podman|nerdctl (capable)
container strict: the container would have this machine's network
    docker|podman|nerdctl (on our network)
credentials: it shows the environment of a container, with its secrets
    docker|podman|nerdctl (_environment)
container: it enters or leaves namespaces
    nsenter|unshare|chroot|pivot_root|runc|ctr|crictl|bwrap
container: it deletes what others may use
    docker|podman|nerdctl system|volume|image|container|network|builder prune
container: it deletes data volumes
    docker|podman|nerdctl volume rm|remove (_in use)
container strict: it deletes data volumes; leave out -v
    docker|podman|docker-compose (removes volumes)
container: it stops or deletes every container or image; name yours
    docker|podman|nerdctl (of all)
container: the container could leave itself
    docker|podman|nerdctl (unconfined)
container: it speaks to the container host itself
    curl|nc|socat (controls)
container: it deletes what others may use
    podman|docker system reset
    docker swarm leave
"""
RULES = rules(
    _TABLE,
    *(_outer_mount, _copies, _capable, _removes_volumes),
    on_our_network=lambda c: "host" in c.values("--net", "--network"),
    _environment=lambda c: c.mentions("Config.Env"),
    _in_use=lambda c: c.strict or not all(map(is_for_tests, c.subs[2:])),
    # `docker rm $(docker ps -aq)`: those of others too
    of_all=lambda c: not _TAKES_AWAY.isdisjoint(c.subs[:2]) and c.mentions(BOXES),
    unconfined=lambda c: any(
        "unconfined" in word for word in c.words if "=" in word or ":" in word
    ),
    controls=lambda c: c.mentions("docker.sock"),
)
