"""Rules about databases: one that is there for tests or development may be emptied."""

import re

from ralph.guard.paths import FREE_PLACE
from ralph.guard.rules.rule import Call, positional, rules
from ralph.guard.shell.text import names, unknown

_FOR_TESTS = (
    r"(?<![a-z])(?:test(?:s|ing|db)?|dev|development|local|tmp|temp|scratch|sandbox|ci|e2e|spec"
    r"|demo|example|fixtures?|playground)\d*(?![a-z])"
)
_IN_USE = r"(?<![a-z])(?:pre|non)?(?:prod(?:uction)?|prd|live|stag(?:e|ing)|uat|qa)(?![a-z])"
_ENVIRONMENTS = names("RAILS_ENV RACK_ENV NODE_ENV APP_ENV MIX_ENV DJANGO_ENV FLASK_ENV")
_PLACES = names("PGHOST PGSERVICE PGHOSTADDR MYSQL_HOST DATABASE_HOST DB_HOST REDIS_URL")
_HERE = names("localhost 127.0.0.1 ::1 [::1] db postgres mysql mariadb database redis")
_NAMING = ("-d", "--dbname", "-D", "--database", "--settings")
_TELLING = ("--env", "-e", "--environment", "--settings")
_ELSEWHERE = ("-h", "--host", "--hostname", "-S", "--server", "--uri", "--url")
_VALUED = names(
    "-U -h -p -u -P -c -e -f -d -D -a -n -S -Q -k -w --username --host --port --user --command"
    " --execute --file --dbname --database --eval -cmd -init -separator -nullvalue -x"
)
_BY_PLACE = names("psql mysql mariadb pgcli mycli dropdb mongo mongosh mysqladmin")
# Frameworks that empty the development's database unless told otherwise, and ask before others.
_CAREFUL = names("rails rake mix artisan php")
_DROPPED = (
    "table|database|schema|index|view|column|user|role|owned|keyspace|collection|constraint|type"
    "|sequence|materialized|function|trigger|extension|tablespace"
)
_LOSES = (
    rf"(?<!\S)drop\s+(?:{_DROPPED})(?!\S)|(?<!\S)truncate\s+\S"
    r"|^\s*alter\s+table\s(?:.*\s)?drop(?!\S)"
)
_CHANGES_ALL = r"(?<!\S)delete\s+from(?!\S)|^\s*update\s(?:.*\s)?set(?!\S)"
_RESETS = names(
    "db:drop db:reset db:wipe db:drop:all db:schema:load migrate:fresh migrate:reset"
    " migrate:refresh db:purge db:truncate_all schema:drop db:migrate:undo:all db:migrate:reset"
    " db:setup flush reset_db sqlflush"
)
_FLUSHES = names("flushall flushdb shutdown debug")
_MONGO = r"dropdatabase\(|\.drop\(|deletemany\(\{\}\)|\.remove\(\{\}\)|dropindexes\("
_ADDRESS = r"^[\w+]+://(?:[^@/]*@)?([^:/]*)(?::\d+)?/([^?]*)(?:\?(.*))?$"


def is_scratch(call: Call) -> bool:
    """True if the database is known to be of this machine, and for tests or development."""
    if call.state.far or any(unknown(w) or re.search(_IN_USE, w.lower()) for w in call.words):
        return False
    told = [call.state.value(name) or "" for name in _ENVIRONMENTS] + call.values(*_TELLING)
    if any(unknown(text) or re.search(_IN_USE, text) for text in told):
        return False
    if call.name in ("sqlite3", "sqlite", "duckdb"):
        file = "".join(positional(call.words, _VALUED)[:1])
        return file == ":memory:" or (call.kind(file) == FREE_PLACE and not unknown(file))
    url = call.state.value("DATABASE_URL") or ""
    if url.startswith(("file:", "sqlite:")):
        return is_for_tests(url)
    if call.name in _CAREFUL and not url and "--force" not in call.words:
        return not call.state.value("DISABLE_DATABASE_ENVIRONMENT_CHECK")
    if call.name.endswith("-cli") and "flushdb" in [word.lower() for word in call.words]:
        number = call.value("-n") or "0"  # the first one is what all use
        return number.isdecimal() and number != "0" and call.value("-h", "-u") is None
    return _is_here(call, url) and _names_tests(call, url, [text for text in told if text])


def _addresses(call: Call, url: str) -> "list[re.Match[str]]":
    return [match for word in [*call.words, url] if (match := re.match(_ADDRESS, word))]


