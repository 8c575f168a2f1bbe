"""A runner of ours for `action.yml`: it carries out the steps as GitHub's does, here.

`run` steps are run by bash with GITHUB_OUTPUT and the other files and directories; of `uses` steps
only names and inputs are kept. Expressions are evaluated with what `action.yml` needs of them.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kits.examples import ROOT

Json = dict[str, Any]
ACTION = ROOT / "action.yml"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_TOKEN = re.compile(r"\s*(?:'((?:[^']|'')*)'|(==|!=|&&|\|\||[!(),])|([\w.-]+))")


def action() -> Json:
    """`action.yml`."""
    read = yaml.safe_load(ACTION.read_text("utf-8"))
    assert isinstance(read, dict)
    return read


class Expression:
    """What stands between `${{` and `}}`, or in `if`."""

    def __init__(self, text: str, known: Mapping[str, str], *, failed: bool = False) -> None:
        self._tokens = list(self._split(text))
        self._known, self._failed = known, failed
        self.status = any(name in text for name in ("always()", "failure()", "success()"))

    def value(self) -> str | bool:
        found = self._or()
        assert not self._tokens, f"what is {self._tokens}?"
        return found

    @staticmethod
    def _split(text: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            assert found, f"cannot read {text[at:]!r}"
            at = found.end()
            yield (
                ("text", found[1].replace("''", "'"))
                if found[1] is not None
                else (("sign", found[2]) if found[2] else ("name", found[3]))
            )

    def _next(self, *signs: str) -> str:
        if self._tokens and self._tokens[0][0] == "sign" and self._tokens[0][1] in signs:
            return self._tokens.pop(0)[1]
        return ""

    def _or(self) -> str | bool:
        left = self._and()
        while self._next("||"):
            right = self._and()
            left = left or right
        return left

    def _and(self) -> str | bool:
        left = self._equal()
        while self._next("&&"):
            right = self._equal()
            left = right if left else left
        return left

    def _equal(self) -> str | bool:
        left = self._one()
        if sign := self._next("==", "!="):
            return (left == self._one()) is (sign == "==")
        return left

    def _one(self) -> str | bool:
        if self._next("!"):
            return not self._one()
        if self._next("("):
            inner = self._or()
            assert self._next(")")
            return inner
        kind, word = self._tokens.pop(0)
        if kind == "text":
            return word
        if self._next("("):
            assert self._next(")"), "functions have no arguments here"
            return {"always": True, "success": not self._failed, "failure": self._failed}[word]
        context, _, rest = word.partition(".")
        assert context in ("inputs", "steps", "github", "runner"), f"{word} is not known here"
        if context in ("inputs", "github", "runner"):
            assert word in self._known, f"{word} is not there"
        assert rest
        return self._known.get(word, "")


@dataclass
class Ended:
    """What came of the action."""

    code: int = 0
    outputs: dict[str, str] = field(default_factory=dict)
    log: dict[str, str] = field(default_factory=dict)  # by the name of each step that ran
    used: dict[str, Json] = field(default_factory=dict)  # `with` of each `uses` step
    summary: str = ""


@dataclass
class Runner:
    """A machine of GitHub's, as far as the action sees it."""

    workspace: Path
    temp: Path
    environ: dict[str, str]
    skipped: tuple[str, ...] = ()  # names of steps that somebody has carried out already

    def __call__(self, **given: str) -> Ended:
        """Run the action with these inputs, `_` for `-`."""
        read, ended, failed = action(), Ended(), False
        known = self._contexts(read, {n.replace("_", "-"): held for n, held in given.items()})
        self.temp.mkdir(parents=True, exist_ok=True)
        for number, step in enumerate(read["runs"]["steps"]):
            test = Expression(str(step.get("if", "success()")), known, failed=failed)
            if not test.value() or (failed and not test.status):
                continue
            if "uses" in step:
                ended.used[step["uses"]] = {
                    name: self._filled(str(held), known) for name, held in step["with"].items()
                }
            elif step["name"] not in self.skipped:
                failed |= not self._run(step, number, known, ended)
        for name, told in read["outputs"].items():
            ended.outputs[name] = self._filled(told["value"], known)
        ended.code = max(ended.code, int(failed))
        summary = self.temp / "summary.md"
        ended.summary = summary.read_text() if summary.exists() else ""
        return ended

    def _contexts(self, read: Json, given: dict[str, str]) -> dict[str, str]:
        known = {"github.action_path": str(ROOT), "runner.temp": str(self.temp)}
        known["github.token"] = "the-job's-own-token"
        assert given.keys() <= read["inputs"].keys()
        for name, told in read["inputs"].items():
            default = self._filled(str(told.get("default", "")), known)
            known[f"inputs.{name}"] = given.get(name, default)
        return known

    @staticmethod
    def _filled(text: str, known: Mapping[str, str]) -> str:
        return EXPRESSION.sub(lambda found: str(Expression(found[1], known).value()), text)

    def _run(self, step: Json, number: int, known: dict[str, str], ended: Ended) -> bool:
        assert step["shell"] == "bash"
        output, script = self.temp / f"output-{number}", self.temp / f"step-{number}.sh"
        output.touch()
        script.write_text(step["run"])
        env = {name: self._filled(held, known) for name, held in step.get("env", {}).items()}
        files = {
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md"),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temp),
        }
        where = self._filled(step.get("working-directory", "."), known)
        done = subprocess.run(
            ("bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)),
            cwd=self.workspace / where,
            env={**os.environ, **self.environ, **files, **env},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        ended.log[step["name"]] = done.stdout + done.stderr
        ended.code = done.returncode or ended.code
        for name, held in _outputs(output.read_text()):
            known[f"steps.{step.get('id', number)}.outputs.{name}"] = held
        return done.returncode == 0


def _outputs(text: str) -> Iterator[tuple[str, str]]:
    """`name=value` lines; ours need no others."""
    for line in text.splitlines():
        name, equals, held = line.partition("=")
        assert equals, f"no output: {line}"
        yield name, held


def installed(temp: Path, ralph: str = "") -> None:
    """What the step that installs Ralph leaves there: this Ralph, or another program."""
    place = temp / "ralph" / "bin"
    place.mkdir(parents=True)
    own = f'#!/bin/sh\nexec "{sys.executable}" -P -m ralph "$@"\n'
    for name, text in (
        ("ralph", ralph or own),
        ("python", f'#!/bin/sh\nexec {sys.executable} "$@"\n'),
    ):
        (place / name).write_text(text)
        (place / name).chmod(0o755)
