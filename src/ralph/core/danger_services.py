"""Rules about what others use: clouds and clusters."""

import re

from ralph.core.danger_elsewhere import own_call
from ralph.core.danger_rule import CLOUD, Call, Rule, for_real
from ralph.core.shell_text import names

_READS: tuple[str, ...] = (
    "describe",
    "list",
    "get",
    "ls",
    "help",
    "wait",
    "show",
    "head",
    "search",
    "lookup",
    "test",
)
_READS += (
    "validate",
    "estimate",
    "preview",
    "check",
    "presign",
    "filter",
    "tail",
    "select",
    "scan",
    "query",
)
_PRODUCTION = names("prod production live prd")
_CHANGES = names(
    "delete remove create deploy update set-iam-policy add-iam-policy-binding destroy"
    " start stop reset purge"
    " restart scale import export patch rollback move resize attach detach disable"
    " enable upload cp rm mv"
)


def _aws(call: Call) -> bool:
    verb = call.subs[1] if len(call.subs) > 1 else ""
    return (
        bool(verb)
        and not verb.startswith(_READS)
        and call.subs[0] not in ("configure", "help")
        and not _fetches(call)
        and not _is_local(call)
        and for_real(call)
    )


def _is_local(call: Call) -> bool:
    """A stand-in for the cloud on this machine."""
    address = call.value("--endpoint-url") or ""
    return address.partition("://")[2].startswith(("localhost", "127.", "[::1]"))


def _of_production(call: Call) -> bool:
    """Whether it goes to what is in production, by the cluster or the place that it names."""
    named = call.values("--context", "--kube-context", "-n", "--namespace", "--kubeconfig")
    return _says_production(named)


def _composes_production(call: Call) -> bool:
    """`docker compose -f docker-compose.prod.yml down -v`"""
    takes = "down" in call.subs and (call.has("--volumes") or call.has_letter("v", "fp"))
    return takes and _says_production(call.values("-f", "--file", "-p", "--project-name"))


def _there(call: Call) -> bool:
    """`docker --context production`, `docker -H ssh://host`"""
    named = own_call(call).values("-c", "--context", "-H", "--host")
    return _says_production(named) or any(n.startswith(("ssh://", "tcp://")) for n in named)


def _says_production(named: list[str]) -> bool:
    parts = {part for name in named for part in re.split(r"[^a-z0-9]+", name.lower())}
    return not _PRODUCTION.isdisjoint(parts)


def _fetches(call: Call) -> bool:
    """`aws s3 cp s3://bucket/x .`"""
    return call.subs[0] == "s3" and call.subs[1] in ("cp", "sync") and _from_bucket(call.subs[2:4])


def _from_bucket(ends: list[str]) -> bool:
    return len(ends) == 2 and "://" in ends[0] and "://" not in ends[1]


def _stores(call: Call) -> bool:
    return not (call.subs[0] in ("cp", "rsync", "copy") and _from_bucket(call.subs[1:3]))


def _to_nothing(call: Call) -> bool:
    return call.value("--replicas") == "0"


def _changes_cloud(call: Call) -> bool:
    return any(word in _CHANGES for word in call.subs[1:]) and call.subs[:1] not in (
        ["auth"],
        ["config"],
    )


RULES = (
    Rule(
        CLOUD,
        "it changes what runs in production; leave that to a person",
        "kubectl oc helm",
        sub="apply|create|replace|patch|set|scale|exec|upgrade|install|annotate|label|rollout|edit",
        test=_of_production,
    ),
    Rule(
        CLOUD,
        "it changes what runs in production; leave that to a person",
        "docker docker-compose",
        test=_composes_production,
    ),
    Rule(CLOUD, "it works on another machine", "docker podman", test=_there),
    Rule(
        CLOUD,
        "it changes what runs in the cluster",
        "argocd",
        sub="app|appset|cluster|proj|repo delete|rm|sync|rollback|terminate-op",
    ),
    Rule(
        CLOUD,
        "it starts jobs that others see",
        "gitlab-runner glab",
        sub="ci|pipeline run|trigger|delete",
    ),
    Rule(CLOUD, "it changes what runs in the cloud", "aws", test=_aws),
    Rule(
        CLOUD,
        "it changes what runs in the cloud",
        "gcloud az doctl ibmcloud oci linode-cli hcloud scw",
        test=_changes_cloud,
    ),
    Rule(
        CLOUD,
        "it changes what lies in the cloud",
        "gsutil s3cmd mc b2 azcopy",
        sub="rm|rb|cp|mv|rsync|del|put|sync|mb|remove|copy|iam|acl",
        test=_stores,
    ),
    Rule(
        CLOUD,
        "it changes what runs in the cloud",
        "terraform tofu terragrunt",
        sub="apply|destroy|import|taint|untaint|force-unlock|refresh",
        test=for_real,
    ),
    Rule(
        CLOUD,
        "it changes what runs in the cloud",
        "terraform tofu terragrunt",
        sub="state|workspace rm|mv|push|delete|replace-provider",
    ),
    Rule(
        CLOUD,
        "it changes what runs in the cloud",
        "pulumi",
        sub="up|update|destroy|refresh|cancel|import",
    ),
    Rule(
        CLOUD,
        "it changes what runs in the cluster",
        "kubectl oc",
        sub="delete|drain|cordon|taint|replace|evict",
        test=for_real,
    ),
    Rule(CLOUD, "it stops what runs in the cluster", "kubectl oc", sub="scale", test=_to_nothing),
    Rule(CLOUD, "it changes what runs in the cluster", "kubectl oc", sub="rollout undo"),
    Rule(
        CLOUD,
        "it changes which cluster is spoken to",
        "kubectl oc",
        sub="config use-context|use|set-context|set-cluster|set-credentials|set|unset"
        "|delete-context|delete-cluster|delete-user|rename-context",
    ),
    Rule(CLOUD, "it changes what runs in the cluster", "helm", sub="uninstall|delete|rollback|del"),
    Rule(
        CLOUD,
        "it changes what runs in the cluster",
        "eksctl kops kubeadm",
        sub="delete|create|reset|upgrade|scale",
    ),
    Rule(
        CLOUD,
        "it changes what others use",
        "fly flyctl",
        sub="deploy|destroy|scale|apps|machine|secrets|volumes|postgres",
    ),
    Rule(
        CLOUD,
        "it changes what others use",
        "heroku",
        sub=(
            "apps:destroy|destroy|pg:reset|config:set|config:unset|ps:scale|releases:rollback"
            "|addons:destroy|pg:push|run"
        ),
    ),
    Rule(
        CLOUD,
        "it changes what others use",
        "firebase wrangler serverless sls sam cdk railway netlify amplify eb gcloud-app"
        " vercel now surge",
        sub="deploy|remove|destroy|delete|publish|terminate|up|rm|promote|rollback",
    ),
    Rule(CLOUD, "it changes what others use", "vercel netlify now", flags="--prod --production"),
    Rule(CLOUD, "it changes what others use", "vercel now surge", test=lambda c: not c.words),
    Rule(
        CLOUD,
        "it changes other machines",
        "ansible ansible-playbook salt puppet chef-client knife fab cap",
        test=lambda c: (
            not c.has("--check", "--syntax-check", "--list-hosts", "--version", "--help")
        ),
    ),
)
