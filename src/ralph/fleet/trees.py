"""Orders and results as commits: how a turn goes to another machine, and comes back (ADR 47).

    order   order.json, work/ (the files), list (.ralph/tasks.jsonl); on top of the task's HEAD
    result  result.json (facts; 64 KB), stream, work/, list; on the order, and on the agent's HEAD

Both are at one ref. The result replaces the order by compare-and-swap, so whoever deletes the ref
has fenced the attempt: nothing of it can arrive any more.
"""

import json
import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ralph.agents.turn_files import MOST_SAVED
from ralph.errors import StateError
from ralph.fleet.port import MOST_BYTES
from ralph.git.branch import slug
from ralph.git.remote import last_line
from ralph.git.repository import GitResult, Repository
from ralph.journal.codec import decode_fact, encode
from ralph.kernel.facts import Ended, Fact, Landed
from ralph.kernel.turn import Order, Role
from ralph.kernel.value import value

REFS = "refs/ralph/"
_TOLD = {"ended": Ended, "landed": Landed}
_BLOB, _TREE = ("100644", "blob"), ("040000", "tree")
_ORDER, _RESULT, _STREAM, _WORK, _LIST = "order.json", "result.json", "stream", "work", "list"
_MOST = {  # bytes of the parts of a result; more would be taken into memory all the same
    _RESULT: MOST_BYTES,
    _LIST: 64 * 1024 * 1024,
    _STREAM: 2 * MOST_SAVED,
}


def ref_of(run: str, task: str, attempt: int) -> str:
    """Where an attempt is, on the remote."""
    return f"{refs_of(run, task)}/{attempt}"


def refs_of(run: str, task: str) -> str:
    """Where all attempts of a task are."""
    return f"{REFS}{run}/{slug(task)}"


@value
class OrderFound:
    """An order as a machine reads it."""

    commit: str
    order: Order
    head: str  # the commit that the task's branch is at
    work: str  # the tree of the files, with what is not committed
    list: bytes | None  # the agent's copy of the task list, if it has one
    inside: str = ""  # the project in the repository; "" if it is all of that


@value
class ResultFound:
    """A result as the run reads it."""

    commit: str
    facts: tuple[Fact, ...]  # Ended is the last one
    head: str  # the commit that the agent has left its branch at
    work: str
    list: bytes | None
    stream: str  # the object that holds it


def make_order(
    repository: Repository,
    order: Order,
    *,
    head: str,
    work: str,
    task_list: bytes | None,
    inside: str = "",
) -> str:
    """The commit of an order."""
    told = {
        "prompt": order.prompt,
        "iteration": order.iteration,
        "role": order.role.value,
        "dollars": order.dollars,
        "place": order.place,
        "inside": inside,
    }
    files = {_ORDER: _blob(repository, _json(told)), _WORK: (*_TREE, work)}
    if task_list is not None:
        files[_LIST] = _blob(repository, task_list)
    return repository.commit(_tree(repository, files), [head], "an order")


