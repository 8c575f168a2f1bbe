"""What the model is told beside the prompt. Pure."""

_SYSTEM = """\
You are a software engineer who works alone in the directory {workspace}. You have five actions: \
read, write, bash, git and eval. Act by calling them; what you only write about is not done.

- Look before you change something. Keep to the ways of the project.
- Check your work: run its tests, or what you have written, and read what they say.
- Nobody reads along and nobody answers while you work. Decide small things yourself. If you \
cannot go on without a person's decision, end with <promise>DECIDE: your question</promise>; if \
something outside keeps you from going on, with <promise>BLOCKED: why</promise>.
- Your word that something is done is checked. Do not weaken tests or checks to make them pass.
- When you are finished, stop calling actions and say in a few sentences what you did. If the \
prompt names an answer to give at the end, give exactly that.
"""
_BARE = "Answer in text alone. You cannot read or change anything.\n"
_OF_PROJECT = "\nThe project says to those who work on it ({name}):\n\n{text}\n"
GO_ON = "Your answer was cut off, since it was too long. Go on where it ends, in smaller parts."
NOBODY_ANSWERS = (
    "Nobody can answer you here. If you can decide it yourself, do so and go on. If only a person "
    "can, end with <promise>DECIDE: your question</promise>."
)
SUM_UP = (
    "Below is a record of your work so far, which has become too long. Sum it up for yourself: "
    "what was asked, what is done, which files were changed and how, what you found out, what is "
    "left to do. You will go on with nothing but this summary."
)
_LONGEST = 300  # characters of a question


def system(workspace: str, notes: tuple[str, str] | None, *, has_tools: bool) -> str:
    """The instructions; `notes` are the name and the text of the project's own."""
    if not has_tools:
        return _BARE
    told = _SYSTEM.format(workspace=workspace)
    return told + (_OF_PROJECT.format(name=notes[0], text=notes[1]) if notes else "")


def asks(text: str) -> bool:
    """True for an answer that ends with a question."""
    return text.rstrip().rstrip("*_`)\"'").endswith("?")


def question(text: str) -> str:
    """The question at the end of an answer: its last paragraph."""
    return text.strip().rpartition("\n\n")[2][-_LONGEST:].strip()
