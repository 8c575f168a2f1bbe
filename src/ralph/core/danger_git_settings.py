"""Rules about git's settings and remotes, what it would run, and the repository's host."""

from ralph.core.danger_git_local import not_dry
from ralph.core.danger_rule import EVASION, GIT, GUARD, PERSISTENCE, STRICT, Call, Rule

_COMMAND_KEYS: tuple[str, ...] = (
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "sequence.editor",
)


_COMMAND_KEYS += (
    "diff.external",
    "core.askpass",
    "credential.helper",
    "core.gitproxy",
    "gpg.program",
)


_HARMLESS = frozenset(
    {"", "cat", "less", "true", "false", ":", "vi", "vim", "nano", "store", "cache"}
)


_WRITES = ("--get", "--list", "-l", "--get-all", "--get-regexp", "get", "list", "--show-origin")


def _settings(call: Call) -> list[tuple[str, str]]:
    """What `-c key=value` sets."""
    words = call.words[: call.words.index(call.subs[0])] if call.subs else call.words
    found = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "-c"]
    found += [word[2:] for word in words if word.startswith("-c") and "=" in word and len(word) > 2]
    if call.subs[:1] == ["clone"]:
        found += [text for text in (call.value("-c"), call.value("--config")) if text]
    pairs = [word.partition("=") for word in found]
    return [(key.lower(), value) for key, _, value in pairs]


def _runs_by_setting(call: Call) -> bool:
    return any(
        value[:1] == "!"
        or key.startswith("alias.")
        or (key.startswith(_COMMAND_KEYS) and value not in _HARMLESS)
        for key, value in _settings(call)
    )


def _other_hooks(call: Call) -> bool:
    named = [key for key, _ in _settings(call)] + [word.lower() for word in call.subs]
    return "core.hookspath" in named and not call.has(*_WRITES[:5])


def _writes_config(call: Call) -> bool:
    reads = call.has("--get", "--list", "--get-all", "--get-regexp", "--show-origin", "-l")
    return not reads and len(call.subs) > 2


def _writes_alias(call: Call) -> bool:
    return any(word[:1] == "!" for word in call.subs[2:]) or (
        len(call.subs) > 2
        and call.subs[1].lower().startswith(_COMMAND_KEYS)
        and call.subs[2] not in _HARMLESS
    )


def _redirects_remote(call: Call) -> bool:
    """`git config remote.origin.url ADDRESS`"""
    words = [word for word in call.subs[1:] if word not in ("set", "add")]
    key = words[0].lower() if len(words) > 1 or call.has("--unset") else ""
    remote = key.startswith("remote.") and key.endswith(("url", "mirror", "push"))
    return remote or (key.startswith("url.") and key.endswith("insteadof"))


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
