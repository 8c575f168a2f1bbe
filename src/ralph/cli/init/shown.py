"""The words of `ralph init`: what was found, what was written, and what to type next."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ralph.agents.kinds import INSTALLED_BY, how_to_install, installed
from ralph.doctor.proposals import Proposals
from ralph.kernel.value import replace
from ralph.settings.source import SETTINGS
from ralph.ui.style import Style, Tone, aligned

if TYPE_CHECKING:
    from ralph.settings.from_others.merge import TakenOver


def found_lines(found: Proposals, style: Style) -> Iterator[str]:
    """A table: what it is, what is proposed, and where that comes from."""
    rows = [("agent", *_agent_words(found))]
    if flags := found.flags(found.command, found.sandbox) if found.command else ():
        rows.append(("flags", " ".join(flags), "it works without asking anybody"))
    for check in found.checks:
        why = f"not proposed: {check.lacks} is not installed; " if check.lacks else ""
        rows.append((check.role, check.command, f"{why}{check.source}"))
    if not found.checks:
        rows.append(("checks", "none found", "only the agent's word will count"))
    if found.commits:
        rows.append(("git", "commit", "after each iteration whose checks pass"))
    else:
        rows.append(("git", "no repository", "nothing is committed; to have one: git init"))
    if found.sandbox:
        rows.append(("sandbox", found.sandbox, "contains each turn, and undoes one that failed"))
    else:
        rows.append(("sandbox", "none here", "to see why: ralph sandbox probe"))
    whole = aligned(rows)
    for row, line in zip(rows, whole, strict=True):
        end = len(line.rstrip()) - len(row[2])
        yield f"  {line[:end]}{style.paint(row[2], Tone.FAINT)}".rstrip()


def _agent_words(found: Proposals) -> tuple[str, str]:
    agent = found.agent
    if agent is None:
        return found.command or "none", "not installed"
    version = agent.version or agent.trouble
    return found.command, ", ".join(filter(None, (version, found.login)))


def ending_lines(
    found: Proposals, command: str, run: str, environ: Mapping[str, str]
) -> Iterator[str]:
    """What a person has to do before the first run, if anything, and the command of that run."""
    if installed(command or None, environ):
        yield from found.todo if command == found.command else ()
        yield f"Next: {run}"
    elif command in INSTALLED_BY:
        yield f"Next, since {command} is not installed: {INSTALLED_BY[command]}"
        yield f"Then: {run}"
    elif command:
        yield f"There is no {command} on PATH yet. When it is there: {run}"
    else:
        yield from ("No agent is installed yet. One of these is enough:", *how_to_install(environ))
        yield f"Then: {run}"


def change_lines(outcome: "TakenOver", *, written: bool) -> Iterator[str]:
    """What was added to settings that were there; nothing of them is changed."""
    from ralph.settings.from_others.merge import changes

    outcome = replace(outcome, same=())
    if not outcome.added:
        yield f"{SETTINGS} stays as it is."
    else:
        yield f"{'Added' if written else 'Would be added'} to {SETTINGS}; the rest of it stays:"
    yield from changes(outcome)


def as_dict(found: Proposals, outcome: "TakenOver", run: str) -> dict[str, Any]:
    """All of it for programs."""
    agent = found.agent
    return {
        "agent": agent
        and {
            "command": found.command,
            "kind": agent.kind,
            "path": agent.path,
            "version": agent.version or None,
            "login": found.login or None,
        },
        "checks": [asdict(check) for check in found.checks],
        "git": found.commits,
        "sandbox": found.sandbox or None,
        "todo": found.todo,
        "added": dict(outcome.added),
        "kept": [each.key for each in outcome.conflicts],
        "written": outcome.written,
        "next": run,
    }
