"""Tasks that are merged in one train (ADR 48): in which order, what lands, what goes back, and what
a killed run does again."""

import pytest
from train_support import BEGIN, Crew, Files, Project

from ralph.kernel.verdict import Accept
from ralph.testing.fakes import KilledError


def of(*names: str) -> tuple[Files, ...]:
    return tuple(map(Files, names))


def assert_only_proven(project: Project, *, alone: bool = True) -> None:
    """At no moment did the project stand on a tree that was not tried; a task that nobody merged
    before was proven by its turn."""
    for head in project.heads[1:]:
        files = project.files(head)
        assert files in project.proven or (alone and len(files) == 1), sorted(files)


def test_tasks_that_wait_are_tried_once_and_land_in_one_step() -> None:
    crew = Crew("abcd")
    crew.ride()
    project = crew.project
    assert project.tried == [*of("abcd")]
    assert project.landed == [*"abcd"], "each is a commit of its own"
    assert project.heads == [BEGIN, project.head], "the project moves once"
    assert_only_proven(project, alone=False)
    for name in "abcd":
        proof = crew.proofs(name)[-1]
        assert (proof.tree, proof.train) == ("a b c d", tuple("abcd"))
        assert proof.stand.tree == " ".join("abcd"[: "abcd".index(name) + 1]), "its own commit's"
        assert crew.steps(name) == ["record", "merged with", "commit", "sync"]
        assert len(crew.prompts(name)) == 1


def test_each_commits_on_the_one_before_and_nothing_lands_before_the_last() -> None:
    crew = Crew("ab")
    crew.ride()
    log = [(who, what) for who, what in crew.project.log if what not in ("keep", "sync")]
    assert log == [
        *(("a", "couple"), ("b", "couple")),
        *(("a", "try on"), ("", "gate"), ("a", "check"), ("b", "check")),
        *(("a", "follow"), ("a", "record"), ("a", "commit")),
        *(("b", "follow"), ("b", "record"), ("b", "commit")),
        ("a", "land"),
    ]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_train_is_longer_than_the_setting(most: int) -> None:
    """And one of one task is merged as if there were no trains."""
    crew = Crew("abcde", most=most)
    crew.ride()
    assert sorted(crew.project.landed) == [*"abcde"]
    before = [crew.project.files(crew.project.commits[head][0]) for head in crew.project.heads[1:]]
    assert len(before) >= 5 / most
    assert_only_proven(crew.project)
    if most == 1:
        assert not any(what in ("couple", "follow") for _, what in crew.project.log)


def test_the_guilty_one_goes_back_and_the_innocent_land() -> None:
    """Found by halves: with c in it the guardrail fails, until c has had another turn."""
    crew = Crew("abcd", Project(bad=of("ac")))
    bench = crew.benches["c"]
    crew.project.during = lambda who, what: (
        setattr(crew.project, "bad", ()) if (who, what) == ("c", "keep") and bench.told else None
    )
    crew.ride()
    assert crew.project.tried[:3] == [*of("abcd", "ab", "abc")]
    assert sorted(crew.project.landed) == [*"abcd"]
    assert crew.project.landed[:2] == ["a", "b"]
    assert [len(crew.prompts(name)) for name in "abcd"] == [1, 1, 2, 1]
    told = crew.prompts("c")[1]
    assert "With their work and yours together:\nnot with ['a', 'c']" in told
    assert bench.logs[-1] == "not with ['a', 'c']"
    assert_only_proven(crew.project)


def test_who_fails_its_own_check_with_those_before_it_goes_back() -> None:
    project = Project(needs={"c": "a"})
    crew = Crew("abcde", project)
    project.during = lambda who, what: (
        project.needs.clear() if (who, what) == ("c", "keep") and crew.benches["c"].told else None
    )
    crew.ride()
    assert project.tried[:3] == [*of("abcde", "abc", "abde")]
    assert project.landed == [*"abdec"]
    assert "completion of c does not pass" in crew.prompts("c")[1]
    assert_only_proven(project)


def test_who_breaks_the_check_of_one_before_it_goes_back() -> None:
    """`b` is its victim: it was proven, and lands."""
    project = Project(needs={"b": "d"})
    crew = Crew("abcde", project)
    crew.ride()
    assert project.tried[:3] == [*of("abcde", "ab", "abc")]
    assert project.landed[:3] == [*"abc"]
    assert [len(crew.prompts(name)) for name in "abcde"] == [1, 1, 1, 2, 1]
    assert "completion of b does not pass" in crew.prompts("d")[1]
    assert_only_proven(project)


