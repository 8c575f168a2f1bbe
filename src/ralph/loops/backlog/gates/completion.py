"""The gate that checks what a task itself names as its proof, or the tests that are named after it
(B §Completion Detection)."""

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ralph.agents.turn_files import WHOLE, SavedStream
from ralph.files.safe_open import create, read_or_nothing, remove_file
from ralph.files.state_dir import shown_path, write_atomically, writing_state
from ralph.gates.guardrail import NOT_RUN, TIMED_OUT, GatePlace, excerpt
from ralph.git.branch import slug
from ralph.kernel.case import Case
from ralph.kernel.facts import Proved
from ralph.kernel.findings import Finding
from ralph.kernel.limits import Limits, left
from ralph.kernel.state import RunState
from ralph.kernel.tasks.completion import Completion, Kind
from ralph.kernel.value import value
from ralph.loops.backlog.gates.ran_none import ran_none
from ralph.loops.backlog.gates.scripts import Runners
from ralph.loops.backlog.rules import CHECK, NAMED, limits_of_task, spent_on_task
from ralph.processes.child import Command
from ralph.text.plain import clean
from ralph.text.redact import redact, redacted_json
from ralph.text.words import duration, listed

_NOT_FOUND = 127
_MOST_ARTIFACTS = 1000
_MOST_NAMED = 5  # files with tests
_LONGEST_ARTIFACT = 1000
_SUMMARY = 1 << 16  # bytes at the end of an output, where test runners sum up
_LARGEST = 1 << 20  # bytes of a file that may hold tests


def _evidence(
    kind: str, command: str | None, code: int | None, digest: str, artifacts: Sequence[str] = ()
) -> dict[str, Any]:
    """The result of a check, as the task's line has it."""
    found = {"kind": kind, "command": command, "exitCode": code, "outputSha256": digest}
    return {**found, "artifacts": list(artifacts)} if artifacts else found


