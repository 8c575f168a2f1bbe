"""The gate that checks what a task itself names as its proof (B §Completion Detection)."""

import hashlib
import json
import os
import shlex
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any

from ralph.adapters.files import shown_path, unwritable_state, writable_dir, write_atomically
from ralph.adapters.guardrail import NOT_RUN, TIMED_OUT, Place
from ralph.adapters.process import Command
from ralph.adapters.runners import Runners
from ralph.adapters.safe_open import create
from ralph.adapters.turn_files import WHOLE, SavedStream
from ralph.core.case import Case
from ralph.core.completion import Completion, Kind
from ralph.core.facts import Proved
from ralph.core.gates import Finding
from ralph.core.limits import Limits, left
from ralph.core.redact import redact, redacted_json
from ralph.core.rules_tasks import CHECK, limits_of_task, spent_on_task
from ralph.core.value import value
from ralph.core.verdict import Cut
from ralph.core.words import duration
from ralph.core.world import hurried

_NOT_FOUND = 127
_MOST_ARTIFACTS = 1000
_LONGEST_ARTIFACT = 1000


@value
class Evidence:
    """What a check found, as it is kept on the task."""

    kind: str
    command: str | None
    exit_code: int | None
    output_sha256: str
    artifacts: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As the task's line has it."""
        found = {
            "kind": self.kind,
            "command": self.command,
            "exitCode": self.exit_code,
            "outputSha256": self.output_sha256,
        }
        return {**found, "artifacts": list(self.artifacts)} if self.artifacts else found


@value
class Terms:
    """How long a check may take, and what `grep` means."""

    limits: Limits = Limits()  # of a task that has none of its own
    timeout: float = 600.0
    test_command: str = "npm test -- --grep"


@value
class CompletionCheck:
    """Runs the check of the task under work, if it names one."""

    place: Place
    rule_of: Callable[[str], Completion]  # by the task's id
    store: str  # where evidence waits until the task is settled
    terms: Terms = Terms()
    name = CHECK
    always = False

    def executes(self, case: Case) -> bool:
        """A task without a check, or one that is a file, runs nothing."""
        if not case.task.check:
            return False
        return self.rule_of(case.task.id).kind is not Kind.FILE_EXISTS

    def check(self, case: Case) -> Iterator[Finding]:
        """Nothing where the proof is there; what it found is kept either way."""
        if not case.task.check:
            return
        rule, task = self.rule_of(case.task.id), case.task.id
        if rule.kind is Kind.FILE_EXISTS:
            found = self._file(rule)
        else:
            found = self._command(rule, task, case)
        evidence, finding = found
        self._keep(case, evidence)
        if finding is not None:
            yield finding

    def _keep(self, case: Case, evidence: Evidence) -> None:
        kept = redacted_json({"task": case.task.id, "evidence": evidence.as_dict()})
        try:
            write_atomically(evidence_file(self.store, case.state.iteration), kept, mode=0o600)
        except OSError as error:
            raise unwritable_state(self.store, error) from error

    # ------------------------------------------------------------ a file

    def _file(self, rule: Completion) -> tuple[Evidence, Finding | None]:
        path = os.path.join(self.place.here, rule.path)
        problem = _file_problem(path, self.place.here)
        digest = _digest_of(path) if problem is None else _sha256(b"")
        artifacts = (rule.path,) if problem is None else ()
        code = 0 if problem is None else 1
        evidence = Evidence(rule.kind, None, code, digest, artifacts)
        if problem is None:
            return evidence, None
        return evidence, Finding(CHECK, f"Not complete yet: {rule.path} {problem}.", gist=problem)

    # --------------------------------------------------------- a command

    def _command(self, rule: Completion, task: str, case: Case) -> tuple[Evidence, Finding | None]:
        shown, argv, problem = self._argv(rule)
        if problem:
            evidence = Evidence(rule.kind, shown, _NOT_FOUND, _sha256(b""))
            return evidence, Finding(CHECK, f"Not complete yet: {problem}", gist=problem)
        name = f"completion_{case.state.iteration:03d}.log"
        log = os.path.join(writable_dir(self.place.workspace, self.place.fallback), name)
        try:
            code, why, output = self._run(argv, task, case, log)
        except (OSError, ValueError) as error:
            code, why, output = NOT_RUN, f"it could not be run: {error}", _Output(0)
        evidence = Evidence(rule.kind, shown, code, output.sha256())
        if rule.kind is Kind.VALIDATE and code == 0:
            evidence = _with_artifacts(evidence, output)
        if code == 0:
            return evidence, None
        return evidence, self._finding(shown, code, why, output, log)

    def _argv(self, rule: Completion) -> tuple[str, tuple[str, ...], str]:
        """As people write it, as words, and what is wrong with it."""
        if rule.kind is Kind.VALIDATE:
            return self._script(rule.script)
        line = rule.command or f"{self.terms.test_command} {shlex.quote(rule.grep)}"
        return line, ("sh", "-c", line), ""

    def _script(self, script: str) -> tuple[str, tuple[str, ...], str]:
        path = os.path.join(self.place.here, script)
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
        self, argv: tuple[str, ...], task: str, case: Case, log: str
    ) -> tuple[int, str, "_Output"]:
        env = {**self.place.env, "RALPH_TASK_ID": task}
        output = _Output(self.place.truncate)
        patience = self._patience(case)
        with os.fdopen(create(log, 0o644), "wb", 0) as file:
            said, complained = (SavedStream(lambda: file, WHOLE) for _ in range(2))

            def hear(data: bytes) -> None:
                output.feed(data)
                said.write(data)

            def hear_error(data: bytes) -> None:
                output.feed(data, error=True)
                complained.write(data)

            child = self.place.start(Command(argv, self.place.here, env), hear, hear_error)
            ended = child.wait(lambda: self._watch(child.seconds(), patience))
            said.end()
            complained.end()
        if ended.cut is not None:
            return TIMED_OUT, ended.cut.why, output
        return ended.code, "", output

    def _patience(self, case: Case) -> tuple[float, str]:
        """How long it may take, and what to say when that is over."""
        limit = self.rule_of(case.task.id).timeout or self.terms.timeout
        bounds = [(limit, f"timed out after {duration(limit)}")]
        of_task = limits_of_task(case, self.terms.limits).seconds
        rest = left(of_task, spent_on_task(case).seconds)
        if rest is not None:
            bounds.append((rest, "the task's time is used up"))
        of_run = left(self.place.max_time, case.spent.seconds)
        if of_run is not None:
            bounds.append((of_run, "the run's time is used up"))
        return min(bounds)

    def _watch(self, seconds: float, patience: tuple[float, str]) -> Cut | None:
        hurry = hurried(self.place.signals(), time.time(), self.place.stop_grace)
        if hurry is None and seconds >= patience[0]:
            return Cut(patience[1], grace=1.0)
        return hurry

    def _finding(self, shown: str, code: int, why: str, output: "_Output", log: str) -> Finding:
        also = f" ({why})" if why else ""
        where = shown_path(log, self.place.workspace)
        text = output.text()
        lines = [
            f"Not complete yet: `{shown}` exited with code {code}{also}.",
            f"Output file: {where}",
            "Output (truncated):",
            text,
        ]
        return Finding(CHECK, redact("\n".join(lines)), code=code, log=where, gist=output.sha256())


