"""The two alphabets of the display: emoji, and ASCII for logs and old terminals (H §Formatter)."""

from ralph.core.value import value


@value
class Marks:
    """What stands in front of each kind of line."""

    call: str
    good: str
    bad: str
    output: str
    todo: str
    done: str
    active: str
    pending: str
    progress: str
    thinking: str
    retry: str
    limited: str
    question: str
    status: str
    arrow: str
    ellipsis: str


EMOJI = Marks(
    call="⏺",
    good="✅",
    bad="❌",
    output="⎿",
    todo="📋",
    done="✅",
    active="🔄",
    pending="⏸️",
    progress="📊",
    thinking="💭",
    retry="🔁",
    limited="⏳",
    question="❓",
    status="·",
    arrow="←",
    ellipsis="…",
)

TEXT = Marks(
    call="[*]",
    good="[OK]",
    bad="[ERR]",
    output="|",
    todo="[TODO]",
    done="[x]",
    active="[>]",
    pending="[ ]",
    progress="[=]",
    thinking="[~]",
    retry="[RETRY]",
    limited="[WAIT]",
    question="[?]",
    status="[-]",
    arrow="<-",
    ellipsis="...",
)
