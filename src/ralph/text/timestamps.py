"""Times as files of ours and of other tools have them."""

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """A time in UTC, to the millisecond: 2026-01-31T12:00:00.000Z."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
