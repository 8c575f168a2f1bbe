"""The two alphabets of the display: emoji, and ASCII for logs and old terminals (H §Formatter)."""

from ralph.kernel.value import value


@value
class Marks:
    """What stands in front of each kind of line."""

    call: str
    good: str
    bad: str
    output: str
    below: str  # in front of the output's other lines
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
    between: str
    still: str
    spinner: str


EMOJI = Marks(
    call="⏺",
    good="✅",
    bad="❌",
    output="⎿",
    below=" ",
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
    between=" · ",
    still="•",
    spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
)

TEXT = Marks(
    call="[*]",
    good="[OK]",
    bad="[ERR]",
    output="|",
    below="|",
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
    between=" - ",
    still="*",
    spinner="|/-\\",
)
