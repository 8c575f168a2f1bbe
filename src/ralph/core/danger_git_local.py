"""Rules about local history: commits, branches, stashes and work that is not committed yet.

A run keeps what was not committed when it began, and git's reflog what was. So most of this is
refused by the level `strict` only, or where nothing was kept.
"""

from ralph.core.danger_branches import checks_out, deletes_shared, is_shared, renames
from ralph.core.danger_git import may_be_a_flag, whole_tree
from ralph.core.danger_paths import FREE_PLACE
from ralph.core.danger_rule import GIT, GUARD, STRICT, Call, Rule, positional
from ralph.core.shell_text import ANY, names, unknown

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Callable

_FETCHED = ("refs/remotes/", "refs/tags/", "refs/pull/")
# What builds and tools make again, by the first directory below the project that it is in.
_MADE_AGAIN = names(
    "build dist out target bin obj coverage htmlcov node_modules .next .nuxt .cache .turbo"
    " .parcel-cache .pytest_cache .mypy_cache .ruff_cache .tox .nox .gradle __pycache__ _build"
    " .venv venv site public .output .svelte-kit DerivedData cmake-build-debug cmake-build-release"
    " tmp logs"
)


def _of_worktree(call: Call) -> bool:
    staged = call.has("--staged") or call.has_letter("S", "s")
    return whole_tree(call) and (not staged or call.has("--worktree") or call.has_letter("W", "s"))


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


def _sets_ref(call: Call) -> bool:
    return len(call.subs) > 2 or call.has("--delete") or call.has_letter("d")


def _cleans_more(call: Call) -> bool:
    """Whether `git clean` deletes more than what builds make again."""
    named = positional(call.words, ["-e", "--exclude", *"-C", "-c"])[1:]
    paths = [path.strip("/").removeprefix("./") for path in named]
    made = [path for path in paths if _MADE_AGAIN & {*path.split("/")} and ".." not in path]
    return not_dry(call) and (not paths or len(made) < len(paths))


def _tree_outside(call: Call) -> bool:
    """Work trees elsewhere may be somebody else's."""
    places, cwd = call.places, call.state.cwd
    return any(places.kind(path, cwd) != FREE_PLACE for path in call.subs[2:])


def _deletes_shared(call: Call) -> bool:
    deletes = call.has_letter("dD", "tu") or call.has("--delete")
    return deletes and _forced_delete(call) and deletes_shared(call)


def _touches_kept(call: Call) -> bool:
    """Whether it may change a ref below refs/ralph, by its name, a pattern, or one nobody knows."""
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


def _moves_shared(call: Call) -> bool:
    names = [word for word in call.subs[1:2] if word.startswith("refs/heads/")]
    return any(map(is_shared, names))


def _local(
    why: str, sub: str, *, test: "Callable[[Call], bool] | None" = None, **given: str
) -> Rule:
    """A rule that only `strict` has."""
    return Rule(GIT, why, "git", sub=sub, test=test, level=STRICT, **given)


_LOSES = "it throws away changes that were not committed"
_LOSES_ALL = "it throws away every change in the tree; name the files"
_BY_HAND = "it changes a reference by hand"
RULES = (
    Rule(GIT, "", "git", sub="checkout|switch", test=checks_out),
    Rule(GIT, "", "git", sub="branch|symbolic-ref", test=renames),
    Rule(
        GUARD,
        "it may change what Ralph keeps; name the refs",
        "git",
        sub="update-ref|fetch|pull|push",
        test=_touches_kept,
    ),
    Rule(GIT, "it deletes the last way back", "git", test=_forgets),
    _local("it moves a branch", "checkout|switch", letters="BC", valued="bc"),
    _local("it rewrites the last commit; make a new one", "commit", flags="--amend"),
    _local(f"{_LOSES}; git stash keeps them", "reset", flags="--hard"),
    _local(
        "nobody can tell whether it is --hard; write the words out",
        "reset|clean|rebase|checkout|branch",
        test=may_be_a_flag,
    ),
    _local(
        "it deletes files that git does not know; delete them by name",
        "clean",
        flags="--force",
        letters="f",
        valued="e",
        test=not_dry,
    ),
    Rule(
        GIT,
        "it deletes files that git does not know; name folders that a build makes again",
        "git",
        sub="clean",
        flags="--force",
        letters="f",
        valued="e",
        test=_cleans_more,
    ),
    _local(_LOSES_ALL, "checkout", test=whole_tree),
    _local(_LOSES, "checkout", flags="--force", letters="f", valued="bB"),
    _local(_LOSES, "switch", flags="--force --discard-changes", letters="f", valued="cC"),
    _local(_LOSES_ALL, "restore", test=_of_worktree),
    _local(
        "it rewrites commits",
        "rebase",
        flags="--onto --interactive --root --exec",
        letters="ix",
    ),
    _local(_BY_HAND, "update-ref"),
    Rule(GIT, "others share this branch", "git", sub="update-ref", test=_moves_shared),
    _local(_BY_HAND, "symbolic-ref", test=_sets_ref),
    _local("it throws away stashed work", "stash drop|clear"),
    _local("it deletes or moves a branch, merged or not", "branch", test=_forced_delete),
    Rule(GIT, "others share this branch", "git", sub="branch", test=_deletes_shared),
    _local(
        "it deletes or replaces a tag", "tag", flags="--delete --force", letters="df", valued="mFu"
    ),
    _local(
        "it throws away a work tree with its changes",
        "worktree remove",
        flags="--force",
        letters="f",
    ),
    Rule(
        GIT,
        "it throws away a work tree outside the project, with its changes",
        "git",
        sub="worktree remove",
        flags="--force",
        letters="f",
        test=_tree_outside,
    ),
    _local(
        "it throws away a submodule's changes", "submodule deinit", flags="--force", letters="f"
    ),
    _local(_LOSES, "reset|read-tree", flags="--merge --reset"),
    _local(_LOSES, "checkout-index", flags="--force", letters="f"),
    _local("it overwrites a branch; fetch without a target", "fetch|pull", test=_forces_fetch),
)
