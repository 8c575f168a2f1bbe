"""Rules about git's settings and remotes, what it would run, and the repository's host."""

from ralph.core.danger_git_keys import forces, redirects, runs
from ralph.core.danger_git_local import not_dry
from ralph.core.danger_rule import (
    CLOUD,
    EVASION,
    GIT,
    GUARD,
    PERSISTENCE,
    PUSH,
    STRICT,
    Call,
    Rule,
    positional,
)
from ralph.core.shell_text import ANY, names

_READS = ("--get", "--list", "--get-all", "--get-regexp", "--show-origin", "-l")
_CONFIG_VALUED = names("-f --file --blob --type -t --default --comment --value")


def _settings(call: Call) -> list[tuple[str, str]]:
    """What `-c key=value` sets; a value that `--config-env` takes from a variable is not known."""
    words = call.words[: call.words.index(call.subs[0])] if call.subs else call.words
    before = Call(["git", *words], call.state, call.places)
    found = before.values("-c")
    found += [f"{text.partition('=')[0]}={ANY}" for text in before.values("--config-env")]
    if call.subs[:1] == ["clone"]:
        found += [*call.values("-c"), *call.values("--config")]
    pairs = [word.partition("=") for word in found]
    return [(key.lower(), value) for key, _, value in pairs]


def _written(call: Call) -> tuple[str, str]:
    """The key and the value that `git config` writes; empty where it does not."""
    words = positional(call.words[call.words.index("config") + 1 :], _CONFIG_VALUED)
    words = words[1:] if words[:1] in (["set"], ["add"]) else words
    return (words[0].lower(), words[1]) if len(words) > 1 and not call.has(*_READS) else ("", "")


def _runs_by_setting(call: Call) -> bool:
    return any(runs(key, value) or key.startswith("alias.") for key, value in _settings(call))


def _other_hooks(call: Call) -> bool:
    named = [key for key, _ in _settings(call)]
    if len(call.subs) > 2 or call.has("--unset", "--unset-all"):  # else it is only read
        named += [] if call.has(*_READS) else [word.lower() for word in call.subs]
    return "core.hookspath" in named


def _forces_by_setting(call: Call) -> bool:
    return any(forces(key, value) for key, value in _settings(call))


def _leads_elsewhere(call: Call) -> bool:
    return any(redirects(key) for key, _ in _settings(call))


def _writes_config(call: Call) -> bool:
    return not call.has(*_READS) and len(call.subs) > 2


def _writes_alias(call: Call) -> bool:
    return runs(*_written(call))


def _redirects_remote(call: Call) -> bool:
    """`git config remote.origin.url ADDRESS`"""
    words = [word for word in call.subs[1:] if word not in ("set", "add")]
    return redirects(words[0] if len(words) > 1 or call.has("--unset") else "")


def _shortens_danger(call: Call) -> bool:
    """`git config alias.x 'push --force'`"""
    words = " ".join(call.subs[2:]).split()
    named = any(word.startswith("alias.") for word in call.subs[1:3])
    return named and not _REFUSED_WORDS.isdisjoint(words)


_REFUSED_WORDS = frozenset(
    {"--force", "-f", "--hard", "--amend", "--no-verify", "clean", "filter-branch", "--mirror"}
)


def _cleans_unasked(call: Call) -> bool:
    return ("clean.requireforce", "false") in _settings(call) and not_dry(call)


def _other_end(call: Call) -> bool:
    """A program that is named for the other end may be run on this one."""
    flags = ("--upload-pack", "--receive-pack", "--exec")
    named = any(call.has(flag) for flag in flags)
    return named or any(word.startswith(("ext::", "fd::")) for word in call.words)


RULES = (
    Rule(
        EVASION,
        "git would run a command",
        "git",
        sub="grep",
        flags="--open-files-in-pager",
        letters="O",
        valued="ef",
    ),
    Rule(GIT, "it replaces the repository's hooks", "git", test=_other_hooks),
    Rule(
        GIT,
        "it changes where the repository is pushed to",
        "git",
        sub="remote set-url",
    ),
    Rule(
        GIT,
        "it changes where the repository is pushed to",
        "git",
        sub="remote remove|rm|rename|set-head|prune",
        level=STRICT,
    ),
    Rule(GIT, "it deletes files that git does not know", "git", sub="clean", test=_cleans_unasked),
    Rule(
        GIT,
        "it changes where the repository is pushed to",
        "git",
        sub="config",
        test=_redirects_remote,
    ),
    Rule(
        GIT,
        "it gives a short name to what is refused",
        "git",
        sub="config",
        test=_shortens_danger,
    ),
    Rule(
        EVASION,
        "git would run a command",
        "git",
        sub="clone|fetch|pull|push|ls-remote|archive|remote|submodule",
        test=_other_end,
    ),
    Rule(
        EVASION,
        "git would run a command",
        "git",
        sub="difftool",
        flags="--extcmd",
        letters="x",
    ),
    Rule(PUSH, "a setting makes the push a forced one", "git", sub="push", test=_forces_by_setting),
    Rule(
        GIT, "it pushes to where a setting says", "git", sub="push|send-pack", test=_leads_elsewhere
    ),
    Rule(
        EVASION,
        "git would run programs from there",
        "git",
        test=lambda c: any(word.startswith("--exec-path=") for word in c.words),
    ),
    Rule(
        CLOUD,
        "it starts a workflow, which may deploy or publish; leave that to a person",
        "gh",
        test=lambda c: (
            c.subs[:2] == ["workflow", "run"]
            or (c.subs[:1] == ["api"] and any(word.endswith("/dispatches") for word in c.subs))
        ),
    ),
    Rule(GIT, "it turns the repository's checks on or off", "gh", sub="workflow disable|enable"),
    Rule(GIT, "it passes over the repository's checks", "gh", sub="pr merge", flags="--admin"),
    Rule(EVASION, "a setting of git would run a command", "git", test=_runs_by_setting),
    Rule(
        PERSISTENCE,
        "an alias or a setting of git would run a command later",
        "git",
        sub="config",
        test=_writes_alias,
    ),
    Rule(
        GUARD,
        "it changes git's settings outside the project; leave out --global",
        "git",
        sub="config",
        flags="--global --system",
        test=_writes_config,
    ),
    Rule(
        GIT,
        "it deletes the repository or its releases",
        "gh",
        sub="repo|release|run|cache|ssh-key|gpg-key delete|archive|rename|delete-asset",
    ),
    Rule(GIT, "it changes the remote repository", "gh", sub="repo edit"),
    Rule(
        GIT,
        "it deletes on the remote",
        "gh",
        sub="api",
        test=lambda c: (c.value("-X", "--method") or "").upper() in ("DELETE", "PUT", "PATCH"),
    ),
)
