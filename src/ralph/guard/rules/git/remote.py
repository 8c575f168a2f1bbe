"""Rules about git: what was pushed is not replaced, no check is skipped, no way back is lost."""

import re

from ralph.guard.rules.files import change
from ralph.guard.rules.rule import Call, rules
from ralph.guard.shell.text import names, plain, unknown

# Branches that others share: what is pushed there by force, or deleted, is lost for them too.
_SHARED = (
    r"(?:main|master|trunk|dev|develop|development|next|gh-pages|edge|nightly"
    r"|v?\d[\w.]*"  # a version, or a tag
    r"|(?:.*[-_/.])?(?:pre|non)?(?:prod(?:uction)?|live|stag(?:e|ing)|qa|uat)(?:[-_/.].*)?"
    r"|(?:releases?|stable|hotfix|support|version)(?:[-_/.].*)?)"
)
_HERE = frozenset({"HEAD", "@", "@{u}", "@{upstream}", "@{push}"})
_CHECKS = names(".husky .pre-commit-config.yaml lefthook.yml .lefthook.yml .overcommit.yml")


def is_shared(branch: str) -> bool:
    """True if others may work on a branch of this name; on one that nobody knows they may."""
    name = branch.removeprefix("refs/").removeprefix("heads/").lower()
    if not name.strip("-@") or not plain(name) or any(c in name for c in "*?[{"):
        return True
    return bool(re.fullmatch(_SHARED, name)) or name.startswith(("tags/", "remotes/", "ralph/"))


def _forces_shared(call: Call) -> bool:
    """True if a forced push goes to a branch that others share, or that is not told."""
    here = call.state.branch or call.places.where.branch
    targets = []
    for refspec in call.subs[2:]:
        source, colon, target = refspec.removeprefix("+").partition(":")
        name = target if colon else source
        targets.append(here if name in _HERE else name)
    chosen = any("push.default" in word.lower() for word in call.words)
    every = call.has("--all", "--tags", "--mirror", "--branches")
    return chosen or every or any(map(is_shared, targets or [here]))


def _forced_refspec(call: Call) -> bool:
    """`git push origin +branch`"""
    forced = any(word[:1] == "+" and len(word) > 1 for word in call.subs[1:])
    return forced and (call.strict or _forces_shared(call))


def may_be_a_flag(call: Call) -> bool:
    """A word that nobody knows may be --force."""
    return any(unknown(word[:1]) for word in call.words)


def _to_an_address(call: Call) -> bool:
    remote = call.value("--repo") or (call.subs[1] if len(call.subs) > 1 else "")
    return "://" in remote or ("@" in remote and ":" in remote)


def _adds_remote(call: Call) -> None:
    call.state.added_remote = True


def whole_tree(call: Call) -> bool:
    return any(path in (".", "./", ":/", "*", "./*", ":/*", "..") for path in call.subs[1:])


def _removes_steering(call: Call) -> bool:
    places, cwd = call.places, call.state.cwd
    steering = any(places.steers(p, cwd) or places.may_steer(p, cwd) for p in call.subs[1:])
    return steering and not call.has("--cached")


def _writes_output(call: Call) -> None:
    path = call.value("--output") or (call.value("-o") if call.subs[:1] == ["archive"] else None)
    change(call, [path] if path else [], "overwrites")


def _takes_checks(call: Call) -> bool:
    """`mv .husky off`, `chmod -x .git/hooks/pre-commit`"""
    if call.name == "chmod" and not any("-x" in word or word[:1] == "0" for word in call.words):
        return False
    paths = (call.places.inner(path, call.state.cwd).split("/") for path in call.args)
    return any(path[0] in _CHECKS or path[:2] == [".git", "hooks"] for path in paths)


_TABLE = """\
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
"""
RULES = rules(
    _TABLE,
    *(_takes_checks, _writes_output, _forces_shared, _forced_refspec, may_be_a_flag),
    *(_to_an_address, _adds_remote, _removes_steering),
    skips=lambda c: bool(c.state.value("SKIP")),
    deletes=lambda c: any(word[:1] == ":" and len(word) > 1 for word in c.subs[1:]),
    to_a_new_remote=lambda c: c.state.added_remote and c.subs[1:2] not in ([], ["origin"]),
    everything=lambda c: whole_tree(c) and not c.has("--cached"),
)
