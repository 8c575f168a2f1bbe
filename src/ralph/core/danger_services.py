"""Rules about what others use: clouds and databases."""

from ralph.core.danger_rule import CLOUD, DATABASE, Call, Rule, for_real
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
        and for_real(call)
    )


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


def _sql(call: Call) -> bool:
    """Whether any text for the database deletes more than single rows."""
    texts = [*call.words, call.state.stdin or ""]
    return any(loses_data(text) for text in texts)


def loses_data(text: str) -> bool:
    """`DROP`, `TRUNCATE`, and `DELETE` or `UPDATE` without a condition."""
    for statement in _without_comments(text.lower()).split(";"):
        words = statement.split()
        if words[:2] == ["alter", "table"] and "drop" in words:
            return True
        for place, word in enumerate(words):
            rest = words[place + 1 : place + 2]
            if word == "drop" and rest and rest[0] in _DROPPED:
                return True
            if word == "truncate" and rest:
                return True
            every = (word == "delete" and rest == ["from"]) or (
                word == "update" and place == 0 and "set" in words
            )
            if every and not _has_condition(words):
                return True
    return False


def _without_comments(text: str) -> str:
    before, _, after = text.partition("/*")
    while after:
        before, _, after = f"{before} {after.partition('*/')[2]}".partition("/*")
    return before


def _has_condition(words: list[str]) -> bool:
    """`where 1=1` is none."""
    condition = "".join(words[words.index("where") + 1 :]) if "where" in words else ""
    return bool(condition) and condition.strip("\"')") not in ("1", "1=1", "true", "'1'='1")


_DROPPED = names(
    "table database schema index view column user role owned keyspace collection"
    " constraint type sequence"
    " materialized function trigger extension tablespace"
)


def _flushes(call: Call) -> bool:
    words = {word.lower() for word in call.words} | set((call.state.stdin or "").lower().split())
    return not words.isdisjoint({"flushall", "flushdb", "shutdown", "debug"})


def _mongo(call: Call) -> bool:
    texts = " ".join([*call.words, call.state.stdin or ""]).replace(" ", "").lower()
    return any(
        mark in texts
        for mark in ("dropdatabase(", ".drop(", "deletemany({})", ".remove({})", "dropindexes(")
    )


def _migrates_back(call: Call) -> bool:
    return any(word in _RESETS for word in call.words)


_RESETS = names(
    "db:drop db:reset db:wipe db:drop:all db:schema:load migrate:fresh migrate:reset"
    " migrate:refresh db:purge db:truncate_all"
    " schema:drop db:migrate:undo:all db:setup flush reset_db sqlflush"
)


RULES = (
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
    Rule(
        DATABASE,
        "it deletes tables, databases or all rows",
        "psql mysql mariadb sqlite3 sqlite sqlcmd cqlsh clickhouse-client clickhouse"
        " duckdb cockroach bq snowsql sqlplus pgcli mycli trino presto usql isql influx",
        test=_sql,
    ),
    Rule(DATABASE, "it deletes a database or a user", "dropdb dropuser pg_dropcluster"),
    Rule(DATABASE, "it deletes a database", "mysqladmin", sub="drop|shutdown"),
    Rule(
        DATABASE,
        "it deletes what the database holds",
        "redis-cli valkey-cli keydb-cli memcached-tool",
        test=_flushes,
    ),
    Rule(DATABASE, "it deletes what the database holds", "mongo mongosh", test=_mongo),
    Rule(
        DATABASE, "it deletes what the database holds", "pg_restore", flags="--clean", letters="c"
    ),
    Rule(DATABASE, "it deletes what the database holds", "mongorestore", flags="--drop"),
    Rule(
        DATABASE,
        "it deletes what the database holds",
        "rails rake artisan php sequelize sequelize-cli typeorm mix manage.py"
        " python python3 django-admin",
        test=_migrates_back,
    ),
    Rule(DATABASE, "it deletes what the database holds", "mix", sub="ecto.drop|ecto.reset"),
    Rule(DATABASE, "it deletes what the database holds", "prisma", sub="migrate reset"),
    Rule(
        DATABASE,
        "it deletes what the database holds",
        "prisma",
        sub="db push",
        flags="--force-reset --accept-data-loss",
    ),
    Rule(
        DATABASE, "it deletes what the database holds", "supabase", sub="db|projects reset|delete"
    ),
    Rule(DATABASE, "it deletes what the database holds", "alembic", sub="downgrade base"),
    Rule(
        DATABASE,
        "it deletes what the database holds",
        "knex",
        sub="migrate:rollback",
        flags="--all",
    ),
    Rule(DATABASE, "it deletes what the database holds", "drizzle-kit", sub="drop"),
)
