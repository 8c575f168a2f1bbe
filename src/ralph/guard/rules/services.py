"""Rules about what others use: clouds and clusters."""

import re

from ralph.guard.rules.containers import own_call
from ralph.guard.rules.rule import Call, for_real, rules
from ralph.guard.shell.text import names

_READS = (
    *names("describe list get ls help wait show head search lookup test validate estimate preview"),
    *names("check presign filter tail select scan query"),
)
_PRODUCTION = names("prod production live prd")
_CHANGES = names(
    "delete remove create deploy update set-iam-policy add-iam-policy-binding destroy start stop"
    " reset purge restart scale import export patch rollback move resize attach detach disable"
    " enable upload cp rm mv"
)


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
    return not _PRODUCTION.isdisjoint(parts)


def _composes_production(call: Call) -> bool:
    """`docker compose -f docker-compose.prod.yml down -v`"""
    takes = "down" in call.subs and (call.has("--volumes") or call.has_letter("v", "fp"))
    return takes and _says_production(call.values("-f", "--file", "-p", "--project-name"))


def _there(call: Call) -> bool:
    """`docker --context production`, `docker -H ssh://host`"""
    named = own_call(call).values("-c", "--context", "-H", "--host")
    return _says_production(named) or any(n.startswith(("ssh://", "tcp://")) for n in named)


_TABLE = """\
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
"""
RULES = rules(
    _TABLE,
    *(_composes_production, _there, for_real, _aws),
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
