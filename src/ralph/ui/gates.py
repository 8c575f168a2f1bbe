"""The findings of gates, and what of them the agent is told, in words for people."""

from collections.abc import Iterator

from ralph.kernel.facts import Checked, Checking, Proved
from ralph.kernel.findings import Finding
from ralph.kernel.prompt import told
from ralph.kernel.verdict import Feedback
from ralph.text.plain import first_line
from ralph.text.words import duration
from ralph.ui.lines import Briefing, Line
from ralph.ui.proof import proof_lines
from ralph.ui.style import Tone


def gate_lines(fact: Checking | Checked | Proved, briefing: Briefing) -> Iterator[Line]:
    """H §Guardrails: print exit status and fail action. Other gates speak only if they object."""
    if isinstance(fact, Proved):
        yield from proof_lines(fact)
        return
    if isinstance(fact, Checking):
        if briefing.announces(fact.gate):
            yield Line(f"Running guardrail: {fact.gate}")
        return
    took = f"({duration(fact.seconds)})"
    if fact.findings:
        for finding in fact.findings:
            yield Line(_objection(finding, took, briefing), Tone.BAD)
    elif briefing.announces(fact.gate):
        yield Line(f"Guardrail exited with code 0 {took}", Tone.GOOD)
    else:
        yield Line(f"{fact.gate}: nothing found {took}", verbose=True)


def _objection(finding: Finding, took: str, briefing: Briefing) -> str:
    log = f", output in {finding.log}" if finding.log else ""
    if finding.code is None or not briefing.announces(finding.gate):
        words = first_line(finding.text)
        return f"{finding.gate}: {words.rstrip('.')}{log}" if log else f"{finding.gate}: {words}"
    action = f"fail action {finding.placement}"
    return f"Guardrail exited with code {finding.code} {took}: {action}{log}"


def fed_back(findings: tuple[Finding, ...], feedback: tuple[Feedback, ...]) -> Iterator[Line]:
    """The gates whose findings the agent is told: those before a REPLACE it does not hear (H)."""
    kept = told(feedback)
    named = dict.fromkeys(f.gate for f in findings if f.feedback() in kept)
    wiped = [f.gate for f in findings if f.feedback() in feedback and f.gate not in named]
    if named:
        without = f", but not what {', '.join(dict.fromkeys(wiped))} found" if wiped else ""
        yield Line(f"Not done yet: the agent is told what {', '.join(named)} found{without}")
