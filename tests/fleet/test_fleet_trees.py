"""How a turn goes to another machine and comes back: orders, results, and the fence."""

import json
from pathlib import Path

import pytest

from kits.work_tree import git, new_repository, work_of
from ralph.errors import StateError
from ralph.fleet.trees import (
    Remote,
    fetch_words,
    make_order,
    make_result,
    push_words,
    read_order,
    read_result,
    ref_of,
)
from ralph.git.checkpoint.checkpoint import WorkTree
from ralph.kernel.facts import Ended, Landed
from ralph.kernel.turn import Order, Role, Turn

ORDER = Order("Do it.\n\udcff ü", 3, Role.WORK, 1.5, 1)
REF = ref_of("20261119-000000-abcd", "T 1/2", 2)


@pytest.fixture
def here(tmp_path: Path) -> WorkTree:
    return work_of(new_repository(tmp_path / "here"))


@pytest.fixture
def there(tmp_path: Path) -> WorkTree:
    git(tmp_path, "clone", "--quiet", str(tmp_path / "here"), "there")
    return work_of(tmp_path / "there", "run-2")


@pytest.fixture
def remote(here: WorkTree, tmp_path: Path) -> Remote:
    git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    return Remote(here.repository, str(tmp_path / "remote.git"))


def ordered(here: WorkTree, task_list: bytes | None = b"{}\n") -> str:
    return make_order(
        here.repository, ORDER, head=here.head(), work=here.tree(), task_list=task_list, inside="a"
    )


def answered(there: WorkTree, order: str, stream: Path) -> str:
    found = read_order(there.repository, order)
    return make_result(
        there.repository,
        order,
        head=found.head,
        work=there.tree(),
        task_list=None,
        facts=(Ended(4.0, Turn(text="done")),),
        stream=str(stream),
    )


def test_an_order_and_its_result_travel(
    here: WorkTree, there: WorkTree, remote: Remote, tmp_path: Path
) -> None:
    (Path(here.workspace) / "new").write_text("not committed\n")
    order = ordered(here)
    assert remote.put(REF, order)
    there.repository.ask(*fetch_words(remote.url, REF))
    found = read_order(there.repository, order)
    assert found.order == ORDER
    assert found.list == b"{}\n"
    assert found.inside == "a"
    assert there.repository.names("ls-tree", "-z", "--name-only", found.work) == [
        *(".gitignore", "a", "b", "link", "new", "tool")
    ]
    stream = tmp_path / "stream"
    stream.write_bytes(b"\r\nas it is\n")
    result = answered(there, order, stream)
    there.repository.ask(*push_words(remote.url, REF, result, order))
    assert remote.at(REF) == {REF: result}
    remote.fetch(REF)
    back = read_result(here.repository, result, order)
    assert back.facts == (Ended(4.0, Turn(text="done")),)
    assert back.head == here.head()
    assert back.work == there.tree()
    assert back.list is None
    assert here.repository.ask("cat-file", "blob", back.stream) == b"\r\nas it is\n"


@pytest.mark.parametrize("text", ["x" * 65_536, "\u20ac" * 65_536, "x" * 1000])
def test_a_result_has_64_kb_of_json(
    here: WorkTree, there: WorkTree, remote: Remote, tmp_path: Path, text: str
) -> None:
    """Whatever the agent has said, and however many paths could not be carried."""
    (tmp_path / "stream").write_bytes(b"")
    paths = tuple(f"a/long/way/to/{number}" for number in range(20_000))
    landed, ended = Landed(1.0, kept=True, spared=paths), Ended(2.0, Turn(text=text, cost_usd=0.5))
    order = ordered(here)
    there.repository.ask("fetch", "--quiet", here.workspace, order)
    made = make_result(
        there.repository,
        order,
        head=there.head(),
        work=there.tree(),
        task_list=None,
        facts=(landed, ended),
        stream=str(tmp_path / "stream"),
    )
    assert len(there.repository.ask("cat-file", "blob", f"{made}:result.json")) <= 65_536
    told = read_result(there.repository, made, order).facts
    assert isinstance(told[-1], Ended)
    assert told[-1].turn.cost_usd == 0.5
    assert text.endswith(told[-1].turn.text)
    assert told[-1].turn.text


