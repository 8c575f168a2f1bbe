"""A CLI that nobody has logged in to says so in words, and does not begin."""

import re

from ralph.kernel.events import Usage
from ralph.kernel.turn import Ending, Turn

_LONGEST = 300  # characters of a line
_MOST_LINES = 2  # of an agent's own words: who says more has begun to work
_LOGIN = (  # compiled when a turn has failed
    r"please run /login|please (?:log|sign) ?in\b|not (?:logged|signed) in\b|not authenticated"
    r"|invalid (?:api key|authentication credentials)"
    r"|(?:no|missing|set an?) (?:api key|auth method)"
    r"|api key (?:is |was )?(?:missing|invalid|required|not (?:found|set|valid))"
    r"|(?:run|use|try) `?[\w-]+ (?:auth )?login\b|authentication (?:failed|required)"
    r"|(?:token|session|login) (?:has |is )?expired"
)


def login_words(turn: Turn) -> str:
    """The line in which the CLI of a failed turn asks for a login; "" if there is none. Nobody
    who has worked is asked: agents talk about logins too, and print errors about them."""
    failure, said = turn.failure, turn.text.strip().splitlines()
    known = failure is not None and failure.status is not None
    worked = turn.tools or turn.usage != Usage() or len(said) > _MOST_LINES
    if not turn.failed or turn.ending is not Ending.EXITED or known or worked:
        return ""
    message = failure.message if failure is not None else ""
    printed = (*turn.stray.splitlines(), *message.splitlines(), *said, *turn.stderr.splitlines())
    asking = (line.strip() for line in printed if re.search(_LOGIN, line, re.IGNORECASE))
    return next(asking, "")[:_LONGEST]
