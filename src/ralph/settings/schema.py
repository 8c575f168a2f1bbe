"""The settings, their defaults and what each may hold. The JSON Schema and the docs come from here.

Every leaf type but a choice carries the words that an error uses for what is allowed. Numbers
have an upper bound, far beyond any use, so that NaN and Infinity are never in range.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from ralph.kernel.limits import Prices
from ralph.kernel.verdict import Placement
from ralph.text.words import DURATION

_MOST = 1_000_000_000
AS_TEXT = f"^{DURATION}$"  # a duration as text, see `durations`
_OR_TEXT = ', or text such as "90s", "30m" or "8h"'
_AS_TEXT = {"extra_json_schema": {"pattern": AS_TEXT}}


def allows(words: str, *, filled: bool = False, **bounds: Any) -> Meta:  # noqa: ANN401  of msgspec
    return Meta(**bounds, extra={"allowed": words, "filled": filled})


def doc(words: str) -> Meta:
    return Meta(description=words)


Switch = Annotated[bool, allows("true or false")]
Text = Annotated[str, allows("text")]
Word = Annotated[str, allows("text that is not blank", pattern=r"\S")]
# Without a pattern of msgspec's, which it frees twice where it stands in a union.
Line = Annotated[
    str,
    allows(
        "text that is not blank, or a list of words",
        filled=True,
        extra_json_schema={"pattern": r"\S"},
    ),
]
Words = Annotated[tuple[Word, ...], allows("a list of words, one at least", min_length=1)]
VariableName = Annotated[str, allows("the name of an environment variable", pattern=r"^[^=]+$")]
Count = Annotated[int, allows("a whole number, 0 or more", ge=0)]
PositiveCount = Annotated[int, allows("a whole number, 1 or more", ge=1)]
Seconds = Annotated[
    float, allows(f"seconds, from 0 to {_MOST:,}{_OR_TEXT}", **_AS_TEXT, ge=0, le=_MOST)
]
PositiveSeconds = Annotated[
    float, allows(f"seconds, more than 0, at most {_MOST:,}{_OR_TEXT}", **_AS_TEXT, gt=0, le=_MOST)
]
PositiveDollars = Annotated[
    float, allows(f"dollars, more than 0, at most {_MOST:,}", gt=0, le=_MOST)
]
Price = Annotated[float, allows("dollars for a million tokens, 0 or more", ge=0, le=_MOST)]
FailAction = Annotated[Placement, allows("APPEND, PREPEND or REPLACE (any case)")]
SandboxName = Literal["auto", "overlay", "srt", "sbx", "docker", "worktree", "direct"]


class SettingsGroup(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A JSON object of the settings; its keys are the fields' names in camel case."""


class EnvironmentSettings(SettingsGroup, frozen=True):
    """The agent's environment: everything passes, except what Ralph removes (ADR 13)."""

    keep: Annotated[
        tuple[VariableName, ...], doc("Variables to pass although Ralph would remove them.")
    ] = ()
    unset: Annotated[tuple[VariableName, ...], doc("Variables to remove as well.")] = ()
    set: Annotated[
        dict[VariableName, Text], doc("Variables to set, by name. The values are never printed.")
    ] = field(default_factory=dict)