@value
class CompletionCheck:
    """Runs the check of the task under work, if it names one, else the tests that are named after
    it, if there are any."""

    place: GatePlace
    rule_of: Callable[[str], Completion]  # by the task's id
    store: str  # where evidence waits until the task is settled
    limits: Limits = Limits()  # of a task that has none of its own
    timeout: float = 600.0
    test_command: str = "npm test -- --grep"
    tests_of: Callable[[str], str] = lambda _: ""  # the command that runs a task's; "" for none
    changed: Callable[[RunState, str], Iterable[str]] = lambda _state, _tree: ()  # in the task
    guest: bool = False  # it runs where another task's does, too
    name = CHECK
    always = False

    def executes(self, case: Case) -> bool:
        """A check that is a file runs nothing."""
        if not case.task.check:
            return bool(self.tests_of(case.task.id))
        return self.rule_of(case.task.id).kind is not Kind.FILE_EXISTS

    def passed_as(self, case: Case) -> str:
        """The check, or the tests; "" if there was nothing to look at."""
        if case.task.check:
            return self.name
        found = kept_evidence(self.store, case.state.iteration, case.task.id)
        if found is None:
            return ""
        written = listed(found.get("written", ()), _MOST_NAMED)
        also = f", written or changed in this task: {written}" if written else ""
        return f"{NAMED}{case.task.id}{also}"

    def check(self, case: Case) -> Iterator[Finding]:
        """The objection, if the proof is missing; the evidence is kept either way."""
        evidence, finding = self._looked(case)
        if self.guest and finding is not None:  # the task may land without whom it fails with
            yield finding
            return
        path = evidence_file(self.store, case.state.iteration)
        if not evidence:
            remove_file(path)  # of tests that are gone since
            return
        kept = redacted_json({"task": case.task.id, "evidence": evidence})
        with writing_state(self.store):
            write_atomically(path, kept, mode=0o600)
        if finding is not None:
            yield finding

    def _looked(self, case: Case) -> tuple[dict[str, Any], Finding | None]:
        """The evidence, and the objection; neither where there is nothing to look at."""
        output = _Output(self.place.truncate)
        if case.task.check:
            rule = self.rule_of(case.task.id)
            file = rule.kind is Kind.FILE_EXISTS
            return self._file(rule) if file else self._command(rule, case, output)
        command = self.tests_of(case.task.id)
        if not command:
            return {}, None
        rule = Completion(Kind.TEST_PASSING, command=command)
        evidence, finding = self._command(rule, case, output)
        if ran_none(evidence["exitCode"], output.end()):
            return {}, None
        paths = sorted(self.changed(case.state, case.snapshot.stand.tree))
        written = [path for path in paths if self._mentions(path, case.task.id)]
        return {**evidence, "named": case.task.id, "written": written}, finding

    def _mentions(self, path: str, task: str) -> bool:
        """True if a file may hold tests that are named after the task."""
        data = read_or_nothing(os.path.join(self.place.here, path), _LARGEST)
        return task.casefold() in f"{path}\n{data.decode('utf-8', 'replace')}".casefold()

    def _file(self, rule: Completion) -> tuple[dict[str, Any], Finding | None]:
        path = os.path.join(self.place.here, rule.path)
        problem = _file_problem(path, self.place.here)
        if problem is not None:
            finding = Finding(CHECK, f"Not complete yet: {rule.path} {problem}.", gist=problem)
            return _evidence(rule.kind, None, 1, _sha256(b"")), finding
        if os.path.isdir(path):
            digest = _sha256(os.fsencode("\0".join(sorted(os.listdir(path)))))
        else:
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        return _evidence(rule.kind, None, 0, digest, (rule.path,)), None

    def _command(
        self, rule: Completion, case: Case, output: "_Output"
    ) -> tuple[dict[str, Any], Finding | None]:
        shown, argv, problem = self._argv(rule)
        if problem:
            evidence = _evidence(rule.kind, shown, _NOT_FOUND, _sha256(b""))
            return evidence, Finding(CHECK, f"Not complete yet: {problem}", gist=problem)
        whose = f"_{slug(case.task.id)}" if self.guest else ""
        log = self.place.log(f"completion_{case.state.iteration:03d}{whose}.log")
        try:
            code, why = self._run(argv, case, log, output)
        except (OSError, ValueError) as error:
            code, why, output = NOT_RUN, f"it could not be run: {error}", _Output(0)
        named = output.lines() if rule.kind is Kind.VALIDATE and code == 0 else ()
        evidence = _evidence(rule.kind, shown, code, output.sha256(), named)
        if code == 0:
            return evidence, None
        where = shown_path(log, self.place.workspace)
        text = redact(
            f"Not complete yet: `{shown}` exited with code {code}{f' ({why})' if why else ''}.\n"
            f"Output file: {where}\nOutput (truncated):\n{output.text()}"
        )
        return evidence, Finding(CHECK, text, code=code, log=where, gist=output.sha256())

    def _argv(self, rule: Completion) -> tuple[str, tuple[str, ...], str]:
        """As people write it, as words, and what is wrong with it."""
        if rule.kind is not Kind.VALIDATE:
            line = rule.command or f"{self.test_command} {shlex.quote(rule.grep)}"
            return line, ("sh", "-c", line), ""
        script, path = rule.script, os.path.join(self.place.here, rule.script)
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            return script, (), f"the script {script} cannot be run: {error.strerror}."
        if not stat.S_ISREG(mode):
            return script, (), f"the script {script} is no file."
        runners = Runners(self.place.env, self.place.here)
        runner = runners.of(script)
        if runner is None:
            return script, (), f"{runners.problem(script)}."
        if runner:
            return shlex.join((*runner, script)), (*runner, path), ""
        if not os.access(path, os.X_OK):
            return script, (), f"the script {script} is not executable (chmod +x {script})."
        return script, (path,), ""

    def _run(
        self, argv: tuple[str, ...], case: Case, log: str, output: "_Output"
    ) -> tuple[int, str]:
        """Run the check into a log; its exit code, and why it was cut."""
        command = Command(argv, self.place.here, {**self.place.env, "RALPH_TASK_ID": case.task.id})
        patience = self._patience(case)
        with os.fdopen(create(log, 0o644), "wb", 0) as file:
            said, complained = (SavedStream(lambda: file, WHOLE) for _ in range(2))

            def hear(data: bytes) -> None:
                output.feed(data)
                said.write(data)

            def hear_error(data: bytes) -> None:
                output.feed(data, error=True)
                complained.write(data)

            child = self.place.start(command, hear, hear_error)
            ended = child.wait(lambda: self.place.watch(child.seconds(), patience))
            said.end()
            complained.end()
        return (TIMED_OUT, ended.cut.why) if ended.cut else (ended.code, "")

    def _patience(self, case: Case) -> tuple[float, str]:
        """The time that it may take, and the words for when that is over."""
        limit = self.rule_of(case.task.id).timeout or self.timeout
        of_task = left(limits_of_task(case, self.limits).seconds, spent_on_task(case).seconds)
        of_run = left(self.place.max_time, case.spent.seconds)
        bounds = (
            (limit, f"timed out after {duration(limit)}"),
            (of_task, "the task's time is used up"),
            (of_run, "the run's time is used up"),
        )
        return min((seconds, words) for seconds, words in bounds if seconds is not None)


