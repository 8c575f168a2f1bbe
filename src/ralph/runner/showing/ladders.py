"""The ladders of all loops, and their rules in words."""

from collections.abc import Iterable, Iterator, Mapping

from ralph.kernel.case import Ladder, Rule, short_name
from ralph.kernel.ports import Policy
from ralph.runner.loops import LOOPS
from ralph.runner.plan import loop_named
from ralph.settings.load import Loaded


def policies(loaded: Loaded, names: Iterable[str] = LOOPS) -> tuple[Policy, ...]:
    """The policies of loops, by default of all that are commands, as these settings make them."""
    return tuple(loop_named(name).policy(loaded) for name in names)


def ladders(policy: Policy) -> Iterator[tuple[str, Ladder]]:
    """Each boundary with the rules that are asked there, in order."""
    for boundary in ("opening", "retaking", "watching", "stopping", "closing"):
        if ladder := getattr(policy, boundary):
            yield boundary, ladder


def words(rule: Rule) -> str:
    """The first line of a rule's explanation."""
    return (rule.__doc__ or "").strip().partition("\n")[0]


def words_by_name(of: Iterable[Policy]) -> Mapping[str, str]:
    """The words of all rules, by the names that journals have."""
    found = (rule for policy in of for _, ladder in ladders(policy) for rule in ladder)
    return {short_name(rule): words(rule) for rule in found}
