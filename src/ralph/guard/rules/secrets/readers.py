"""Rules about programs that read secret files although that is not their first purpose: git,
editors, containers and jq."""

import re

from ralph.guard.follow.expand import is_secret
from ralph.guard.rules.rule import Call, positional, rules
from ralph.guard.rules.secrets.files import judge_environment_file, judge_reading
from ralph.guard.shell.text import names

_PRINTS = names("show cat-file diff difftool blame annotate grep archive format-patch")
# They print what files hold only if they are told to.
_LISTS = names("log whatchanged diff-tree diff-index diff-files")
_ONLY_NAMES = names("--stat --name-only --name-status --numstat --shortstat --no-patch --quiet")
# Flags that take the next word, where that could look like a path.
_GREP_VALUED = names("-e -f")
_VALUED = names("-S -G --grep --author --output --prefix --format")
_EXCLUDES = (":!", ":^", ":(exclude", ":(top,exclude")
_BETWEEN = r"[\s|'\"()<;,]+"
_JQ_NAMED = (
    r"(?:\$ENV|(?<![.\w$])env)\s*(?:\.\s*\"?|\.?\[\s*\")(\w+)"
    r"|\benv\s*\(\s*(\w+)|strenv\s*\(\s*(\w+)"
)


def _judge(call: Call, path: str) -> None:
    home = call.places.where.home
    path = f"{home}{path[1:]}" if path.startswith("~/") else path
    judge_reading(path, call.places, call.state.cwd)
    judge_environment_file(path)


def _git_reads(call: Call) -> None:
    """`git show HEAD:.env`, `git log -p -- .env`; their names alone may be listed."""
    sub = "".join(call.subs[:1])
    words = call.words[call.words.index(sub) + 1 :] if sub else []
    if sub == "config":
        for path in Call(["config", *words], call.state, call.places).values("-f", "--file"):
            _judge(call, path)
    if not _shows(sub, Call(["git", *words], call.state, call.places)):
        return
    given = positional(words, _GREP_VALUED if sub == "grep" else _VALUED)
    patterned = sub == "grep" and not any(word[:2] in ("-e", "-f") for word in words)
    ranges = [word for word in words if word.startswith("-L")]
    for word in [*given[patterned:], *ranges]:
        if not word.startswith(_EXCLUDES):
            _judge(call, word.rpartition(":")[2].rpartition(")")[2])


def _shows(sub: str, call: Call) -> bool:
    patch = call.has("--patch", "--cc", "--patch-with-stat") or call.has_letter("puLc", "SGn")
    if sub in _LISTS:
        return patch
    if sub == "cat-file" and call.has_letter("ets"):
        return False  # whether there is such a file, its type or size
    blob = any(":" in word and not word.startswith(_EXCLUDES) for word in call.args)
    return sub in _PRINTS and (patch or blob or not call.has(*_ONLY_NAMES))


def _editor_reads(call: Call) -> None:
    """A file to edit, or one that a command of the editor names."""
    read = call.state.stdin if call.name in ("ed", "ex", "red") else None
    for word in [*call.words, read or ""]:
        for piece in re.split(_BETWEEN, word):
            _judge(call, piece)


def _container_reads(call: Call) -> None:
    """`docker run --env-file .env`; compose reads that file by itself."""
    if call.subs[:1] != ["compose"] and {"run", "create", "exec"}.intersection(call.subs[:2]):
        for path in call.values("--env-file"):
            _judge(call, path)


def _jq_names(call: Call) -> bool:
    found = [name for word in call.args for match in re.findall(_JQ_NAMED, word) for name in match]
    return any(map(is_secret, filter(None, found)))


_TABLE = """\
credentials:
    git (git reads)
    vim|vi|nvim|view|vimdiff|ex|ed|red|nano|pico|emacs|emacsclient|micro|hx|kak|joe (editor reads)
    docker|podman|nerdctl (container reads)
credentials: it prints a secret of the environment
    jq|yq|gojq|jaq (jq names)
"""
RULES = rules(
    _TABLE,
    *(_git_reads, _editor_reads, _container_reads, _jq_names),
)