class PriceSettings(SettingsGroup, frozen=True):
    """The price of a million tokens, in dollars, for an agent that reports no cost."""

    input: Annotated[Price, doc("Input tokens.")]
    output: Annotated[Price, doc("Output tokens.")]
    cache_read: Annotated[
        Price | None, doc("Input read from the cache; as input where not given.")
    ] = None
    cache_write: Annotated[
        Price | None, doc("Input written to the cache; as input where not given.")
    ] = None

    def prices(self) -> Prices:
        """The prices to reckon with; what is not given costs as much as input, never nothing."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return Prices(self.input, self.output, read, write)


class FallbackSettings(SettingsGroup, frozen=True):
    """An agent that goes on where another cannot."""

    command: Annotated[Line | Words, doc("Its command, or the words of it.")]
    model: Annotated[Word | None, doc("The model it shall use; null: its own choice.")] = None
    flags: Annotated[
        tuple[Text, ...],
        doc("Arguments for it; none: those of `agent`, if its command is the same."),
    ] = ()
    kind: Annotated[Word | None, doc("How to speak to it; null: by its command's name.")] = None
    prices: Annotated[
        PriceSettings | None, doc("Dollars for a million tokens, where it reports no cost.")
    ] = None


class AgentSettings(SettingsGroup, frozen=True):
    """The agent that runs, and how it is started."""

    command: Annotated[
        Line | Words | None,
        doc("The agent's command, or the words of it; null: the first known agent on PATH."),
    ] = None
    flags: Annotated[
        tuple[Text, ...], doc('Arguments for the agent. "--model opus" is split like shell words.')
    ] = ()
    kind: Annotated[
        Word | None, doc("How to speak to the agent; null: by the name of its command.")
    ] = None
    model: Annotated[Word | None, doc("The model the agent shall use.")] = None
    env: Annotated[EnvironmentSettings, doc("Changes to the agent's environment.")] = (
        EnvironmentSettings()
    )
    permissions: Annotated[
        Literal["sandbox", "ask"],
        doc(
            "Permission of tools in tasks run and prd run: by the sandbox that contains the "
            'agent ("sandbox"), or by the agent\'s own rules ("ask").'
        ),
    ] = "sandbox"
    prices: Annotated[
        PriceSettings | None, doc("Dollars for a million tokens, where the agent reports no cost.")
    ] = None
    probe: Annotated[Switch, doc("Ask a known agent for its flags, once for each binary.")] = True
    prompt_via: Annotated[
        Literal["arg", "stdin", "file"] | None,
        doc("How the prompt reaches the agent; null: as its kind wants it."),
    ] = None
    fallbacks: Annotated[
        tuple[FallbackSettings, ...],
        doc(
            "Agents that go on, in this order, when the provider of the one before lets nobody in."
        ),
    ] = ()
    fallback_after: Annotated[
        Seconds, doc("Seconds to wait for the agent at most where another one could go on.")
    ] = 300


class GuardrailSettings(SettingsGroup, frozen=True):
    """A command that must succeed after every iteration (H §Guardrails)."""

    command: Annotated[Word, doc("The shell command to run.")]
    fail_action: Annotated[
        FailAction, doc("Where a failure goes in the next prompt: APPEND, PREPEND, REPLACE.")
    ] = Placement.APPEND
    hint: Annotated[Text | None, doc("Guidance for the agent when the command fails.")] = None
    timeout: Annotated[
        PositiveSeconds | None, doc("Seconds after which the command has failed.")
    ] = None
    sandbox: Annotated[Switch, doc("Run it in a sandbox too, where the agent has one.")] = True


class ScmSettings(SettingsGroup, frozen=True):
    """Version control of the changes when every guardrail passes (H §SCM Tasks)."""

    command: Annotated[Word, doc("The version control command.")] = "git"
    tasks: Annotated[tuple[Word, ...], doc("Its tasks, in order, such as commit and push.")] = ()


class DisplaySettings(SettingsGroup, frozen=True):
    """Display of the agent's work (H §Formatter)."""

    emoji: Annotated[
        Switch | None, doc("Emoji as markers, everywhere or nowhere; null: on a terminal.")
    ] = None
    color: Annotated[
        Switch | None, doc("Colours, everywhere or nowhere; null: on a terminal, without NO_COLOR.")
    ] = None
    timestamps: Annotated[Switch, doc("[HH:MM:SS] before each line.")] = False
    max_output_lines: Annotated[Count, doc("Lines of a tool's output to show.")] = 3
    max_output_chars: Annotated[Count, doc("Characters of each such line to show.")] = 120


