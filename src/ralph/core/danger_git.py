"""Rules about git: nothing that was committed is lost, nothing that was pushed is replaced."""

from ralph.core.danger_files import judge_change
from ralph.core.danger_rule import (
    EXFILTRATION,
    FILES,
    GIT,
    GUARD,
    PUSH,
    Call,
    Rule,
)
from ralph.core.shell_text import unknown


def _refspec(call: Call) -> bool:
    """`+branch` is a force push, `:branch` deletes."""
    return any(word[:1] in ("+", ":") and len(word) > 1 for word in call.subs[1:])


def _may_be_a_flag(call: Call) -> bool:
    """A word that nobody knows may be --force."""
    return any(unknown(word[:1]) for word in call.words)


def _to_an_address(call: Call) -> bool:
    remote = call.value("--repo") or (call.subs[1] if len(call.subs) > 1 else "")
    return "://" in remote or ("@" in remote and ":" in remote)


def _adds_remote(call: Call) -> bool:
    call.state.added_remote = True
    return False


def _to_a_new_remote(call: Call) -> bool:
    return call.state.added_remote and call.subs[1:2] not in ([], ["origin"])


def _whole_tree(call: Call) -> bool:
    return any(path in (".", "./", ":/", "*", "./*", ":/*", "..") for path in call.subs[1:])


def _of_worktree(call: Call) -> bool:
    staged = call.has("--staged") or call.has_letter("S", "s")
    return _whole_tree(call) and (not staged or call.has("--worktree") or call.has_letter("W", "s"))


def not_dry(call: Call) -> bool:
    """Whether `git clean` deletes, and does not only tell."""
    return not (call.has("--dry-run") or call.has_letter("n", "e"))


def _forced_delete(call: Call) -> bool:
    delete = call.has("--delete") or call.has_letter("d", "tu")
    return call.has_letter("DMC", "tu") or (
        (call.has("--force") or call.has_letter("f", "tu")) and (delete or bool(call.subs[1:]))
    )


def _forces_fetch(call: Call) -> bool:
    """A branch of one's own is overwritten by one that was fetched."""
    forced = call.has("--force") or call.has_letter("f", "jo")
    for word in call.subs[2:]:
        source, _, target = word.partition(":")
        if (forced or source[:1] == "+") and target and not target.startswith(_FETCHED):
            return True
    return False


_FETCHED = ("refs/remotes/", "refs/tags/", "refs/pull/")


def _removes_steering(call: Call) -> bool:
    if call.has("--cached"):
        return False
    places, cwd = call.places, call.state.cwd
    return any(places.steers(p, cwd) or places.may_steer(p, cwd) for p in call.subs[1:])


def _everything(call: Call) -> bool:
    return _whole_tree(call) and not call.has("--cached")


def _sets_ref(call: Call) -> bool:
    return len(call.subs) > 2 or call.has("--delete") or call.has_letter("d")


def _writes_output(call: Call) -> bool:
    path = call.value("--output") or (call.value("-o") if call.subs[:1] == ["archive"] else None)
    if path:
        judge_change(path, call.places, call.state.cwd, "overwrites")
    return False


