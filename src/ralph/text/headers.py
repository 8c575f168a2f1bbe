"""Numbers and dates in the headers of an HTTP answer; None for anything else."""

from email.utils import parsedate_to_datetime


def number(text: str | None) -> float | None:
    """A number that is neither negative nor endless."""
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if 0 <= found < float("inf") else None


def date(text: str | None) -> float | None:
    """A date as HTTP writes it, in seconds since 1970."""
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError):
        return None