class GuardSettings(SettingsGroup, frozen=True):
    """The guard, which judges shell commands before an agent runs them."""

    enabled: Annotated[Switch, doc("Whether it judges where no sandbox contains the agent.")] = True
    level: Annotated[
        Literal["standard", "strict"],
        doc(
            "`standard` refuses what hurts beyond the project; `strict` also what "
            "rewrites local history or ends processes."
        ),
    ] = "standard"
    allow: Annotated[
        tuple[Word, ...],
        doc("Patterns of commands that are allowed although the guard refuses them."),
    ] = ()


class SecretsSettings(SettingsGroup, frozen=True):
    """Files that look like secrets, which no turn may commit (ADR 13)."""

    allow: Annotated[
        tuple[Word, ...],
        doc(
            "Paths, directories or patterns of files that may be committed although "
            "they look like secrets, such as tests/fixtures/*.pem."
        ),
    ] = ()


class PullSettings(SettingsGroup, frozen=True):
    """Pull requests for the work (merge requests at GitLab)."""

    mode: Annotated[
        Literal["per-task", "per-run", "stacked"] | None,
        doc(
            "One for each task, made from the base; one for the whole run; or one for each task, "
            "on top of the one before. null: none."
        ),
    ] = None
    base: Annotated[Word | None, doc("The branch to merge into; null: the forge's default.")] = None
    draft: Annotated[Switch, doc("Open them as drafts.")] = False
    labels: Annotated[tuple[Word, ...], doc("Labels to put on them.")] = ()
    reviewers: Annotated[
        tuple[Word, ...], doc("People to ask for a review; at GitHub also teams: org/team.")
    ] = ()
    merge: Annotated[Switch, doc("Merge them once they are complete.")] = False
    merge_method: Annotated[Literal["merge", "squash", "rebase"], doc("How they are merged.")] = (
        "merge"
    )


class CiSettings(SettingsGroup, frozen=True):
    """Continuous integration: the work is complete when it is green on that very commit."""

    enabled: Annotated[Switch | None, doc("Whether its word counts; null: with pull requests.")] = (
        None
    )
    required: Annotated[
        tuple[Word, ...], doc("Checks that must pass, by name; none: all that there are.")
    ] = ()
    neutral: Annotated[Literal["pass", "fail"], doc("What a neutral check counts as.")] = "pass"
    skipped: Annotated[Literal["pass", "fail"], doc("What a skipped check counts as.")] = "pass"
    start: Annotated[
        Seconds, doc("Seconds in which a first check must appear; then there is no CI here.")
    ] = 120
    poll: Annotated[PositiveSeconds, doc("Seconds between two looks.")] = 15
    repairs: Annotated[
        Count, doc("Times the agent is told of a red CI before a person is needed.")
    ] = 3


class StepDownSettings(SettingsGroup, frozen=True):
    """A cheaper model for the rest, once most of the money is spent."""

    at: Annotated[
        float,
        allows("a share, more than 0 and less than 1", gt=0, lt=1),
        doc("Share of the limit."),
    ]
    model: Annotated[Word, doc("The model from there on.")]


