"""Rules about git and the repository's host: what was pushed is not replaced, no check is skipped,
no way back is lost, and no setting runs a command or leads a push elsewhere.

A run keeps what was not committed when it began, and git's reflog what was. So most of what is
about local history is refused by the level `strict` only, or where nothing was kept.
"""

import re

from ralph.guard.paths import FREE_PLACE
from ralph.guard.rules.files import change
from ralph.guard.rules.rule import Call, positional, rules
from ralph.guard.shell.text import ANY, fits, names, plain, unknown

# Branches that others share: what is pushed there by force, or deleted, is lost for them too.
_SHARED = (
    r"(?:main|master|trunk|dev|develop|development|next|gh-pages|edge|nightly"
    r"|v?\d[\w.]*"  # a version, or a tag
    r"|(?:.*[-_/.])?(?:pre|non)?(?:prod(?:uction)?|live|stag(?:e|ing)|qa|uat)(?:[-_/.].*)?"
    r"|(?:releases?|stable|hotfix|support|version)(?:[-_/.].*)?)"
)
_HERE = frozenset({"HEAD", "@", "@{u}", "@{upstream}", "@{push}"})
_CHECKS = names(".husky .pre-commit-config.yaml lefthook.yml .lefthook.yml .overcommit.yml")
_FETCHED = ("refs/remotes/", "refs/tags/", "refs/pull/")
# What builds and tools make again, by the first directory below the project that it is in.
_MADE_AGAIN = names(
    "build dist out target bin obj coverage htmlcov node_modules .next .nuxt .cache .turbo"
    " .parcel-cache .pytest_cache .mypy_cache .ruff_cache .tox .nox .gradle __pycache__ _build"
    " .venv venv site public .output .svelte-kit DerivedData cmake-build-debug cmake-build-release"
    " tmp logs"
)
_READS = ("--get", "--list", "--get-all", "--get-regexp", "--show-origin", "-l")
_CONFIG_VALUED = names("-f --file --blob --type -t --default --comment --value")
_REFUSED = names("--force -f --hard --amend --no-verify clean filter-branch --mirror")
# Keys whose value is a command, or a file with more settings; `*` is somebody's name.
_RUN = names(
    "core.pager core.editor core.sshcommand core.fsmonitor core.askpass core.gitproxy"
    " core.alternaterefscommand sequence.editor diff.external diff.*.textconv diff.*.command"
    " credential.helper credential.*.helper gpg.program gpg.*.program pager.*"
    " filter.*.clean filter.*.smudge filter.*.process merge.*.driver"
    " mergetool.*.cmd mergetool.*.path difftool.*.cmd difftool.*.path interactive.difffilter"
    " uploadpack.packobjectshook sendemail.smtpserver sendemail.sendmailcmd"
    " remote.*.uploadpack remote.*.receivepack remote.*.vcs trailer.*.command trailer.*.cmd"
    " browser.*.cmd man.*.cmd init.templatedir include.path includeif.*.path"
)
_HARMLESS = names("cat less true false : vi vim nano store cache delta 0 1 yes no on off")
_FAMILIES = frozenset(key.partition(".")[0] for key in _RUN)


def is_shared(branch: str) -> bool:
    """True if others may work on a branch of this name; on one that nobody knows they may."""
    name = branch.removeprefix("refs/").removeprefix("heads/").lower()
    if not name.strip("-@") or not plain(name) or any(c in name for c in "*?[{"):
        return True
    return bool(re.fullmatch(_SHARED, name)) or name.startswith(("tags/", "remotes/", "ralph/"))


def _forces_shared(call: Call) -> bool:
    """True if a forced push goes to a branch that others share, or that is not told."""
    here = call.state.branch or call.where.branch
    targets = []
    for refspec in call.subs[2:]:
        source, colon, target = refspec.removeprefix("+").partition(":")
        name = target if colon else source
        targets.append(here if name in _HERE else name)
    every = call.says("push.default") or call.has("--all", "--tags", "--mirror", "--branches")
    return every or any(map(is_shared, targets or [here]))


