"""Rules about containers, clusters and clouds: none leaves itself or changes what others use."""

import re

from ralph.guard.paths import OUTSIDE
from ralph.guard.rules.databases import is_for_tests
from ralph.guard.rules.files import change
from ralph.guard.rules.rule import Call, for_real, rules
from ralph.guard.rules.secrets import is_credential, judge_environment_file, judge_reading
from ralph.guard.shell.text import BOXES, names, unknown

_CAPABILITIES = frozenset({"ALL", "SYS_ADMIN", "SYS_PTRACE", "SYS_MODULE", "DAC_READ_SEARCH"})
_TAKES_AWAY = names("rm rmi kill stop remove pause")
_READS = (
    *names("describe list get ls help wait show head search lookup test validate estimate preview"),
    *names("check presign filter tail select scan query"),
)
_CHANGES = names(
    "delete remove create deploy update set-iam-policy add-iam-policy-binding destroy start stop"
    " reset purge restart scale import export patch rollback move resize attach detach disable"
    " enable upload cp rm mv"
)


def own_call(call: Call) -> Call:
    """A container's command without the words that are for the program in the container."""
    ends = [place for place, word in enumerate(call.words) if word in ("exec", "run")]
    words = call.words[: ends[0] + 1] if ends else call.words
    return Call([call.name, *words], call.state)


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
    home = call.where.home
    for mount in _mounts(call):
        source, _, rest = mount.partition(":")
        if not rest:
            continue  # a volume without a name
        if unknown(source):
            return True
        if "/" not in source and source[:1] not in ("~", "."):
            continue  # a volume's name
        source = call.expanded(source)
        if "docker.sock" in source or call.whole(source) in ("/", "/etc", "/root", home):
            return True
        if call.kind(source) == OUTSIDE and not rest.endswith(":ro"):
            return True
        if is_credential(source, call.state):
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
    if call.where.at_home(call.whole(source)):
        judge_reading(source, call.state)
        judge_environment_file(source)


def _aws(call: Call) -> bool:
    service, verb = [*call.subs[:2], "", ""][:2]
    # A stand-in for the cloud on this machine.
    address = (call.value("--endpoint-url") or "").partition("://")[2]
    local = address.startswith(("localhost", "127.", "[::1]"))
    # `aws s3 cp s3://bucket/x .`
    fetches = service == "s3" and verb in ("cp", "sync") and _from_bucket(call.subs[2:4])
    reads = not verb or verb.startswith(_READS) or service in ("configure", "help")
    return not (reads or fetches or local) and for_real(call)


def _from_bucket(ends: list[str]) -> bool:
    return len(ends) == 2 and "://" in ends[0] and "://" not in ends[1]


def _says_production(named: list[str]) -> bool:
    parts = {part for name in named for part in re.split(r"[^a-z0-9]+", name.lower())}
    return not parts.isdisjoint({"prod", "production", "live", "prd"})


def _there(call: Call) -> bool:
    """`docker --context production`, `docker -H ssh://host`"""
    named = own_call(call).values("-c", "--context", "-H", "--host")
    return _says_production(named) or any(n.startswith(("ssh://", "tcp://")) for n in named)


RULES = rules(
    """\
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
cloud: it changes what runs in production; leave that to a person
    kubectl|oc|helm apply|create|replace|patch|set|scale|exec|upgrade|install|annotate|label|
        rollout|edit (of production)
    docker|docker-compose (composes production)
cloud: it works on another machine
    docker|podman (there)
cloud: it changes what runs in the cluster
    argocd app|appset|cluster|proj|repo delete|rm|sync|rollback|terminate-op
    kubectl|oc delete|drain|cordon|taint|replace|evict (for real)
    kubectl|oc rollout undo
    helm uninstall|delete|rollback|del
    eksctl|kops|kubeadm delete|create|reset|upgrade|scale
cloud: it stops what runs in the cluster
    kubectl|oc scale (to nothing)
cloud: it changes which cluster is spoken to
    kubectl|oc config use-context|use|set-context|set-cluster|set-credentials|set|unset|
        delete-context|delete-cluster|delete-user|rename-context
cloud: it starts jobs that others see
    gitlab-runner|glab ci|pipeline run|trigger|delete
cloud: it changes what runs in the cloud
    aws (aws)
    gcloud|az|doctl|ibmcloud|oci|linode-cli|hcloud|scw (changes cloud)
    terraform|tofu|terragrunt apply|destroy|import|taint|untaint|force-unlock|refresh (for real)
    terraform|tofu|terragrunt state|workspace rm|mv|push|delete|replace-provider
    pulumi up|update|destroy|refresh|cancel|import
cloud: it changes what lies in the cloud
    gsutil|s3cmd|mc|b2|azcopy rm|rb|cp|mv|rsync|del|put|sync|mb|remove|copy|iam|acl (stores)
cloud: it changes what others use
    fly|flyctl deploy|destroy|scale|apps|machine|secrets|volumes|postgres
    heroku apps:destroy|destroy|pg:reset|config:set|config:unset|ps:scale|releases:rollback|
        addons:destroy|pg:push|run
    firebase|wrangler|serverless|sls|sam|cdk|railway|netlify|amplify|eb|gcloud-app|vercel|now|
        surge deploy|remove|destroy|delete|publish|terminate|up|rm|promote|rollback
    vercel|netlify|now --prod --production
    vercel|now|surge (_alone)
cloud: it changes other machines
    ansible|ansible-playbook|salt|puppet|chef-client|knife|fab|cap (_for real)
""",
    *(_outer_mount, _copies, _there, for_real, _aws),
    capable=lambda c: (
        any(cap.upper().removeprefix("CAP_") in _CAPABILITIES for cap in c.values("--cap-add"))
        or "host" in c.values("--pid", "--ipc", "--userns", "--uts")
    ),
    removes_volumes=lambda c: (
        (c.name == "docker-compose" or c.subs[:1] == ["compose"])
        and (
            ("rm" in c.subs and c.given("--volumes -v"))
            or ("down" in c.subs and c.given("--volumes -v/ftp"))
        )
    ),
    # `docker compose -f docker-compose.prod.yml down -v`
    composes_production=lambda c: (
        "down" in c.subs
        and c.given("--volumes -v/fp")
        and _says_production(c.values("-f", "--file", "-p", "--project-name"))
    ),
    on_our_network=lambda c: "host" in c.values("--net", "--network"),
    _environment=lambda c: c.mentions("Config.Env"),
    _in_use=lambda c: c.strict or not all(map(is_for_tests, c.subs[2:])),
    # `docker rm $(docker ps -aq)`: those of others too
    of_all=lambda c: not _TAKES_AWAY.isdisjoint(c.subs[:2]) and c.mentions(BOXES),
    unconfined=lambda c: any(
        "unconfined" in word for word in c.words if "=" in word or ":" in word
    ),
    controls=lambda c: c.mentions("docker.sock"),
    of_production=lambda c: _says_production(
        c.values("--context", "--kube-context", "-n", "--namespace", "--kubeconfig")
    ),
    to_nothing=lambda c: c.value("--replicas") == "0",
    changes_cloud=lambda c: (
        not _CHANGES.isdisjoint(c.subs[1:]) and c.subs[0] not in ("auth", "config")
    ),
    stores=lambda c: c.subs[0] not in ("cp", "rsync", "copy") or not _from_bucket(c.subs[1:3]),
    _alone=lambda c: not c.words,
    _for_real=lambda c: (
        not c.has("--check", "--syntax-check", "--list-hosts", "--version", "--help")
    ),
)