class LoopSettings(SettingsGroup, frozen=True):
    """Limits and order of work on a backlog (B §Configuration)."""

    max_iterations_per_task: Annotated[
        PositiveCount, doc("Iterations after which a task is blocked.")
    ] = 10
    max_time_per_task: Annotated[
        PositiveSeconds, doc("Seconds of work after which a task is blocked.")
    ] = 1800
    max_cost_per_task: Annotated[PositiveDollars, doc("Dollars after which a task is blocked.")] = 5
    max_tasks_per_run: Annotated[PositiveCount, doc("Tasks after which the run ends.")] = 50
    max_time_per_run: Annotated[
        PositiveSeconds, doc("Seconds of work after which the run ends.")
    ] = 14_400
    max_cost_per_run: Annotated[PositiveDollars, doc("Dollars after which the run ends.")] = 50
    max_cost_per_day: Annotated[
        PositiveDollars | None,
        doc("Dollars of all runs here since midnight after which no run goes on."),
    ] = None
    on_failure: Annotated[
        Literal["continue", "stop", "retry"],
        doc(
            "After a task that failed: continue with the next one, stop the run, "
            "or retry that task."
        ),
    ] = "continue"
    parallelism: Annotated[
        PositiveCount, doc("Tasks worked on at the same time, each in a git worktree of its own.")
    ] = 1
    train: Annotated[
        PositiveCount,
        doc("At most so many tasks that wait to be merged are checked and merged together."),
    ] = 8
    setup: Annotated[
        Word | None, doc("A command that prepares each new worktree, such as npm ci.")
    ] = None
    check_timeout: Annotated[
        PositiveSeconds, doc("Seconds after which a completion check has failed.")
    ] = 600
    test_command: Annotated[
        Word,
        doc(
            "The command before the text of a test_passing check with grep. If it is given, it "
            "also runs the tests named after the id of a task that says nothing else completes it."
        ),
    ] = "npm test -- --grep"
    step_down: Annotated[
        StepDownSettings | None,
        doc("Change to a cheaper model when this share of the run's money is spent."),
    ] = None


class FleetSettings(SettingsGroup, frozen=True):
    """Turns on other machines, by Dask (the extra fleet)."""

    address: Annotated[
        Word | None,
        doc("Where the fleet is, such as tls://build.example.com:8786; local: on this machine."),
    ] = None
    remote: Annotated[
        Word | None,
        doc(
            "A git remote that all machines reach, by name or URL; null: origin, or on this "
            "machine the repository itself."
        ),
    ] = None
    lease: Annotated[
        PositiveSeconds,
        doc("Seconds after which a machine that is not heard of counts as lost; 2 to 86400."),
    ] = 60
    tls: Annotated[
        Word | None, doc("The directory with ca.pem, cert.pem and key.pem of this machine.")
    ] = None


class HookSettings(SettingsGroup, frozen=True):
    """Commands that are told what happens, as JSON on standard input (B §Hooks)."""

    on_task_start: Annotated[Word | None, doc("Before a task's first iteration.")] = None
    on_iteration_start: Annotated[Word | None, doc("Before each iteration.")] = None
    on_action: Annotated[Word | None, doc("For each action: read, write, bash, git or eval.")] = (
        None
    )
    on_iteration_end: Annotated[Word | None, doc("When an iteration has been judged.")] = None
    on_task_end: Annotated[Word | None, doc("When a task is done or blocked.")] = None
    on_anomaly: Annotated[
        Word | None, doc("When something happens that a person should look at.")
    ] = None


class NotifySettings(SettingsGroup, frozen=True):
    """Notifications when a run has ended, and when a task needs a person."""

    command: Annotated[
        Word | None, doc("A shell command that gets what happened on standard input.")
    ] = None
    urls: Annotated[
        tuple[Word, ...], doc("URLs of apprise (the extra notify). They are never printed.")
    ] = ()
    bell: Annotated[Switch, doc("Ring the terminal, and show it on the desktop (notify-send).")] = (
        False
    )


