"""The files that a run's proofs are about, and that its commits hold (ADR 33)."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict

from ralph.errors import ConfigError, StateError, failing
from ralph.files.digest import digest_of
from ralph.files.safe_open import open_regular
from ralph.files.state_dir import shown_path, writable_dir, write_atomically, writing_state
from ralph.git.checkpoint.files import (
    ENTER,
    Apart,
    FileRestore,
    content,
    index_lines,
)
from ralph.git.growing import GrowingFiles
from ralph.git.repository import (
    LINK,
    NOTHING,
    PINNED,
    Repository,
    TreeChange,
    repository_of_run,
)
from ralph.git.status import CleanLook, TreeStatus, inner_changes, is_checked_out
from ralph.git.uncommitted_text import is_ours
from ralph.git.view import IgnoreRules, View, signature
from ralph.kernel.facts import Proved
from ralph.kernel.findings import PROOF, Finding
from ralph.kernel.ports import Trees
from ralph.kernel.value import replace, value
from ralph.kernel.world import HEAD, OF_GIT, REFS, SETTINGS, Stand
from ralph.text.words import listed

MEMO = "trees.json"  # in the run's directory
_SOON = 2.0  # seconds in which nobody else is likely to change a file
_MOST_RUNS = 20  # that are asked what their gates made
_OUR_REFS = b" refs/ralph/"
_NOT_CHECKED_OUT = (
    "It is not checked out here, so git keeps nothing of them: undo them. (To work on it: git"
    " submodule update --init; with --parallel that is for the setting loop.setup.)"
)


@value
class Memo:
    """The state of the work tree that a run remembers, also after a crash."""

    head: str  # when it began
    tree: str
    inner: tuple[str, ...]  # submodules that a person had changed by then
    left_out: tuple[str, ...] = ()  # files that only gates made
    staged: tuple[str, ...] = ()  # what a person had staged


class GitTrees(Trees):
    """Looks at a work tree. Every path is relative to the top of the repository."""

    def __init__(
        self,
        repository: Repository,
        workspace: str,
        run_dir: str,
        *,
        shared: bool = False,
        mixes: bool = True,
    ) -> None:
        """Branches of a repository that is `shared` with other workers are theirs to move. A run
        that `mixes` commits what a person had not committed and a turn has changed."""
        self.repository, self.view = repository, View(repository, run_dir)
        self.workspace, self.run_dir = os.path.realpath(workspace), os.path.abspath(run_dir)
        self._shared, self._mixes = shared, mixes
        self.growing = GrowingFiles(self.view, self.run_dir)
        self._rules = IgnoreRules(self.view)
        self._memo: Memo | None = None
        self._last: tuple[TreeStatus, str] | None = None  # what was seen, and its tree
        self._stand = Stand()  # the same with what is beside the files
        self._looked = self._held = 0.0  # when that was, and how long it holds
        self._kept: dict[str, bytes] = {}  # refs and settings by their digests
        self._made: dict[tuple[str, ...], str] = {}  # commits' trees by what they were made of
        self._yours: tuple[str, ...] | None = None

    def begin(self, clean: CleanLook | None = None, *, anew: bool = False) -> None:
        """Remember what there is before the first turn; a run that goes on remembers it already,
        unless it begins `anew`. Right after a `clean` look, files need not be read again."""
        self.view.begin()
        known = self._memo = self._remembered()
        if known is not None and not anew:
            self._rules.keep()
            return
        self._memo = None
        if clean is not None and clean.index == signature(self.repository.index):
            tree = self.view.take_clean(clean.seen)
            if tree:
                self._last, self._stand, self._looked = (clean.seen, tree), Stand(tree), clean.when
                self.hold()
        stand = self.look()
        inner = tuple(sorted(inner_changes(self.view)))
        self._rules.remember(self.seen.ignored)
        left_out = known.left_out if known is not None else ()
        self._remember(Memo(stand.head, stand.tree, inner, left_out, self.seen.staged))

    def pin(self) -> None:
        """Write down where the repository is, for a run that goes on."""
        path = os.path.join(self.run_dir, PINNED)
        with writing_state(self.run_dir):
            if not os.path.exists(path):
                write_atomically(path, self.repository.place.text(), 0o600)

    def yours(self) -> tuple[str, ...]:
        """The paths that a person had not committed when the run began, or staged otherwise."""
        if self._yours is None:
            names = self.view.differing(self.memo.head or self.view.empty, self.memo.tree)
            mine, is_ours = sorted({*names, *self.memo.staged}), self.repository.place.is_ours
            self._yours = tuple(path for path in mine if not is_ours(path))
        return self._yours

    # ------------------------------------------------------------ the port

    def hold(self) -> None:
        if self._last is not None:
            self._held = self._looked + _SOON

    def look(self, after: str = "") -> Stand:
        """The work now."""
        held, self._held = time.monotonic() < self._held, 0.0
        refs = self._refs()
        head = refs.partition(b" HEAD\n")[0].decode() if b" HEAD\n" in refs[:80] else ""
        if held:
            tree = self._stand.tree
            seen = self.seen if head == self.seen.head else self._moved(self.seen, head, tree)
        else:
            seen = self.view.look(head)
            tree, self._looked = self.view.tree(seen), time.monotonic()
            if tree != self.view.base:
                seen = self._moved(seen, head, tree)
        before, self._last = self._last, (seen, tree)
        if before is not None and self._memo is not None and before[1] != tree:
            self._tell_apart(before[1], tree, head, by_gate=bool(after))
        on = content(os.path.join(self.repository.place.git_dir, "HEAD")) or b""
        settings = b"\0".join(content(path) or b"" for path in self._settings_files())
        self._stand = Stand(tree, head, digest_of([on, refs], 16), digest_of([settings], 16))
        self._kept |= {self._stand.refs: on + b"\0" + refs, self._stand.settings: settings}
        return self._stand

    def changed(self, since: Stand, now: Stand) -> frozenset[str]:
        """The paths that differ, and what moved beside them."""
        if not since.tree:
            return frozenset(self.view.differing(now.head or self.view.empty, now.tree))
        paths = self.view.differing(since.tree, now.tree) if since.tree != now.tree else []
        return frozenset(paths).difference(self.memo.left_out) | since.moved(now)

    def put_back(self, to: Stand, paths: frozenset[str], kept_as: str) -> str:
        """Put these back as they were, and keep what stood there in `.ralph/reverted`."""
        kept_in = os.path.join(writable_dir(self.workspace, self.run_dir), "reverted", kept_as)
        now = self.look()
        entries = [e for e in self.view.changes(now.tree, to.tree) if e.path in paths]
        files = FileRestore(self.view, self.workspace, self.run_dir, kept_in, Apart())
        moved = False
        message = f"cannot put {listed([e.path for e in entries], 3)} back"
        with failing(message, "Fix that, then: ralph resume", StateError):
            # What was not there goes first: it may be a link where a directory has to be.
            for entry in sorted(entries, key=lambda entry: entry.old_mode != NOTHING):
                if entry.old_mode != NOTHING:
                    files.make_way_above(entry.path)
                if entry.mode != LINK:
                    moved |= files.put_aside(entry.path)
            files.put_back(entries)
        if paths & OF_GIT:
            self._put_git_back(to, now, paths, kept_as)
        staged = self.view.changes(now.tree, to.head or self.view.empty)
        lines = index_lines(entry for entry in staged if entry.path in paths)
        self.repository.run(*ENTER, stdin=lines)
        self.look()
        return shown_path(kept_in, self.workspace) if moved else ""

    def objections(self, stand: Stand) -> tuple[Finding, ...]:
        """Uncommitted work inside submodules, and changes outside the project: in no commit."""
        outside = () if self._mixes else self._outside(stand)
        if outside:
            text = (
                f"Files outside {self._inside} were changed: {listed(outside, 8)}. A"
                f" commit of this project holds only what is below {self._inside}: undo the change."
            )
            return (Finding(PROOF, text, gist=f"outside: {listed(outside)}"),)
        new = sorted({*inner_changes(self.view)}.difference(self.memo.inner))
        if not new:
            return ()
        there = all(is_checked_out(self.view, path) for path in new)
        remedy = "Commit them there, or undo them." if there else _NOT_CHECKED_OUT
        text = f"There are uncommitted changes inside the submodule {listed(new)}. {remedy}"
        return (Finding(PROOF, text, gist=f"submodules: {listed(new)}"),)

    def proved(self, now: float, stand: Stand, gates: tuple[str, ...]) -> Proved | None:
        """The tree of a commit of the work, and the paths that it leaves out."""
        yours, mixed = self._persons(stand)
        tree = self.commit_tree(stand)
        is_there = stand.head and self.repository.tree_of(stand.head) == tree
        return Proved(
            now,
            tree,
            stand,
            stand.head if is_there else "",
            gates,
            left_out=tuple(sorted(self.memo.left_out)),
            yours=yours,
            mixed=mixed,
            hidden=self._rules.hidden(self.seen.ignored),
            outside=self._outside(stand),
        )

    def uncommitted(self, stand: Stand) -> list[str]:
        """Paths that differ from HEAD, without Ralph's, gates' and the user's earlier ones."""
        names = self.view.differing(stand.head or self.view.empty, self.commit_tree(stand))
        return [path for path in names if not is_ours(path)]

    # ------------------------------------------------------------ what is in a commit

    def commit_tree(self, stand: Stand) -> str:
        """The tree that a commit on the stand's HEAD would have."""
        excluded = self._excluded(stand)
        if not excluded:
            return stand.tree
        key = (stand.tree, stand.head, *sorted(excluded))
        if key not in self._made:
            base = stand.head or self.view.empty
            changes = self.view.changes(stand.tree, base)
            entries = {e.path: e.before for e in changes if e.path in excluded}
            made = self.view.edited(stand.tree, entries)
            rest = tuple(each for each in changes if each.path not in excluded)
            self.view.know_changes(made, base, rest)
            self._made = {key: made}
        return self._made[key]

    def _excluded(self, stand: Stand) -> frozenset[str]:
        """Paths that differ from HEAD and are not to be committed."""
        place, prefix = self.repository.place, self._inside
        not_ours = {*self.memo.left_out, *self._persons(stand)[0]}
        return frozenset(
            path
            for path in self.view.differing(stand.head or self.view.empty, stand.tree)
            if path in not_ours or place.is_ours(path) or not path.startswith(prefix)
        )

    @property
    def _inside(self) -> str:
        """The project in its repository; "" where it is all of it."""
        inside = os.path.relpath(self.workspace, self.repository.place.top)
        return "" if inside == "." else f"{inside}/"

    def _outside(self, stand: Stand) -> tuple[str, ...]:
        """The run's uncommitted changes outside of the project."""
        if not self._inside:
            return ()
        yours, ours = {*self.yours()}, self.repository.place.is_ours
        names = self.view.differing(stand.head or self.view.empty, stand.tree)
        others = (p for p in names if not p.startswith(self._inside) and not ours(p))
        return tuple(path for path in others if path not in yours)

    def _persons(self, stand: Stand) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The user's uncommitted paths from before the run: unchanged ones, changed ones."""
        persons = self.yours()
        if not persons:
            return (), ()
        touched = {*self.view.differing(self.memo.tree, stand.tree)} if self._mixes else set()
        touched -= {*self.memo.left_out}
        same = tuple(path for path in persons if path not in touched)
        return same, tuple(path for path in persons if path in touched)

    def _moved(self, seen: TreeStatus, head: str, tree: str) -> TreeStatus:
        """The tree that was seen, compared with another commit."""
        ours = self.repository.place.is_ours
        changes = [e for e in self.view.changes(tree, head or self.view.empty) if not ours(e.path)]
        return replace(
            seen,
            head=head,
            there=(),
            gone=(),
            staged=tuple(each.path for each in changes),
            added=tuple(each.path for each in changes if each.kind == "added"),
            removed=tuple(each.path for each in changes if each.kind == "deleted"),
        )

    @property
    def tree(self) -> str:
        """The files of the last look."""
        self.seen  # noqa: B018  looks if nobody has
        assert self._last is not None
        return self._last[1]

    @property
    def has_begun(self) -> bool:
        return self._memo is not None

    @property
    def memo(self) -> Memo:
        assert self._memo is not None, "a run begins before it looks"
        return self._memo

    @property
    def seen(self) -> TreeStatus:
        if self._last is None:
            self.look()
        assert self._last is not None
        return self._last[0]

    def _tell_apart(self, before: str, now: str, head: str, *, by_gate: bool) -> None:
        """Leave out new files that only gates have written, until a turn touches them."""
        left_out, changed = {*self.memo.left_out}, self.view.changes(before, now)
        if by_gate:
            turns = {*self.view.differing(self.memo.tree, before)} - left_out
            paths = {e.path for e in changed if e.old_mode != NOTHING}
            left_out |= paths - self._known_to(head, before, changed) - turns
        else:
            left_out -= {e.path for e in changed}
        if left_out != {*self.memo.left_out}:
            self._remember(replace(self.memo, left_out=tuple(sorted(left_out))))

    def _known_to(self, head: str, tree: str, changed: tuple[TreeChange, ...]) -> set[str]:
        """The changed paths that a commit has, and those that the tree has lost since."""
        since = self.view.changes(head, tree) if head else []
        lost = {e.path for e in since if e.old_mode == NOTHING}
        new = {e.path for e in since if e.mode == NOTHING}
        return {e.path for e in changed if head and e.mode != NOTHING and e.path not in new} | lost

    def _refs(self) -> bytes:
        """HEAD and all refs but ours, as git lists them."""
        alone = ("rev-parse", "--verify", "--quiet", "HEAD")
        words = alone if self._shared else ("show-ref", "--head")
        done = self.repository.run(*words)
        if done.code not in (0, 1) or (done.code == 1 and done.said):
            raise StateError(f"git {words[0]}: {done.said}", "Try: git status")
        if self._shared:
            return done.output.strip() + b" HEAD\n" if done.code == 0 else b""
        return b"".join(
            ref for ref in done.output.splitlines(keepends=True) if _OUR_REFS not in ref
        )

    def _settings_files(self) -> tuple[str, ...]:
        git_dir, common = self.repository.place.git_dir, self.view.place.common
        return (os.path.join(common, "config"), os.path.join(git_dir, "config.worktree"))

    def _put_git_back(self, to: Stand, now: Stand, paths: frozenset[str], kept_as: str) -> None:
        """HEAD, branches and settings as they were; where a ref was moved from is kept."""
        if SETTINGS in paths and to.settings in self._kept:
            texts = self._kept[to.settings].split(b"\0")
            for path, text in zip(self._settings_files(), texts, strict=True):
                if (content(path) or b"") != text:
                    with open(path, "wb") as file:
                        file.write(text)
        if not paths & {HEAD, REFS} or to.refs not in self._kept:
            return
        git, head = self.repository, os.path.join(self.repository.place.git_dir, "HEAD")
        on, was = _places(self._kept[to.refs])
        _, is_now = _places(self._kept[now.refs])
        tips = [at for ref, at in is_now.items() if was.get(ref) != at]
        name = f"refs/ralph/{os.path.basename(self.run_dir)}/moved-{kept_as}"
        for number, at in enumerate(dict.fromkeys(tips)):
            git.ask("update-ref", f"{name}.{number}", at)
        if (content(head) or b"") != on:
            write_atomically(head, os.fsdecode(on))
        for ref in {*is_now, *was}:
            old = was.get(ref, "")
            if old != is_now.get(ref, "") and (ref != "HEAD" or not on.startswith(b"ref:")):
                git.ask("update-ref", "--no-deref", *((ref, old) if old else ("-d", ref)))

    def _remembered(self) -> Memo | None:
        kept = content(os.path.join(self.run_dir, MEMO))
        if kept is None:
            return None
        said = json.loads(kept)
        self._rules.known = frozenset(said["rules"])
        lists = (tuple(said.get(name, ())) for name in ("inner", "left_out", "staged"))
        return Memo(said["head"], said["tree"], *lists)

    def _remember(self, memo: Memo) -> None:
        self._memo = memo
        text = json.dumps({**asdict(memo), "rules": sorted(self._rules.known)})
        with writing_state(self.run_dir):
            write_atomically(os.path.join(self.run_dir, MEMO), text, 0o600)


def _places(kept: bytes) -> tuple[bytes, dict[str, str]]:
    """The text of HEAD, and what each ref points to."""
    on, _, listing = kept.partition(b"\0")
    lines = (line.split(" ", 1) for line in os.fsdecode(listing).splitlines())
    return on, {ref: at for at, ref in lines}


def trees_of_run(workspace: str, environ: Mapping[str, str], run_dir: str) -> GitTrees | None:
    """The trees that a run would commit; None where there is no repository to commit to."""
    try:
        repository = repository_of_run(workspace, environ, run_dir)
    except ConfigError:
        return None
    return GitTrees(repository, workspace, run_dir)


def made_by_checks(runs: str) -> frozenset[str]:
    """Paths that gates of the last runs made and nobody has committed, by those runs' memory."""
    try:
        names = sorted(os.listdir(runs), reverse=True)[:_MOST_RUNS]
    except OSError:
        return frozenset()
    found: set[str] = set()
    for name in names:
        try:
            with open_regular(os.path.join(runs, name, MEMO)) as file:
                found.update(json.load(file)["left_out"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # of a run that proved nothing, or that is being written
    return frozenset(found)