def test_a_conductor_that_is_guilty_goes_back_itself() -> None:
    project = Project(bad=(Files({"mine", "a"}),))
    project.go_on(project.commit(BEGIN, Files({"mine"})))
    crew = Crew("abc", project)
    crew.ride()
    assert sorted(project.landed) == ["b", "c", "mine"]
    assert len(crew.prompts("a")) == 2, "back once, then parked"
    assert crew.ends["a"].parked[0][1].startswith("it cannot be merged: with what others")


def test_who_conflicts_leaves_the_train_and_goes_back_after_it() -> None:
    crew = Crew("abcd", Project(conflicts=of("ac")))
    crew.ride()
    assert crew.project.tried[0] == Files("abd")
    assert sorted(crew.project.landed) == [*"abd"]
    assert "conflicts with" in crew.prompts("c")[1]


def test_who_conflicts_boards_no_other_train() -> None:
    """It would leave that one as well: what it conflicts with has landed by then."""
    crew = Crew("abcd", Project(conflicts=of("ac")), most=3)
    crew.ride()
    log = crew.project.log
    assert log[: log.index(("c", "merge"))].count(("c", "couple")) == 1
    assert sorted(crew.project.landed) == [*"abd"]


@pytest.mark.parametrize("who", ["a", "b", "c"])
def test_a_commit_that_is_refused_dissolves_the_train(who: str) -> None:
    """Nothing has landed by then. The others go again; it is told why when it is alone."""
    crew = Crew("abc")
    crew.benches[who].refuses = 2
    crew.ride()
    assert sorted(crew.project.landed) == [*"abc"]
    assert [len(crew.prompts(name)) for name in "abc"] == [1 + (name == who) for name in "abc"]
    assert "The commit was refused:\nlint: 1 error" in crew.prompts(who)[1]
    assert_only_proven(crew.project)


def test_after_a_hook_that_changes_commits_there_are_no_more_trains() -> None:
    crew = Crew("abc")
    crew.benches["b"].alters = True
    crew.ride()
    assert sorted(crew.project.landed) == [*"abc"]
    assert crew.station is not None
    assert crew.station.most == 1
    assert all(len(crew.prompts(name)) == 1 for name in "abc")
    assert_only_proven(crew.project)


def test_who_commits_meanwhile_dissolves_the_train() -> None:
    """Whatever was committed on the old HEAD is not landed."""
    project = Project()
    crew, mine = Crew("abc", project), Files({"mine"})

    def commit(who: str, what: str) -> None:
        if (who, what) == ("c", "commit") and len(project.heads) == 1:
            project.go_on(project.commit(BEGIN, mine))
            project.proven.add(mine)

    project.during = commit
    crew.ride()
    assert sorted(project.landed) == ["a", "b", "c", "mine"]
    assert all(mine <= project.files(head) for head in project.heads[1:])
    assert_only_proven(project)
    for name in "abc":
        assert "mine" in crew.proofs(name)[-1].tree, "the evidence names what was proven last"
    told = [type(verdict) for verdict in crew.benches["a"].told]
    assert told == [Accept, Accept], "and so do the records"


def test_a_train_that_never_gets_through_ends() -> None:
    """They go alone then."""
    project = Project()
    crew = Crew("abc", project)

    def commit(who: str, what: str) -> None:
        if what == "land" and sum(what == "land" for _, what in project.log) < 5:
            files = project.files(project.head) | {f"p{len(project.heads)}"}
            project.go_on(project.commit(project.head, files))
            project.proven.add(files)

    project.during = commit
    crew.ride()
    assert {*"abc"} <= {*project.landed}
    assert_only_proven(project)


@pytest.mark.parametrize("dies_at", range(1, 45))
def test_who_is_killed_anywhere_lands_once(dies_at: int) -> None:
    """At each effect, and at each record of each journal."""
    crew = Crew("abc", Project(dies_at=dies_at))
    crew.ride()
    landed = crew.project.landed
    assert landed in ([], [*"abc"]), "all of the train, or nothing"
    crew.resume()
    assert sorted(crew.project.landed) == [*"abc"], "each once"
    assert crew.project.landed[: len(landed)] == landed
    for name in "abc":
        assert crew.ends.get(name) is None or crew.ends[name].stop is not None
        assert crew.steps(name).count("commit") == 1
        assert crew.benches[name].told[-1] == crew.benches[name].told[0]
    assert_only_proven(crew.project)


def test_a_worker_that_fails_in_a_train_holds_up_nobody() -> None:
    """The conductor does not wait for it, and its commit is in nobody's way."""
    crew = Crew("abc")

    def fail(who: str, what: str) -> None:
        if (who, what) == ("b", "follow"):
            crew.project.during = lambda _who, _what: None
            raise KilledError

    crew.project.during = fail
    crew.ride()
    assert sorted(crew.project.landed) == ["a", "c"]
    assert crew.benches["b"].told == []