class Settings(SettingsGroup, frozen=True):
    """The settings of `ralph run`, from .ralph/settings.json and .ralph/settings.local.json."""

    maximum_iterations: Annotated[PositiveCount, doc("Iterations after which the run ends.")] = 10
    completion_response: Annotated[
        Word, doc("What the agent says in <response> tags when it is done.")
    ] = "DONE"
    output_truncate_chars: Annotated[
        Count, doc("Characters of a guardrail's output for the agent; 0: the whole.")
    ] = 5000
    stream_agent_output: Annotated[Switch, doc("Show the agent's output as it comes.")] = True
    include_iteration_count_in_prompt: Annotated[
        Switch, doc('Begin the prompt with "Iteration X of Y, Z remaining."')
    ] = False
    tell_completion: Annotated[
        Switch, doc("Tell the agent how to finish, unless the prompt contains <response>.")
    ] = True
    until_green: Annotated[
        Switch, doc("`ralph run` completes as soon as every guardrail passes; no tag is needed.")
    ] = False
    agent: Annotated[AgentSettings, doc("The agent.")] = AgentSettings()
    guardrails: Annotated[
        tuple[GuardrailSettings, ...], doc("Commands that must succeed after every iteration.")
    ] = ()
    scm: Annotated[
        ScmSettings | None, doc("Version control tasks to run when every guardrail passes.")
    ] = None
    display: Annotated[DisplaySettings, doc("How the agent's work is shown.")] = DisplaySettings()
    fail_after: Annotated[
        Count, doc("Failed turns in a row after which the run ends; 0: never.")
    ] = 3
    fail_delay: Annotated[
        Seconds, doc("Seconds before the turn after a failed one; doubles to a minute.")
    ] = 1
    stall_after: Annotated[
        Count, doc("Iterations without progress after which the run ends; 0: never.")
    ] = 0
    max_wait: Annotated[Seconds, doc("Seconds the run may wait for the provider, in all.")] = 86_400
    result_grace: Annotated[
        Seconds, doc("Seconds for the agent to exit after it has said its result.")
    ] = 10
    end_grace: Annotated[
        Seconds, doc("Seconds between INT, TERM and KILL when something has to be ended.")
    ] = 5
    protect: Annotated[
        tuple[Text, ...], doc("Paths, directories or globs that the agent may not change.")
    ] = (".ralph/settings*.json", ".claude/settings*.json", ".git/hooks")
    proof: Annotated[
        Literal["tree", "clean"],
        doc(
            "Where gates run: in the project, on the tree that would be committed, or "
            '("clean") in a fresh worktree of that tree, after loop.setup.'
        ),
    ] = "tree"
    guard: Annotated[GuardSettings, doc("The guard.")] = GuardSettings()
    secrets: Annotated[SecretsSettings, doc("Files that look like secrets are not committed.")] = (
        SecretsSettings()
    )
    sandbox: Annotated[
        SandboxName | None,
        doc("Where turns run, so that a failed one can be undone; null: in place."),
    ] = None
    network: Annotated[
        Word | None,
        doc(
            "Hosts that a sandbox may reach besides the agent's provider: HOST,...; "
            '"on": all; "off": none at all.'
        ),
    ] = None
    sandbox_show: Annotated[
        tuple[Word, ...],
        doc("Credentials that a sandbox shows although it would hide them: ~/.aws."),
    ] = ()
    max_time: Annotated[PositiveSeconds | None, doc("Seconds after which the run ends.")] = None
    timeout: Annotated[PositiveSeconds | None, doc("Seconds one turn of the agent may take.")] = (
        None
    )
    idle_timeout: Annotated[PositiveSeconds | None, doc("Seconds the agent may be silent.")] = None
    stop_grace: Annotated[
        PositiveSeconds | None, doc("Seconds the agent may still work after the first Ctrl+C.")
    ] = None
    max_cost: Annotated[PositiveDollars | None, doc("Dollars after which the run ends.")] = None
    pr: Annotated[PullSettings, doc("Pull requests for the work.")] = PullSettings()
    ci: Annotated[CiSettings, doc("Continuous integration.")] = CiSettings()
    loop: Annotated[LoopSettings, doc("How `ralph tasks run` works through a backlog.")] = (
        LoopSettings()
    )
    fleet: Annotated[FleetSettings, doc("Turns of `ralph tasks run` on other machines.")] = (
        FleetSettings()
    )
    hooks: Annotated[HookSettings, doc("Commands that `ralph tasks run` tells what happens.")] = (
        HookSettings()
    )
    notify: Annotated[
        NotifySettings, doc("Notifications when a run has ended, and when a task needs a person.")
    ] = NotifySettings()