def test_an_attempt_that_is_fenced_brings_nothing(
    here: WorkTree, there: WorkTree, remote: Remote, tmp_path: Path
) -> None:
    """Whoever deletes the ref, or puts another order there, has the last word."""
    first = ordered(here)
    assert remote.put(REF, first)
    assert not remote.put(REF, ordered(here, b"another\n"))
    there.repository.ask(*fetch_words(remote.url, REF))
    (tmp_path / "stream").touch()
    result = answered(there, first, tmp_path / "stream")
    remote.forget(remote.at(REF))
    late = push_words(remote.url, REF, result, first)
    assert there.repository.run(*late).code != 0
    second = ordered(here, b"another\n")
    assert remote.put(REF, second)
    assert there.repository.run(*late).code != 0
    assert remote.at(REF) == {REF: second}
    with pytest.raises(ValueError, match="no result of this order"):
        read_result(here.repository, second, first)


def test_a_push_whose_answer_was_lost_has_succeeded(here: WorkTree, remote: Remote) -> None:
    order = ordered(here)
    assert remote.put(REF, order)
    assert remote.put(REF, order)


def test_a_remote_that_wants_no_such_ref_says_so(here: WorkTree, remote: Remote) -> None:
    hook = Path(remote.url) / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no such refs here\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(StateError, match="pre-receive hook declined"):
        remote.put(REF, ordered(here))


def test_refs_are_found_by_their_run(here: WorkTree, remote: Remote) -> None:
    order = ordered(here)
    for ref in (REF, f"{REF}0", "refs/ralph/other/T/1"):
        assert remote.put(ref, order)
    run, _, _ = REF.rpartition("/T")
    assert set(remote.at(run)) == {REF, f"{REF}0"}
    assert set(remote.at(REF)) == {REF}
    remote.forget(remote.at(run))
    assert remote.at(run) == {}
    assert len(remote.at("refs/ralph/other")) == 1


def test_a_remote_that_is_gone_is_an_error_that_says_what_to_type(here: WorkTree) -> None:
    with pytest.raises(StateError, match="not appear to be a git repository") as caught:
        Remote(here.repository, "/nowhere/at/all").at(REF)
    assert "git ls-remote /nowhere/at/all" in str(caught.value.remedy)


@pytest.mark.parametrize(
    "told",
    [
        [{"type": "settled"}],
        [{"type": "ended", "time": 1.0, "turn": {"type": "turn", "text": 7}}],
        [{"type": "ended", "time": 1.0, "turn": {"type": "turn", "cost_usd": "all"}}],
        [{"type": "landed", "time": 1.0, "kept": True, "spared": ["a", 3]}],
        [{}],
        [3],
        3,
        {"type": "ended"},
    ],
)
def test_what_a_machine_tells_is_looked_at(here: WorkTree, told: object) -> None:
    """Of a machine that lies, nothing comes that the run would stumble over."""
    order, ask = ordered(here), here.repository.identifier
    blob = ask("hash-object", "-w", "--stdin", stdin=json.dumps(told).encode())
    tree = ask("mktree", stdin=f"100644 blob {blob}\tresult.json\n".encode())
    with pytest.raises(ValueError, match=r"."):
        read_result(here.repository, here.repository.commit(tree, [order, here.head()], "x"), order)


@pytest.mark.parametrize("tree", ["empty", "order"])
def test_another_commit_is_no_order(here: WorkTree, tree: str) -> None:
    if tree == "order":
        blob = here.repository.identifier("hash-object", "-w", "--stdin", stdin=b'{"prompt": 1}')
        made = here.repository.identifier(
            "mktree", stdin=f"100644 blob {blob}\torder.json\n".encode()
        )
    else:
        made = here.repository.empty
    with pytest.raises(ValueError, match=r"order"):
        read_order(here.repository, here.repository.commit(made, [here.head()], "x"))
