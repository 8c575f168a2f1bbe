"""Scripts that prove tasks: no turn may change what judges it, nor what such a script is a link to
(ADR 12)."""

from pathlib import Path

import pytest

from kits.adapters import closing
from ralph.gates.protect import ProtectGate, Protector
from ralph.kernel.facts import Decided, Settled
from ralph.kernel.findings import Finding
from ralph.kernel.verdict import Accept, Boundary, Cause, Continue, Park, Verdict
from ralph.kernel.world import Snapshot
from ralph.loops.backlog.gates.scripts import ScriptGuard

SCRIPT = "checks/sorted.py"


class Judged:
    """A project whose tasks name one script, and the gate that protects it."""

    def __init__(self, workspace: Path) -> None:
        self.workspace, self.named = workspace, [SCRIPT]
        store = workspace.parent / "run"
        self.protector = Protector(str(workspace), ("settings.json",), str(store / "protected"))
        self.gate = ProtectGate(self.protector, str(workspace), str(store))

    def begun(self) -> ScriptGuard:
        """The guard, when the first task begins."""
        guard = ScriptGuard(lambda: (*self.named,), str(self.workspace), self.protector)
        guard.look()
        return guard

    def after(self, path: str, text: str = "weaker") -> list[Finding]:
        """What the gate finds after a turn that wrote there."""
        before = Snapshot("", self.protector.digests())
        self.write(path, text)
        return list(self.gate.check(closing(1, before)))

    def write(self, path: str, text: str = "strict") -> None:
        (self.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (self.workspace / path).write_text(text)

    def link(self, path: str, target: str) -> None:
        (self.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (self.workspace / path).symlink_to(target)

    def read(self, path: str) -> str:
        return (self.workspace / path).read_text()


def settled(verdict: Verdict) -> Settled:
    return Settled(1.0, verdict)


@pytest.fixture
def judged(workspace: Path) -> Judged:
    return Judged(workspace)


def test_a_script_stays_as_it_was_when_the_task_began(judged: Judged) -> None:
    judged.write(SCRIPT)
    judged.begun()
    assert len(judged.after(SCRIPT)) == 1
    assert judged.read(SCRIPT) == "strict"


def test_the_file_that_a_script_is_a_link_to_stays_too(judged: Judged) -> None:
    """Else a turn would make its check weaker and leave the link as it is."""
    judged.write("tools/real.py")
    judged.link(SCRIPT, "../tools/real.py")
    judged.begun()
    assert len(judged.after("tools/real.py")) == 1
    assert (judged.read("tools/real.py"), judged.read(SCRIPT)) == ("strict", "strict")


@pytest.mark.parametrize(
    ("bent", "links"),
    [
        ("checks/a", {SCRIPT: "a", "checks/a": "../strict/sorted.py"}),
        ("tools", {SCRIPT: "../tools/sorted.py", "tools": "strict"}),
        ("tools", {SCRIPT: "../tools/../tools/sorted.py", "tools": "./strict"}),
        ("checks", {"checks": "strict"}),
    ],
)
def test_no_link_on_the_way_to_a_script_is_bent(
    judged: Judged, bent: str, links: dict[str, str]
) -> None:
    """Whatever stands between the name of a check and its file."""
    judged.write("strict/sorted.py")
    judged.write("weak/sorted.py", "weaker")
    for path, target in links.items():
        judged.link(path, target)
    judged.begun()
    before = Snapshot("", judged.protector.digests())
    (judged.workspace / bent).unlink()
    judged.link(bent, "../weak/sorted.py" if bent == "checks/a" else "weak")
    assert judged.read(SCRIPT) == "weaker"
    assert list(judged.gate.check(closing(1, before)))
    assert judged.read(SCRIPT) == "strict"


def test_links_in_a_circle_lead_nowhere(judged: Judged) -> None:
    judged.link(SCRIPT, "other")
    judged.link("checks/other", "sorted.py")
    judged.begun()
    assert not (judged.workspace / SCRIPT).exists()


def test_a_script_that_the_task_itself_makes_is_not_protected_from_it(judged: Judged) -> None:
    guard = judged.begun()
    assert judged.after(SCRIPT) == []
    guard.look()
    assert judged.after(SCRIPT, "mended in its next iteration") == []


@pytest.mark.parametrize("verdict", [Accept(()), Park("", Cause.LIMIT)], ids=["done", "parked"])
def test_what_a_task_has_made_is_protected_from_the_next(judged: Judged, verdict: Verdict) -> None:
    guard = judged.begun()
    assert judged.after(SCRIPT) == []
    guard.on_fact(Decided(1.0, Boundary.CLOSING, verdict))
    guard.on_fact(settled(Continue()))
    guard.look()
    assert judged.after(SCRIPT, "not settled yet") == []
    guard.on_fact(settled(verdict))
    guard.look()
    assert len(judged.after(SCRIPT)) == 1
    assert judged.read(SCRIPT) == "not settled yet"


def test_what_settings_protect_stays_protected_whatever_task_begins(judged: Judged) -> None:
    judged.write("settings.json")
    judged.write(SCRIPT)
    judged.begun()
    assert len(judged.after("settings.json")) == 1
    assert judged.read("settings.json") == "strict"


def test_a_script_that_no_open_task_names_may_change(judged: Judged) -> None:
    """The next task is judged by its own."""
    judged.write(SCRIPT)
    guard = judged.begun()
    judged.named.clear()
    assert len(judged.after(SCRIPT)) == 1
    guard.on_fact(settled(Accept(())))
    guard.look()
    assert judged.after(SCRIPT, "other") == []
