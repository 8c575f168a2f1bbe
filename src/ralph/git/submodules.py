"""Keeps the work inside the submodules of a worker's tree, which would go with the tree."""

import os
import shutil
from contextlib import suppress

from ralph.git.repository import Repository, call, scratch_index
from ralph.git.status import inner_change, is_checked_out, links
from ralph.kernel.value import value

_AUTHOR = ("-c", "user.name=ralph", "-c", "user.email=ralph@localhost")


@value
class Submodules:
    """The submodules of a work tree, and the project's own."""

    tree: Repository
    project: Repository
    ref: str  # under which the project's have what was done
    run_dir: str

    def keep(self) -> tuple[str, ...]:
        """Keep what only the work tree has, leave it without changes, and tell where it is."""
        found = []
        for path in links(self.tree):
            words = self._kept(path)
            if not words:
                continue
            found.append(words)
            if is_checked_out(self.tree, path):
                self.tree.inside(path, "reset", "--quiet", "--hard")
                self.tree.inside(path, "clean", "-ffdq")
            else:
                inner = self.tree.place.path(path)
                shutil.rmtree(inner, ignore_errors=True)
                os.makedirs(inner, exist_ok=True)
        return tuple(found)

    def _kept(self, path: str) -> str:
        inner, own = (repository.place.path(path) for repository in (self.tree, self.project))
        if not os.path.isdir(inner) or not os.listdir(inner):
            return ""
        copy = os.path.join(self.run_dir, "submodules", os.path.basename(self.ref), path)
        if not is_checked_out(self.tree, path):
            with suppress(FileExistsError):
                shutil.copytree(inner, copy, symlinks=True)
            return f"What was written into the submodule {path} is kept in {copy}"
        work, environ = self._work_in(path), self.project.environ
        there = is_checked_out(self.project, path)
        if there and call(("cat-file", "-e", f"{work}^{{commit}}"), own, environ).code == 0:
            return ""
        self.tree.inside(path, "update-ref", self.ref, work)
        fetch = ("fetch", "--quiet", "--no-tags", inner, f"+{self.ref}:{self.ref}")
        if there and call(fetch, own, environ).code == 0:
            return f"What was done in the submodule {path} is kept there: {self.ref}"
        call(("clone", "--quiet", "--no-hardlinks", inner, copy), self.run_dir, environ)
        call(fetch, copy, environ)
        return f"What was done in the submodule {path} is kept in {copy}: {self.ref}"

    def _work_in(self, path: str) -> str:
        """A commit of what is there: HEAD, or one on it with what nobody has committed."""
        head = self._said(path, "rev-parse", "HEAD")
        if not inner_change(self.tree, path):
            return head
        with scratch_index(self.run_dir) as index:
            self._said(path, "read-tree", "HEAD", index=index)
            self._said(path, "add", "--all", index=index)
            tree = self._said(path, "write-tree", index=index)
        words = ("commit-tree", tree, "-p", head, "-m", "ralph: what was not committed")
        return self._said(path, *_AUTHOR, *words)

    def _said(self, path: str, *words: str, index: str = "") -> str:
        return self.tree.inside(path, *words, index=index).output.decode().strip()