class _Output:
    """The output of a check: hashed whole; the beginning is kept, and the end."""

    def __init__(self, most: int) -> None:
        self._hash = hashlib.sha256()
        self._most = most or 1 << 20
        self._start, self._end = bytearray(), bytearray()
        self.stdout = bytearray()

    def feed(self, data: bytes, *, error: bool = False) -> None:
        self._hash.update(data)
        self._start += data[: max(0, 4 * self._most - len(self._start))]
        self._end = (self._end + data)[-_SUMMARY:]
        if not error:
            most = _MOST_ARTIFACTS * _LONGEST_ARTIFACT
            self.stdout += data[: max(0, most - len(self.stdout))]

    def sha256(self) -> str:
        return self._hash.hexdigest()

    def text(self) -> str:
        return excerpt(bytes(self._start), self._most)

    def end(self) -> str:
        return clean(self._end.decode("utf-8", "replace"))

    def lines(self) -> list[str]:
        """The artifacts that a script named on its standard output."""
        lines = self.stdout.decode("utf-8", "replace").splitlines()
        named = [line.strip()[:_LONGEST_ARTIFACT] for line in lines if line.strip()]
        return named[:_MOST_ARTIFACTS]


def evidence_file(store: str, iteration: int) -> str:
    return os.path.join(store, f"{iteration:03d}.evidence")


def kept_evidence(store: str, iteration: int, task: str) -> dict[str, Any] | None:
    """The evidence of the task's check in this iteration; None if there was none."""
    try:
        with open(evidence_file(store, iteration), encoding="utf-8") as file:
            kept = json.load(file)
        return dict(kept["evidence"]) if kept["task"] == task else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def claimed_evidence(claim: str, artifacts: tuple[str, ...] = ()) -> dict[str, Any]:
    """The evidence of a task which the agent's own word completes."""
    digest = _sha256(claim.encode("utf-8", "surrogateescape"))
    return _evidence(Kind.EXPLICIT, None, None, digest, artifacts)


def _file_problem(path: str, workspace: str) -> str | None:
    """B §Artifact Exists: a file, also an empty one, or a directory, that is the project's own."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return f"is not there ({error.strerror})"
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return "is neither a file nor a directory"
    home, real = os.path.realpath(workspace), os.path.realpath(path)
    if os.path.islink(path) and not real.startswith(os.path.join(home, "")):
        return "is a link that leads out of the project"
    return None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def proof_words(proof: Proved | None) -> dict[str, Any]:
    """The part of a task's evidence about the tree that was proven, and what is outside of it."""
    if proof is None:
        return {"tree": None}
    named = {"leftOut": proof.left_out, "putBack": proof.put_back, "hidden": proof.hidden}
    named["train"] = proof.train
    told = {name: list(paths) for name, paths in named.items() if paths}
    return {"tree": proof.tree, "outside": "ignored files", **told}