def _adds_remote(call: Call) -> None:
    call.state.added_remote = True


def whole_tree(call: Call) -> bool:
    return any(path in (".", "./", ":/", "*", "./*", ":/*", "..") for path in call.subs[1:])


def _takes_checks(call: Call) -> bool:
    """`mv .husky off`, `chmod -x .git/hooks/pre-commit`"""
    if call.name == "chmod" and not any("-x" in word or word[:1] == "0" for word in call.words):
        return False
    paths = (call.where.inner(call.whole(path)).split("/") for path in call.args)
    return any(path[0] in _CHECKS or path[:2] == [".git", "hooks"] for path in paths)


def _checks_out(call: Call) -> None:
    """Remember the branch that is checked out from now on; this refuses nothing."""
    made = call.clustered("b", "") + call.clustered("c", "") + call.values("--create", "--orphan")
    named = made or ([] if "--" in call.words else call.subs[1:2])
    if named:
        call.state.branch = named[0]


def _renames(call: Call) -> None:
    """Remember what the branch is called from now on; this refuses nothing."""
    if call.subs[0] == "symbolic-ref" and len(call.subs) > 2:
        call.state.branch = call.subs[2]
    elif call.subs[0] == "branch" and call.given("--move -m -M/tu"):
        call.state.branch = "".join(call.subs[-1:])


def not_dry(call: Call) -> bool:
    """True if `git clean` deletes, and does not only tell."""
    return not call.given("--dry-run -n/e")


def _forced_delete(call: Call) -> bool:
    named = call.given("--delete -d/tu") or call.subs[1:]
    return bool(call.given("-D -M -C/tu") or (call.given("--force -f/tu") and named))


def _forces_fetch(call: Call) -> bool:
    """A branch of one's own is overwritten by one that was fetched."""
    forced = call.given("--force -f/jo")
    for word in call.subs[2:]:
        source, _, target = word.partition(":")
        if (forced or source[:1] == "+") and target and not target.startswith(_FETCHED):
            return True
    return False


def _cleans_more(call: Call) -> bool:
    """True if `git clean` deletes more than what builds make again."""
    named = positional(call.words, ["-e", "--exclude", *"-C", "-c"])[1:]
    paths = [path.strip("/").removeprefix("./") for path in named]
    made = [path for path in paths if _MADE_AGAIN & {*path.split("/")} and ".." not in path]
    return not_dry(call) and (not paths or len(made) < len(paths))


def _touches_kept(call: Call) -> bool:
    """True if it may change a ref below refs/ralph, by its name, a pattern, or one nobody knows."""
    if call.subs[:1] != ["update-ref"]:
        targets = [word.rpartition(":")[2] for word in call.subs[1:] if ":" in word]
        return any(target.startswith(("refs/*", "refs/ralph")) for target in targets)
    sent = [call.state.stdin or ANY] if call.has("--stdin") else []
    return any("refs/ralph" in text or unknown(text) for text in [*call.words, *sent])


def _forgets(call: Call) -> bool:
    """Settings by which git forgets commits that no branch has."""
    named = [word.lower().partition("=")[0] for word in call.words]
    keys = [word for word in named if word.startswith(("gc.", "core.logallrefupdates"))]
    known = call.has("--get", "--list", "--get-all", "--unset")
    return not known and any("expire" in key or key.startswith("core.") for key in keys)


def runs(key: str, value: str) -> bool:
    """True if a setting makes git run a command, other than one of the usual ones."""
    key = key.lower()
    if value[:1] == "!":
        return True
    if key.partition(".")[0] not in _FAMILIES or not value or value in _HARMLESS:
        return False
    if key.startswith("filter.lfs.") and value.startswith("git-lfs "):
        return False
    return fits(key, *_RUN)


def forces(key: str, value: str) -> bool:
    """True if it makes every push a forced one."""
    key = key.lower()
    return key.startswith("remote.") and (
        (key.endswith(".push") and value[:1] in ("+", ":")) or key.endswith(".mirror")
    )


