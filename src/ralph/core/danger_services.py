"""Rules about what others see or use: packages, clouds, databases."""

from ralph.core.danger_rule import CLOUD, DATABASE, PUBLISH, Call, Rule
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


def _dry(call: Call) -> bool:
    return call.has("--dry-run", "--dryrun", "--help") or call.has_letter("h")


def _for_real(call: Call) -> bool:
    return not _dry(call)


def _aws(call: Call) -> bool:
    verb = call.subs[1] if len(call.subs) > 1 else ""
    return (
        bool(verb)
        and not verb.startswith(_READS)
        and call.subs[0] not in ("configure", "help")
        and _for_real(call)
    )


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
    for statement in text.lower().split(";"):
        words = statement.split()
        for place, word in enumerate(words):
            rest = words[place + 1 : place + 2]
            if word == "drop" and rest and rest[0] in _DROPPED:
                return True
            if word == "truncate" and rest:
                return True
            if word == "delete" and rest == ["from"] and "where" not in words:
                return True
            if word == "update" and place == 0 and "set" in words and "where" not in words:
                return True
    return False


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
    Rule(
        PUBLISH,
        "it publishes a package",
        "npm pnpm bun jsr deno lerna changeset vsce ovsx semantic-release",
        sub="publish",
        test=_for_real,
    ),
    Rule(
        PUBLISH,
        "it publishes a package",
        "semantic-release goreleaser release-it np standard-version",
        test=_for_real,
    ),
    Rule(
        PUBLISH,
        "it changes what is published",
        "npm pnpm",
        sub="unpublish|deprecate|dist-tag|owner|access",
    ),
    Rule(PUBLISH, "it publishes a package", "yarn", sub="publish", test=_for_real),
    Rule(PUBLISH, "it publishes a package", "yarn", sub="npm publish", test=_for_real),
    Rule(PUBLISH, "it publishes a package", "twine", sub="upload"),
    Rule(
        PUBLISH,
        "it publishes a package",
        "poetry uv flit hatch pdm maturin rye",
        sub="publish|upload",
        test=_for_real,
    ),
    Rule(
        PUBLISH,
        "it publishes a package",
        "python python3",
        test=lambda c: c.value("-m") == "twine" and "upload" in c.words,
    ),
    Rule(PUBLISH, "it publishes a package", "cargo", sub="publish|yank|owner", test=_for_real),
    Rule(PUBLISH, "it publishes a package", "gem", sub="push|yank|owner"),
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
    ),
    Rule(
        CLOUD,
        "it changes what runs in the cloud",
        "terraform tofu terragrunt",
        sub="apply|destroy|import|taint|untaint|force-unlock|refresh",
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
        test=_for_real,
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
        " duckdb cockroach bq snowsql sqlplus pgcli mycli trino presto usql isql",
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
        "rails rake artisan php sequelize sequelize-cli typeorm bin/rails mix manage.py"
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
