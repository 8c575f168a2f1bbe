"""Rules about local history: commits, branches, stashes and work that is not committed yet.

A run keeps what was not committed when it began, and git's reflog what was. So most of this is
refused by the level `strict` only, or where nothing was kept.
"""

from ralph.guard.paths import FREE_PLACE
from ralph.guard.rules.git.remote import is_shared, may_be_a_flag, whole_tree
from ralph.guard.rules.rule import Call, positional, rules
from ralph.guard.shell.text import ANY, names, unknown

_FETCHED = ("refs/remotes/", "refs/tags/", "refs/pull/")
# What builds and tools make again, by the first directory below the project that it is in.
_MADE_AGAIN = names(
    "build dist out target bin obj coverage htmlcov node_modules .next .nuxt .cache .turbo"
    " .parcel-cache .pytest_cache .mypy_cache .ruff_cache .tox .nox .gradle __pycache__ _build"
    " .venv venv site public .output .svelte-kit DerivedData cmake-build-debug cmake-build-release"
    " tmp logs"
)


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
    elif call.subs[0] == "branch" and (call.has_letter("mM", "tu") or call.has("--move")):
        call.state.branch = "".join(call.subs[-1:])


def _of_worktree(call: Call) -> bool:
    staged = call.has("--staged") or call.has_letter("S", "s")
    return whole_tree(call) and (not staged or call.has("--worktree") or call.has_letter("W", "s"))


def not_dry(call: Call) -> bool:
    """True if `git clean` deletes, and does not only tell."""
    return not (call.has("--dry-run") or call.has_letter("n", "e"))


def _forced_delete(call: Call) -> bool:
    delete = call.has("--delete") or call.has_letter("d", "tu")
    return call.has_letter("DMC", "tu") or (
        (call.has("--force") or call.has_letter("f", "tu")) and (delete or bool(call.subs[1:]))
    )


def _deletes_shared(call: Call) -> bool:
    deletes = call.has_letter("dD", "tu") or call.has("--delete")
    return deletes and _forced_delete(call) and any(map(is_shared, call.subs[1:]))


def _forces_fetch(call: Call) -> bool:
    """A branch of one's own is overwritten by one that was fetched."""
    forced = call.has("--force") or call.has_letter("f", "jo")
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


_TABLE = """\
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
"""
RULES = rules(
    _TABLE,
    *(_checks_out, _renames, _touches_kept, _forgets, may_be_a_flag, not_dry, _cleans_more),
    *(whole_tree, _of_worktree, _forced_delete, _deletes_shared, _forces_fetch),
    sets_ref=lambda c: len(c.subs) > 2 or c.has("--delete") or c.has_letter("d"),
    moves_shared=lambda c: any(
        word.startswith("refs/heads/") and is_shared(word) for word in c.subs[1:2]
    ),
    # Work trees elsewhere may be somebody else's.
    tree_outside=lambda c: any(c.kind(path) != FREE_PLACE for path in c.subs[2:]),
)