def redirects(key: str) -> bool:
    """True if it changes where the repository is pushed to."""
    key = key.lower()
    remote = key.startswith("remote.") and key.endswith(("url", "mirror", "push"))
    return remote or (key.startswith("url.") and key.endswith("insteadof"))


def _settings(call: Call) -> list[tuple[str, str]]:
    """The keys and values after `-c`; the value of a variable (`--config-env`) is not known."""
    words = call.words[: call.words.index(call.subs[0])] if call.subs else call.words
    before = Call(["git", *words], call.state)
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


RULES = rules(
    """\
git-history: it skips the checks of the repository's hooks
    git commit|push|merge|rebase (skips)
git-history: it removes the checks of the repository's hooks
    rm|mv|chmod (takes checks)
    pre-commit|lefthook|husky|overcommit uninstall
file-system:
    git (writes output)
git-history: it skips the checks of the repository's hooks
    git commit --no-verify -n/mFCctSu
    git push|merge|am|rebase|cherry-pick --no-verify
force-push strict: a force push replaces what others have; push a new commit
    git push|send-pack|http-push --force --force-with-lease --force-if-includes -f/o
force-push: a force push replaces what others have; push a new commit, or name a branch of your own
    git push|send-pack|http-push --force --force-with-lease --force-if-includes -f/o (forces shared)
force-push: it replaces or deletes branches of the remote
    git push|send-pack|http-push --mirror --delete --prune -d/o
force-push: + before a branch forces it
    git push|send-pack|http-push (forced refspec)
force-push: : before a branch deletes it there
    git push|send-pack|http-push (deletes)
force-push: nobody can tell whether it is a force push; write the words out
    git push (may be a flag)
exfiltration: it pushes to an address; push to a remote of the repository
    git push (to an address)
exfiltration: it pushes to a remote that was added just now
    git push (to a new remote)
exfiltration:
    git remote add (adds remote)
git-history: it rewrites or deletes history
    git filter-branch|filter-repo|replace|fast-import|prune
    git-filter-repo|bfg|git-filter-branch
git-history: it deletes the last way back
    git reflog expire|delete
    git gc --prune
guard: it removes what steers Ralph or the agent's host
    git rm|mv (removes steering)
file-system: it deletes the whole project
    git rm (everything)
git-history:
    git checkout|switch (checks out)
    git branch|symbolic-ref (renames)
guard: it may change what Ralph keeps; name the refs
    git update-ref|fetch|pull|push (touches kept)
git-history: it deletes the last way back
    git (forgets)
git-history strict: it moves a branch
    git checkout|switch -B -C/bc
git-history strict: it rewrites the last commit; make a new one
    git commit --amend
git-history strict: it throws away changes that were not committed; git stash keeps them
    git reset --hard
git-history strict: nobody can tell whether it is --hard; write the words out
    git reset|clean|rebase|checkout|branch (may be a flag)
git-history strict: it deletes files that git does not know; delete them by name
    git clean --force -f/e (not dry)
git-history: it deletes files that git does not know; name folders that a build makes again
    git clean --force -f/e (cleans more)
git-history strict: it throws away every change in the tree; name the files
    git checkout (whole tree)
    git restore (of worktree)
git-history strict: it throws away changes that were not committed
    git checkout --force -f/bB
    git switch --force --discard-changes -f/cC
    git reset|read-tree --merge --reset
    git checkout-index --force -f
git-history strict: it rewrites commits
    git rebase --onto --interactive --root --exec -i -x
git-history strict: it changes a reference by hand
    git update-ref
    git symbolic-ref (sets ref)
git-history: others share this branch
    git update-ref (moves shared)
git-history strict: it throws away stashed work
    git stash drop|clear
git-history strict: it deletes or moves a branch, merged or not
    git branch (forced delete)
git-history: others share this branch
    git branch (deletes shared)
git-history strict: it deletes or replaces a tag
    git tag --delete --force -d -f/mFu
git-history strict: it throws away a work tree with its changes
    git worktree remove --force -f
git-history: it throws away a work tree outside the project, with its changes
    git worktree remove --force -f (tree outside)
git-history strict: it throws away a submodule's changes
    git submodule deinit --force -f
git-history strict: it overwrites a branch; fetch without a target
    git fetch|pull (forces fetch)
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
""",
    *(_takes_checks, _adds_remote, _forces_shared, _checks_out, _renames),
    *(_touches_kept, _forgets, not_dry, _cleans_more, whole_tree, _forced_delete, _forces_fetch),
    *(_other_hooks, _redirects_remote, _writes_alias),
    skips=lambda c: c.state.value("SKIP"),
    may_be_a_flag=lambda c: any(unknown(word[:1]) for word in c.words),  # such as --force
    writes_output=lambda c: change(
        c,
        [*c.values("--output"), *(c.values("-o") if c.subs[:1] == ["archive"] else [])][:1],
        "overwrites",
    ),
    # `git push origin +branch`
    forced_refspec=lambda c: (
        any(word[:1] == "+" and len(word) > 1 for word in c.subs[1:])
        and (c.strict or _forces_shared(c))
    ),
    deletes=lambda c: any(word[:1] == ":" and len(word) > 1 for word in c.subs[1:]),
    to_an_address=lambda c: re.search(
        "://|@.*:|:.*@", c.value("--repo") or "".join(c.subs[1:2]), re.DOTALL
    ),
    to_a_new_remote=lambda c: c.state.added_remote and c.subs[1:2] not in ([], ["origin"]),
    removes_steering=lambda c: (
        not c.has("--cached")
        and any(c.where.steers(p) or c.where.may_steer(p) for p in map(c.whole, c.subs[1:]))
    ),
    everything=lambda c: whole_tree(c) and not c.has("--cached"),
    of_worktree=lambda c: (
        whole_tree(c) and (c.given("--worktree -W/s") or not c.given("--staged -S/s"))
    ),
    sets_ref=lambda c: len(c.subs) > 2 or c.given("--delete -d"),
    moves_shared=lambda c: any(
        word.startswith("refs/heads/") and is_shared(word) for word in c.subs[1:2]
    ),
    deletes_shared=lambda c: (
        c.given("--delete -d -D/tu") and _forced_delete(c) and any(map(is_shared, c.subs[1:]))
    ),
    # Work trees elsewhere may be somebody else's.
    tree_outside=lambda c: any(c.kind(path) != FREE_PLACE for path in c.subs[2:]),
    cleans_unasked=lambda c: ("clean.requireforce", "false") in _settings(c) and not_dry(c),
    # `git config alias.x 'push --force'`
    shortens_danger=lambda c: (
        any(word.startswith("alias.") for word in c.subs[1:3])
        and not _REFUSED.isdisjoint(" ".join(c.subs[2:]).split())
    ),
    # A program that is named for the other end may be run on this one.
    other_end=lambda c: (
        c.has("--upload-pack", "--receive-pack", "--exec") or c.begins("ext::", "fd::")
    ),
    forces_by_setting=lambda c: any(forces(key, value) for key, value in _settings(c)),
    leads_elsewhere=lambda c: any(redirects(key) for key, _ in _settings(c)),
    _exec_path=lambda c: c.begins("--exec-path="),
    _starts_workflow=lambda c: (
        c.subs[:2] == ["workflow", "run"]
        or (c.subs[:1] == ["api"] and any(word.endswith("/dispatches") for word in c.subs))
    ),
    runs_by_setting=lambda c: any(
        runs(key, value) or key.startswith("alias.") for key, value in _settings(c)
    ),
    writes_config=lambda c: not c.has(*_READS) and len(c.subs) > 2,
    _changes=lambda c: (c.value("-X", "--method") or "").upper() in ("DELETE", "PUT", "PATCH"),
)
