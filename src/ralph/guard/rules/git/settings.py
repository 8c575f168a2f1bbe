"""Rules about git's settings and remotes, what it would run, and the repository's host."""

from ralph.guard.rules.git.keys import forces, redirects, runs
from ralph.guard.rules.git.local import not_dry
from ralph.guard.rules.rule import Call, positional, rules
from ralph.guard.shell.text import ANY, names

_READS = ("--get", "--list", "--get-all", "--get-regexp", "--show-origin", "-l")
_CONFIG_VALUED = names("-f --file --blob --type -t --default --comment --value")
_REFUSED = names("--force -f --hard --amend --no-verify clean filter-branch --mirror")


def _settings(call: Call) -> list[tuple[str, str]]:
    """The keys and values after `-c`; a value that `--config-env` takes from a variable is not
    known."""
    words = call.words[: call.words.index(call.subs[0])] if call.subs else call.words
    before = Call(["git", *words], call.state, call.places)
    found = before.values("-c")
    found += [f"{text.partition('=')[0]}={ANY}" for text in before.values("--config-env")]
    if call.subs[:1] == ["clone"]:
        found += [*call.values("-c"), *call.values("--config")]
    pairs = [word.partition("=") for word in found]
    return [(key.lower(), value) for key, _, value in pairs]


def _writes_alias(call: Call) -> bool:
    words = positional(call.words[call.words.index("config") + 1 :], _CONFIG_VALUED)
    words = words[1:] if words[:1] in (["set"], ["add"]) else words
    return len(words) > 1 and not call.has(*_READS) and runs(words[0], words[1])


def _other_hooks(call: Call) -> bool:
    named = [key for key, _ in _settings(call)]
    if len(call.subs) > 2 or call.has("--unset", "--unset-all"):  # else it is only read
        named += [] if call.has(*_READS) else [word.lower() for word in call.subs]
    return "core.hookspath" in named


def _redirects_remote(call: Call) -> bool:
    """`git config remote.origin.url ADDRESS`"""
    words = [word for word in call.subs[1:] if word not in ("set", "add")]
    return (len(words) > 1 or call.has("--unset")) and any(map(redirects, words[:1]))


def _shortens_danger(call: Call) -> bool:
    """`git config alias.x 'push --force'`"""
    named = any(word.startswith("alias.") for word in call.subs[1:3])
    return named and not _REFUSED.isdisjoint(" ".join(call.subs[2:]).split())


def _starts_workflow(call: Call) -> bool:
    dispatched = any(word.endswith("/dispatches") for word in call.subs)
    return call.subs[:2] == ["workflow", "run"] or (call.subs[:1] == ["api"] and dispatched)


_TABLE = """\
evasion: git would run a command
    git grep --open-files-in-pager -O/ef
git-history: it replaces the repository's hooks
    git (other hooks)
git-history: it changes where the repository is pushed to
    git remote set-url
git-history strict: it changes where the repository is pushed to
    git remote remove|rm|rename|set-head|prune
git-history: it deletes files that git does not know
    git clean (cleans unasked)
git-history: it changes where the repository is pushed to
    git config (redirects remote)
git-history: it gives a short name to what is refused
    git config (shortens danger)
evasion: git would run a command
    git clone|fetch|pull|push|ls-remote|archive|remote|submodule (other end)
    git difftool --extcmd -x
force-push: a setting makes the push a forced one
    git push (forces by setting)
git-history: it pushes to where a setting says
    git push|send-pack (leads elsewhere)
evasion: git would run programs from there
    git (_exec path)
cloud: it starts a workflow, which may deploy or publish; leave that to a person
    gh (_starts workflow)
git-history: it turns the repository's checks on or off
    gh workflow disable|enable
git-history: it passes over the repository's checks
    gh pr merge --admin
evasion: a setting of git would run a command
    git (runs by setting)
persistence: an alias or a setting of git would run a command later
    git config (writes alias)
guard: it changes git's settings outside the project; leave out --global
    git config --global --system (writes config)
git-history: it deletes the repository or its releases
    gh repo|release|run|cache|ssh-key|gpg-key delete|archive|rename|delete-asset
git-history: it changes the remote repository
    gh repo edit
git-history: it deletes on the remote
    gh api (_changes)
"""
RULES = rules(
    _TABLE,
    *(_other_hooks, _redirects_remote, _shortens_danger, _writes_alias),
    cleans_unasked=lambda c: ("clean.requireforce", "false") in _settings(c) and not_dry(c),
    # A program that is named for the other end may be run on this one.
    other_end=lambda c: (
        c.has("--upload-pack", "--receive-pack", "--exec") or c.begins("ext::", "fd::")
    ),
    forces_by_setting=lambda c: any(forces(key, value) for key, value in _settings(c)),
    leads_elsewhere=lambda c: any(redirects(key) for key, _ in _settings(c)),
    _exec_path=lambda c: c.begins("--exec-path="),
    _starts_workflow=_starts_workflow,
    runs_by_setting=lambda c: any(
        runs(key, value) or key.startswith("alias.") for key, value in _settings(c)
    ),
    writes_config=lambda c: not c.has(*_READS) and len(c.subs) > 2,
    _changes=lambda c: (c.value("-X", "--method") or "").upper() in ("DELETE", "PUT", "PATCH"),
)
