"""All facts and events of a run as one document of JSON, written as it is read.

{"format": "ralph-export", "version": 1, "run": …, "ralph": …, "entries": [
  {"run": …, "fact": {"type": "began", "time": …, …}},
  {"run": …, "turn": 1, "event": {"type": "tool_start", …}, "time": …},
  {"run": …, "turn": 1, "prompt": …}, {"run": …, "turn": 1, "gap": …, "bytes": …}
], "totals": {…}, "problem": null}
"""

from collections import defaultdict
from collections.abc import Callable

from ralph import __version__
from ralph.export.lines import Json, line
from ralph.export.parts import Gap, Opened, Part, Said
from ralph.export.reading import Source
from ralph.journal.codec import encode
from ralph.journal.ledger import Accounts
from ralph.journal.spending import Sum
from ralph.kernel.facts import Launching

FORMAT, VERSION = "ralph-export", 1


def write_whole(source: Source, write: Callable[[str], object]) -> None:
    """Write the document of a run and its workers, in the order of time; each turn stands behind
    the fact that launched it."""
    spent, turns = Sum(), defaultdict[str, int](int)
    accounts: defaultdict[str, Accounts] = defaultdict(Accounts)  # by run
    head = {"format": FORMAT, "version": VERSION, "run": source.id, "ralph": __version__}
    write(f'{line(head)[:-1]},"entries":[')
    comma = ""
    for whose, told in source.merged():
        if isinstance(told, Part):
            entry = _entry(told)
            if not entry:
                continue
            entry = {"run": whose, "turn": turns[whose], **entry}
        else:
            entered = accounts[whose].take(told)
            spent = spent + entered if entered else spent
            turns[whose] += isinstance(told, Launching)
            entry = {"run": whose, "fact": encode(told)}
        write(f"{comma}\n{line(entry)}")
        comma = ","
    write(f"\n],{line({'totals': totals(spent), 'problem': source.problem or None})[1:]}\n")


def totals(spent: Sum) -> Json:
    """The sums of the ledger."""
    return {
        "cost_usd": spent.known_usd,
        "usage": encode(spent.usage),
        "turns": spent.turns,
        "turns_of_unknown_cost": spent.unknown,
    }


def _entry(part: Part) -> Json:
    match part:
        case Opened(prompt=prompt):
            return {"prompt": prompt}
        case Gap(why=why, bytes=size):
            return {"gap": why, "bytes": size}
        case Said(event=event, time=time):
            return {"event": encode(event), **({} if time is None else {"time": time})}
    return {}