def _is_here(call: Call, url: str) -> bool:
    """True if it is on this machine, or in a container of the project."""
    found = _addresses(call, url)
    hosts = [match[1] for match in found] + call.values(*_ELSEWHERE)
    hosts += [call.state.value(name) or "" for name in _PLACES]
    texts = [text for word in call.words for text in word.split()]
    hosts += [text.partition("=")[2] for text in texts if "host=" in text]
    far = [host for host in hosts if host and host not in _HERE and "/" not in host[:1]]
    asked = any("host=" in (match[3] or "") for match in found)
    return not far and not asked and not unknown(url) and "+srv" not in "".join(call.words)


def _names_tests(call: Call, url: str, told: list[str]) -> bool:
    """True if every database that is named is for tests, and at least one is."""
    named = [match[2] for match in _addresses(call, url)] + call.values(*_NAMING)
    texts = [text for word in call.words for text in word.split()]  # `psql "host=x dbname=y"`
    named += [text.removeprefix("dbname=") for text in texts if text.startswith("dbname=")]
    places = [w for w in positional(call.words, _VALUED) if "=" not in w and "://" not in w]
    if call.name in _BY_PLACE and not named:
        named = places[-1:] if call.name in ("dropdb", "mysqladmin") else places[:1]
    spoken = [text for text in call.texts if " " in text.strip()]
    statements = [part.split() for text in spoken for part in text.lower().split(";")]
    whole = [words for words in statements if words[:2] == ["drop", "database"]]
    if not all(is_for_tests(words[-1].strip("\"'`")) for words in whole):
        return False
    if whole and not any(loses_data(" ".join(w)) for w in statements if w not in whole):
        return True
    return all(map(is_for_tests, named or told)) and bool(named or told)


def is_for_tests(name: str) -> bool:
    """`app_test`, `test`, `myapp-dev`; not `latest`, and nothing that nobody knows."""
    lower = name.lower()
    known = not unknown(name) and not re.search(_IN_USE, lower)
    return known and bool(re.search(_FOR_TESTS, lower))


def loses_data(text: str) -> bool:
    """`DROP`, `TRUNCATE`, and `DELETE` or `UPDATE` without a condition; `where 1=1` is none."""
    for statement in re.sub(r"/\*.*?(?:\*/|$)", " ", text.lower(), flags=re.DOTALL).split(";"):
        where = re.search(r"(?<!\S)where(?!\S)(.*)", statement, re.DOTALL)
        condition = "".join(where[1].split()).strip("\"')") if where else ""
        every = condition in ("", "1", "1=1", "true", "'1'='1")
        if re.search(_LOSES, statement, re.DOTALL):
            return True
        if every and re.search(_CHANGES_ALL, statement, re.DOTALL):
            return True
    return False


RULES = rules(
    """\
database: it deletes tables, databases or all rows
    psql|mysql|mariadb|sqlite3|sqlite|sqlcmd|cqlsh|clickhouse-client|clickhouse|duckdb|cockroach|bq|
        snowsql|sqlplus|pgcli|mycli|trino|presto|usql|isql|influx (sql)
database: it deletes a database or a user
    dropdb|dropuser|pg_dropcluster
database: it deletes a database
    mysqladmin drop|shutdown
database: it deletes what the database holds
    redis-cli|valkey-cli|keydb-cli|memcached-tool (flushes)
    mongo|mongosh (mongo)
    pg_restore --clean -c
    mongorestore --drop
    rails|rake|artisan|php|sequelize|sequelize-cli|typeorm|mix|manage.py|python|python3|
        django-admin (migrates back)
    mix ecto.drop|ecto.reset
    prisma migrate reset
    prisma db push --force-reset --accept-data-loss
    alembic downgrade base
    knex migrate:rollback --all
    drizzle-kit drop
database: it deletes what the database holds
    supabase projects delete
database: it deletes what the database of others holds; leave out --linked
    supabase db reset --linked --db-url
database strict: it deletes what the database holds
    supabase db reset
""",
    flushes=lambda c: not _FLUSHES.isdisjoint(" ".join(c.texts).lower().split()),
    mongo=lambda c: re.search(_MONGO, "".join(c.texts).replace(" ", "").lower()),
    sql=lambda c: any(map(loses_data, c.texts)),
    migrates_back=lambda c: not _RESETS.isdisjoint(c.words),
    unless=is_scratch,
)