RULES = (
    Rule(FILES, "", "git", test=_writes_output),
    Rule(GIT, "it moves a branch", "git", sub="checkout|switch", letters="BC", valued="bc"),
    Rule(GIT, "it rewrites the last commit; make a new one", "git", sub="commit", flags="--amend"),
    Rule(
        GIT,
        "it skips the checks of the repository's hooks",
        "git",
        sub="commit",
        flags="--no-verify",
        letters="n",
        valued="mFCctSu",
    ),
    Rule(
        GIT,
        "it skips the checks of the repository's hooks",
        "git",
        sub="push|merge|am|rebase|cherry-pick",
        flags="--no-verify",
    ),
    Rule(
        PUSH,
        "a force push replaces what others have; push a new commit",
        "git",
        sub="push",
        flags="--force --force-with-lease --force-if-includes",
        letters="f",
        valued="o",
    ),
    Rule(
        PUSH,
        "it replaces or deletes branches of the remote",
        "git",
        sub="push",
        flags="--mirror --delete --prune",
        letters="d",
        valued="o",
    ),
    Rule(PUSH, "+ and : before a branch force or delete it", "git", sub="push", test=_refspec),
    Rule(
        PUSH,
        "nobody can tell whether it is a force push; write the words out",
        "git",
        sub="push",
        test=_may_be_a_flag,
    ),
    Rule(
        EXFILTRATION,
        "it pushes to an address; push to a remote of the repository",
        "git",
        sub="push",
        test=_to_an_address,
    ),
    Rule(
        EXFILTRATION,
        "it pushes to a remote that was added just now",
        "git",
        sub="push",
        test=_to_a_new_remote,
    ),
    Rule(EXFILTRATION, "", "git", sub="remote add", test=_adds_remote),
    Rule(
        GIT,
        "it throws away changes that were not committed; git stash keeps them",
        "git",
        sub="reset",
        flags="--hard",
    ),
    Rule(
        GIT,
        "nobody can tell whether it is --hard; write the words out",
        "git",
        sub="reset|clean|rebase|checkout|branch",
        test=_may_be_a_flag,
    ),
    Rule(
        GIT,
        "it deletes files that git does not know; delete them by name",
        "git",
        sub="clean",
        flags="--force",
        letters="f",
        valued="e",
        test=not_dry,
    ),
    Rule(
        GIT,
        "it throws away every change in the tree; name the files",
        "git",
        sub="checkout",
        test=_whole_tree,
    ),
    Rule(
        GIT,
        "it throws away changes that were not committed",
        "git",
        sub="checkout",
        flags="--force",
        letters="f",
        valued="bB",
    ),
    Rule(
        GIT,
        "it throws away changes that were not committed",
        "git",
        sub="switch",
        flags="--force --discard-changes",
        letters="f",
        valued="cC",
    ),
    Rule(
        GIT,
        "it throws away every change in the tree; name the files",
        "git",
        sub="restore",
        test=_of_worktree,
    ),
    Rule(
        GIT,
        "it rewrites commits",
        "git",
        sub="rebase",
        flags="--onto --interactive --root --exec",
        letters="ix",
    ),
    Rule(
        GIT,
        "it rewrites or deletes history",
        "git",
        sub="filter-branch|filter-repo|replace|fast-import|prune",
    ),
    Rule(GIT, "it rewrites or deletes history", "git-filter-repo bfg git-filter-branch"),
    Rule(GIT, "it changes a reference by hand", "git", sub="update-ref"),
    Rule(GIT, "it changes a reference by hand", "git", sub="symbolic-ref", test=_sets_ref),
    Rule(GIT, "it deletes the last way back", "git", sub="reflog expire|delete"),
    Rule(GIT, "it deletes the last way back", "git", sub="gc", flags="--prune"),
    Rule(GIT, "it throws away stashed work", "git", sub="stash drop|clear"),
    Rule(
        GIT, "it deletes or moves a branch, merged or not", "git", sub="branch", test=_forced_delete
    ),
    Rule(
        GIT,
        "it deletes or replaces a tag",
        "git",
        sub="tag",
        flags="--delete --force",
        letters="df",
        valued="mFu",
    ),
    Rule(
        GIT,
        "it throws away a work tree with its changes",
        "git",
        sub="worktree remove",
        flags="--force",
        letters="f",
    ),
    Rule(
        GIT,
        "it throws away a submodule's changes",
        "git",
        sub="submodule deinit",
        flags="--force",
        letters="f",
    ),
    Rule(
        GIT,
        "it throws away changes that were not committed",
        "git",
        sub="reset|read-tree",
        flags="--merge --reset",
    ),
    Rule(
        GIT,
        "it throws away changes that were not committed",
        "git",
        sub="checkout-index",
        flags="--force",
        letters="f",
    ),
    Rule(
        GIT,
        "it overwrites a branch; fetch without a target",
        "git",
        sub="fetch|pull",
        test=_forces_fetch,
    ),
    Rule(
        GUARD,
        "it removes what steers Ralph or the agent's host",
        "git",
        sub="rm|mv",
        test=_removes_steering,
    ),
    Rule(FILES, "it deletes the whole project", "git", sub="rm", test=_everything),
)
