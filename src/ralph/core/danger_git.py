"""Rules about git: what was pushed is not replaced, no check is skipped, no way back is lost."""

from ralph.core.danger_branches import forces_shared
from ralph.core.danger_files import judge_change
from ralph.core.danger_rule import (
    EXFILTRATION,
    FILES,
    GIT,
    GUARD,
    PUSH,
    STRICT,
    Call,
    Rule,
)
from ralph.core.shell_text import names, unknown

_PUSHES = "push|send-pack|http-push"
_FORCES = "--force --force-with-lease --force-if-includes"


def _forced_refspec(call: Call) -> bool:
    """`git push origin +branch`"""
    forced = any(word[:1] == "+" and len(word) > 1 for word in call.subs[1:])
    return forced and (call.strict or forces_shared(call))


def _deletes(call: Call) -> bool:
    """`git push origin :branch`"""
    return any(word[:1] == ":" and len(word) > 1 for word in call.subs[1:])


def may_be_a_flag(call: Call) -> bool:
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


def whole_tree(call: Call) -> bool:
    """Whether every file is meant."""
    return any(path in (".", "./", ":/", "*", "./*", ":/*", "..") for path in call.subs[1:])


def _removes_steering(call: Call) -> bool:
    if call.has("--cached"):
        return False
    places, cwd = call.places, call.state.cwd
    return any(places.steers(p, cwd) or places.may_steer(p, cwd) for p in call.subs[1:])


def _everything(call: Call) -> bool:
    return whole_tree(call) and not call.has("--cached")


def _writes_output(call: Call) -> bool:
    path = call.value("--output") or (call.value("-o") if call.subs[:1] == ["archive"] else None)
    if path:
        judge_change(path, call.places, call.state.cwd, "overwrites")
    return False


def _skips(call: Call) -> bool:
    return bool(call.state.value("SKIP"))


def _takes_checks(call: Call) -> bool:
    """`mv .husky off`, `chmod -x .git/hooks/pre-commit`"""
    if call.name == "chmod" and not any("-x" in word or word[:1] == "0" for word in call.words):
        return False
    paths = (call.places.inner(path, call.state.cwd).split("/") for path in call.args)
    return any(path[0] in _CHECKS or path[:2] == [".git", "hooks"] for path in paths)


_CHECKS = names(".husky .pre-commit-config.yaml lefthook.yml .lefthook.yml .overcommit.yml")
RULES = (
    Rule(
        GIT,
        "it skips the checks of the repository's hooks",
        "git",
        sub="commit|push|merge|rebase",
        test=_skips,
    ),
    Rule(GIT, "it removes the checks of the repository's hooks", "rm mv chmod", test=_takes_checks),
    Rule(
        GIT,
        "it removes the checks of the repository's hooks",
        "pre-commit lefthook husky overcommit",
        sub="uninstall",
    ),
    Rule(FILES, "", "git", test=_writes_output),
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
        sub=_PUSHES,
        flags=_FORCES,
        letters="f",
        valued="o",
        level=STRICT,
    ),
    Rule(
        PUSH,
        "a force push replaces what others have; push a new commit, or name a branch of your own",
        "git",
        sub=_PUSHES,
        flags=_FORCES,
        letters="f",
        valued="o",
        test=forces_shared,
    ),
    Rule(
        PUSH,
        "it replaces or deletes branches of the remote",
        "git",
        sub="push|send-pack|http-push",
        flags="--mirror --delete --prune",
        letters="d",
        valued="o",
    ),
    Rule(PUSH, "+ before a branch forces it", "git", sub=_PUSHES, test=_forced_refspec),
    Rule(PUSH, ": before a branch deletes it there", "git", sub=_PUSHES, test=_deletes),
    Rule(
        PUSH,
        "nobody can tell whether it is a force push; write the words out",
        "git",
        sub="push",
        test=may_be_a_flag,
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
        "it rewrites or deletes history",
        "git",
        sub="filter-branch|filter-repo|replace|fast-import|prune",
    ),
    Rule(GIT, "it rewrites or deletes history", "git-filter-repo bfg git-filter-branch"),
    Rule(GIT, "it deletes the last way back", "git", sub="reflog expire|delete"),
    Rule(GIT, "it deletes the last way back", "git", sub="gc", flags="--prune"),
    Rule(
        GUARD,
        "it removes what steers Ralph or the agent's host",
        "git",
        sub="rm|mv",
        test=_removes_steering,
    ),
    Rule(FILES, "it deletes the whole project", "git", sub="rm", test=_everything),
)