def read_order(repository: Repository, commit: str) -> OrderFound:
    """The order of a commit that is here. ValueError if it is none."""
    told = _json_of(repository, commit, _ORDER)
    try:
        order = Order(
            str(told["prompt"]),
            int(told["iteration"]),
            Role(told["role"]),
            None if told["dollars"] is None else float(told["dollars"]),
            int(told["place"]),
        )
        inside = str(told["inside"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"not an order: {error}") from error
    head = repository.resolve(f"{commit}^1")
    work = repository.resolve(f"{commit}:{_WORK}")
    return OrderFound(commit, order, head, work, _content(repository, commit, _LIST), inside)


def make_result(
    repository: Repository,
    order: str,
    *,
    head: str,
    work: str,
    task_list: bytes | None,
    facts: Iterable[Fact],
    stream: str,
) -> str:
    """The commit of a result; `stream` is a file."""
    files = {
        _RESULT: _blob(repository, _told([encode(fact) for fact in facts])),
        _STREAM: (*_BLOB, repository.identifier("hash-object", "-w", "--no-filters", stream)),
        _WORK: (*_TREE, work),
    }
    if task_list is not None:
        files[_LIST] = _blob(repository, task_list)
    return repository.commit(_tree(repository, files), [order, head], "a result")


def _told(facts: list[Any]) -> bytes:
    """Facts as JSON of at most MOST_BYTES. All that the agent has said is in the stream."""
    texts = (_json(_cut(facts, most)) for most in (MOST_BYTES, *(1 << n for n in range(15, 3, -1))))
    return next(text for text in texts if len(text) <= MOST_BYTES)


def _cut(told: Any, most: int) -> Any:  # noqa: ANN401  JSON
    """The same with the ends of texts, and the beginnings of lists."""
    if isinstance(told, str):
        return told[-most:]
    if isinstance(told, list):
        return [_cut(each, most) for each in told[:most]]
    return {n: _cut(each, most) for n, each in told.items()} if isinstance(told, dict) else told


def read_result(repository: Repository, commit: str, order: str) -> ResultFound:
    """The result of an order, by a commit that is here. ValueError if it is none of that order."""
    if repository.resolve(f"{commit}^1") != order:
        raise ValueError("it is no result of this order")
    sizes = _sizes(repository, commit)
    if any(sizes.get(name, 0) > most for name, most in _MOST.items()):
        raise ValueError("a part of it is too large")
    told = _json_of(repository, commit, _RESULT)
    if not isinstance(told, list):
        raise ValueError("it tells no facts")
    found = ResultFound(
        commit,
        tuple(map(_fact, told)),
        repository.resolve(f"{commit}^2"),
        repository.resolve(f"{commit}:{_WORK}/"),
        _content(repository, commit, _LIST),
        repository.resolve(f"{commit}:{_STREAM}"),
    )
    if not (found.head and found.work and _STREAM in sizes):
        raise ValueError("it lacks a part")
    for tree in (found.head, found.work):
        _look_at(repository, tree)
    return found


def _sizes(repository: Repository, commit: str) -> dict[str, int]:
    """The bytes of each part that is a file."""
    names = (_RESULT, _STREAM, _LIST)
    asked = "".join(f"{commit}:{name}\n" for name in names).encode()
    said = repository.ask("cat-file", "--batch-check", stdin=asked).decode().splitlines()
    found = ((name, line.split(" ")) for name, line in zip(names, said, strict=True))
    return {name: int(words[2]) for name, words in found if words[1] == "blob"}


def _look_at(repository: Repository, tree: str) -> None:
    """ValueError if git would not lay out these files, such as a `.git`, or if a link or a file
    stands where the task list goes: what is written there would land elsewhere."""
    with tempfile.TemporaryDirectory(prefix="ralph-index-") as scratch:
        done = repository.run("read-tree", tree, index=os.path.join(scratch, "index"))
    if done.code != 0:
        raise ValueError(f"its files cannot be laid out: {done.said}")
    records = repository.place.records
    parts = records.split("/")
    above = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    asked = "".join(f"{tree}:{path}\n" for path in (*above, f"{records}/tasks.jsonl"))
    said = repository.ask("cat-file", "--batch-check=%(objecttype)", stdin=os.fsencode(asked))
    *folders, task_list = (line.rpartition(b" ")[2] for line in said.splitlines())
    if {*folders} - {b"tree", b"missing"} or task_list == b"tree":
        raise ValueError(f"{records} is no folder of it, or its task list no file")


def _fact(told: dict[str, Any]) -> Fact:
    """A fact of a result. ValueError if it is none: machines are believed as little as agents."""
    try:
        msgspec.convert(told, _TOLD[told["type"]])  # which looks at every type
    except (KeyError, TypeError) as error:
        raise ValueError(f"it is no fact of a result: {error}") from error
    return decode_fact(told)


def fetch_words(remote: str, ref: str) -> tuple[str, ...]:
    """Have what is at a ref there here, at no ref."""
    return ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", remote, ref)


def push_words(remote: str, ref: str, commit: str, expected: str = "") -> tuple[str, ...]:
    """Let a ref there be at a commit, if it is still where it is expected; "" if it is new."""
    lease = f"--force-with-lease={ref}:{expected}"
    return ("push", "--quiet", "--no-verify", lease, remote, f"{commit}:{ref}")


def _raise(error: StateError) -> None:
    raise error


class Remote:
    """The remote that all machines reach, from the run's side."""

    def __init__(
        self,
        repository: Repository,
        url: str,
        wait: Callable[[StateError], None] = _raise,
    ) -> None:
        """`wait` is called where it cannot be reached, before it is asked again; or it raises."""
        self._repository, self.url, self._wait = repository, url, wait

    def at(self, *refs: str) -> dict[str, str]:
        """The commits at these refs there, and below them."""
        patterns = [name for ref in refs for name in (ref, f"{ref}/*")]
        said = os.fsdecode(self._asked("ls-remote", self.url, *patterns).output)
        lines = (line.partition("\t") for line in said.split("\n"))  # a name may hold others
        return {name: at for at, _, name in lines if any(_below(name, ref) for ref in refs)}

    def put(self, ref: str, commit: str, expected: str = "") -> bool:
        """Let a ref be at a commit; False if it was not where it was expected."""
        while True:
            done = self._repository.run(*push_words(self.url, ref, commit, expected))
            if done.code == 0 or (there := self.at(ref).get(ref, "")) == commit:
                return True  # perhaps only the answer was lost
            if there != expected:
                return False
            self._wait(_unreachable(self.url, done))

    def fetch(self, ref: str) -> None:
        """Have what is at a ref here."""
        self._asked(*fetch_words(self.url, ref))

    def forget(self, found: Mapping[str, str]) -> None:
        """Delete refs that are where they were found: nothing of those attempts arrives now."""
        for ref, commit in found.items():
            words = ("push", "--quiet", "--no-verify", f"--force-with-lease={ref}:{commit}")
            done = self._repository.run(*words, self.url, f":{ref}")
            while done.code != 0 and self.at(ref).get(ref) == commit:
                self._wait(_unreachable(self.url, done))
                done = self._repository.run(*words, self.url, f":{ref}")

    def _asked(self, *words: str) -> GitResult:
        while (done := self._repository.run(*words)).code != 0:
            self._wait(_unreachable(self.url, done))
        return done


def forget_runs(repository: Repository, url: str, runs: Collection[str]) -> None:
    """Delete what attempts of runs that are over have left on a remote, if it can be reached."""
    with suppress(StateError):
        Remote(repository, url).forget(of_runs(repository, url, runs))


def of_runs(repository: Repository, url: str, runs: Collection[str]) -> dict[str, str]:
    """The attempts of these runs that are on a remote: a commit by each ref."""
    attempt = re.compile(rf"{REFS}([^/]+)/[^/]+/\d+")
    there = Remote(repository, url).at(REFS[:-1])
    found = ((attempt.fullmatch(ref), ref, at) for ref, at in there.items())
    return {ref: at for name, ref, at in found if name and name[1] in runs}


def _unreachable(url: str, done: GitResult) -> StateError:
    said = last_line(done.said).rstrip(".") if done.said else f"git exited with code {done.code}"
    return StateError(f"git and {url}: {said}", f"Look: git ls-remote {url}. Then: ralph resume")


def _below(name: str, ref: str) -> bool:
    return name == ref or name.startswith(f"{ref}/")


def _json(told: object) -> bytes:
    return json.dumps(told, ensure_ascii=True).encode()


def _blob(repository: Repository, data: bytes) -> tuple[str, str, str]:
    words = ("hash-object", "-w", "--no-filters", "--stdin")
    return (*_BLOB, repository.identifier(*words, stdin=data))


def _tree(repository: Repository, files: Mapping[str, tuple[str, str, str]]) -> str:
    lines = (f"{mode} {kind} {at}\t{name}\n" for name, (mode, kind, at) in files.items())
    return repository.identifier("mktree", stdin="".join(lines).encode())


def _json_of(repository: Repository, commit: str, name: str) -> Any:  # noqa: ANN401  JSON
    data = _content(repository, commit, name)
    if data is None:
        raise ValueError(f"there is no {name} in {commit}")
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError(f"{name} is nested too deeply") from error


def _content(repository: Repository, commit: str, name: str) -> bytes | None:
    done = repository.run("cat-file", "blob", f"{commit}:{name}")
    return done.output if done.code == 0 else None