class _Output:
    """What a check printed: hashed whole, and the beginning kept."""

    def __init__(self, most: int) -> None:
        self._hash = hashlib.sha256()
        self._most = most or 1 << 20
        self._start = bytearray()
        self.stdout = bytearray()

    def feed(self, data: bytes, *, error: bool = False) -> None:
        """Take what comes next."""
        self._hash.update(data)
        room = 4 * self._most - len(self._start)
        self._start += data[: max(0, room)]
        if not error:
            most = _MOST_ARTIFACTS * _LONGEST_ARTIFACT
            self.stdout += data[: max(0, most - len(self.stdout))]

    def sha256(self) -> str:
        """Of everything."""
        return self._hash.hexdigest()

    def text(self) -> str:
        """The first characters; NUL and invalid UTF-8 become U+FFFD."""
        text = redact(self._start.decode("utf-8", "replace").replace("\0", "\ufffd"))
        return text if len(text) <= self._most else f"{text[: self._most]}... [truncated]"


def evidence_file(store: str, iteration: int) -> str:
    """Where the evidence of an iteration waits."""
    return os.path.join(store, f"{iteration:03d}.evidence")


def kept_evidence(store: str, iteration: int, task: str) -> dict[str, Any] | None:
    """What the task's check found in this iteration; None if there was none."""
    try:
        with open(evidence_file(store, iteration), encoding="utf-8") as file:
            kept = json.load(file)
        return dict(kept["evidence"]) if kept["task"] == task else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def claimed_evidence(claim: str, artifacts: tuple[str, ...] = ()) -> dict[str, Any]:
    """That of a task which the agent's own word completes."""
    digest = _sha256(claim.encode("utf-8", "surrogateescape"))
    return Evidence(Kind.EXPLICIT, None, None, digest, artifacts).as_dict()


def _with_artifacts(evidence: Evidence, output: _Output) -> Evidence:
    lines = output.stdout.decode("utf-8", "replace").splitlines()
    named = [line.strip()[:_LONGEST_ARTIFACT] for line in lines if line.strip()]
    return Evidence(
        evidence.kind,
        evidence.command,
        evidence.exit_code,
        evidence.output_sha256,
        tuple(named[:_MOST_ARTIFACTS]),
    )


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


def _digest_of(path: str) -> str:
    """That of a file, or of the names in a directory."""
    if os.path.isdir(path):
        return _sha256(os.fsencode("\0".join(sorted(os.listdir(path)))))
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def proof_words(proof: Proved | None) -> dict[str, Any]:
    """What a task's evidence says of the tree that was proven, and of what is outside of it."""
    if proof is None:
        return {"tree": None}
    named = {"leftOut": proof.left_out, "putBack": proof.put_back, "hidden": proof.hidden}
    told = {name: list(paths) for name, paths in named.items() if paths}
    return {"tree": proof.tree, "outside": "ignored files", **told}
