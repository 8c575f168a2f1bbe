"""The keys of a suite, and what each may hold."""

from typing import Annotated, Any

from msgspec import field

from ralph.settings.schema import (
    PositiveCount,
    PositiveDollars,
    PositiveSeconds,
    SandboxName,
    SettingsGroup,
    Switch,
    Text,
    VariableName,
    Word,
    allows,
    doc,
)

Number = Annotated[int, allows("a whole number")]


class SuiteGroup(SettingsGroup, frozen=True, rename=str):
    """A table of a suite; its keys are the fields' names."""


class SuiteTask(SuiteGroup, frozen=True):
    """A task: what the agent is told, where it begins, and the check that is the truth."""

    name: Annotated[Word, doc("Its name.")]
    prompt: Annotated[Word, doc("The text for the agent.")]
    check: Annotated[Word, doc("The shell command that passes when the task is done.")]
    dir: Annotated[Word | None, doc("A folder beside the suite with which it begins.")] = None
    files: Annotated[dict[Word, Text], doc("Files with which it begins, by path.")] = field(
        default_factory=dict
    )
    repo: Annotated[Word | None, doc("A git repository with which it begins.")] = None
    ref: Annotated[Word, doc("The commit, branch or tag of that.")] = "HEAD"
    setup: Annotated[Word | None, doc("A command that prepares a checkout.")] = None
    hidden_dir: Annotated[
        Word | None, doc("A folder beside the suite, laid over the work for the check alone.")
    ] = None
    hidden_files: Annotated[dict[Word, Text], doc("The same, by path.")] = field(
        default_factory=dict
    )
    protect: Annotated[
        tuple[Text, ...] | None,
        doc("Files that are put back before the check; null: tests, and what the check names."),
    ] = None
    needs: Annotated[
        tuple[Word, ...], doc("Programs without which it cannot be checked on a machine.")
    ] = ()
    iterations: Annotated[PositiveCount | None, doc("Turns of the agent; null: as the suite.")] = (
        None
    )
    timeout: Annotated[PositiveSeconds | None, doc("Seconds of a turn; null: as the suite.")] = None
    check_timeout: Annotated[
        PositiveSeconds | None, doc("Seconds of the check; null: as the suite.")
    ] = None


class SuiteAgent(SuiteGroup, frozen=True):
    """An agent, or an agent with settings of its own."""

    name: Annotated[Word, doc("Its name in tables.")]
    command: Annotated[Word | None, doc("Its command, as text or a list; null: its name.")] = None
    kind: Annotated[Word | None, doc("How to speak to it; null: by its command.")] = None
    model: Annotated[Word | None, doc("Its model.")] = None
    flags: Annotated[tuple[Text, ...], doc("Arguments for it.")] = ()
    env: Annotated[dict[VariableName, Text], doc("Variables of its environment.")] = field(
        default_factory=dict
    )
    settings: Annotated[
        dict[Text, Any], doc("Settings of its runs, as .ralph/settings.json has them.")
    ] = field(default_factory=dict)


class SuiteFile(SuiteGroup, frozen=True):
    """A suite: tasks, agents, and how often each tries each."""

    tasks: Annotated[tuple[SuiteTask, ...], doc("The tasks.")] = ()
    agents: Annotated[tuple[SuiteAgent, ...], doc("The agents.")] = ()
    repeats: Annotated[PositiveCount, doc("Trials of each agent at each task.")] = 1
    iterations: Annotated[PositiveCount, doc("Turns of a trial; after each the check runs.")] = 1
    timeout: Annotated[PositiveSeconds, doc("Seconds of a turn.")] = 1800
    check_timeout: Annotated[PositiveSeconds, doc("Seconds of a check.")] = 600
    max_time: Annotated[PositiveSeconds | None, doc("Seconds of a trial.")] = None
    max_cost: Annotated[PositiveDollars | None, doc("Dollars of a trial.")] = None
    parallel: Annotated[PositiveCount | None, doc("Trials at a time; null: by the machine.")] = None
    sandbox: Annotated[SandboxName | None, doc("Where turns run; null: in the checkout.")] = None
    seed: Annotated[Number, doc("It decides the order of the trials.")] = 1
    keep: Annotated[Switch, doc("Keep the checkouts.")] = False
    settings: Annotated[dict[Text, Any], doc("Settings of all runs.")] = field(default_factory=dict)
