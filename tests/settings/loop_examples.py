"""Settings files as people have them, one or more for each loop, and what they are with us."""

from typing import Any, NamedTuple

Json = dict[str, Any]


class Example(NamedTuple):
    loop: str
    name: str
    text: str
    settings: Json
    lost: tuple[str, ...]  # the keys


RALPH_CLI = Example(
    "ralph-cli",
    ".ralph/settings.json",
    """{
  "maximumIterations": 25,
  "completionResponse": "ALL DONE",
  "outputTruncateChars": 3000,
  "streamAgentOutput": false,
  "includeIterationCountInPrompt": true,
  "agent": {"command": "claude", "flags": ["--model opus"]},
  "guardrails": [
    {"command": "make lint", "failAction": "APPEND", "hint": "Only fix lint."},
    {"command": "make test", "failAction": "prepend"}
  ],
  "scm": {"command": "git", "tasks": ["commit", "push"]},
  "reviews": {"reviewAfter": 3, "guardrailRetryLimit": 2,
              "prompts": [{"name": "security", "prompt": "Look for holes."}]}
}
""",
    {
        "maximumIterations": 25,
        "completionResponse": "ALL DONE",
        "outputTruncateChars": 3000,
        "streamAgentOutput": False,
        "includeIterationCountInPrompt": True,
        "agent": {"command": "claude", "flags": ["--model opus"]},
        "guardrails": [
            {"command": "make lint", "failAction": "APPEND", "hint": "Only fix lint."},
            {"command": "make test", "failAction": "PREPEND"},
        ],
        "scm": {"command": "git", "tasks": ["commit", "push"]},
    },
    ("reviews",),
)

ORCHESTRATOR = Example(
    "ralph-orchestrator",
    "ralph.yml",
    """# the loop
event_loop:
  prompt_file: PROMPT.md
  completion_promise: "LOOP_COMPLETE"
  max_iterations: 100
  max_runtime_seconds: 14400
  max_cost_usd: 12.5
  max_consecutive_failures: 5
  idle_timeout_secs: 1800
  cooldown_delay_seconds: 10
  starting_event: task.start
  checkpoint_interval: 5
cli:
  backend: claude
  prompt_mode: arg
  args: ["--model", "opus"]
  idle_timeout_secs: 30
core:
  scratchpad: .agent/scratchpad.md
  guardrails:
    - "Fresh context each iteration"
memories: {enabled: true, inject: auto}
tasks: {enabled: true}
features: {parallel: true}
hats:
  builder: {name: Builder, triggers: [task.start], publishes: [build.done]}
RObot:
  enabled: true
  telegram: {bot_token: "123456:ABC-secret"}
""",
    {
        "completionResponse": "LOOP_COMPLETE",
        "tellCompletion": True,
        "maximumIterations": 100,
        "maxTime": 14400,
        "maxCost": 12.5,
        "failAfter": 5,
        "idleTimeout": 1800,
        "agent": {"command": "claude", "flags": ["--model", "opus"]},
    },
    (
        *("event_loop.prompt_file", "event_loop.cooldown_delay_seconds"),
        *("event_loop.starting_event", "event_loop.checkpoint_interval"),
        *("cli.prompt_mode", "cli.idle_timeout_secs", "core.scratchpad", "core.guardrails"),
        *("memories", "tasks", "features", "hats", "RObot"),
    ),
)

ORCHESTRATOR_CUSTOM = Example(
    "ralph-orchestrator",
    "conf/own.yml",
    """cli:
  backend: custom
  command: "/opt/tools/my-agent --quiet"
  args: [--fast]
  prompt_mode: arg
  prompt_flag: "-p"
event_loop: {max_iterations: 3}
""",
    {
        "agent": {
            "command": "/opt/tools/my-agent --quiet",
            "kind": "text",
            "flags": ["--fast", "-p"],
            "promptVia": "arg",
        },
        "maximumIterations": 3,
    },
    (),
)

ORCHESTRATOR_FLAT = Example(
    "ralph-orchestrator",
    "ralph.yaml",
    """agent: gemini
agent_priority: [claude, gemini]
prompt_file: PROMPT.md
completion_promise: "<promise>COMPLETE</promise>"
max_iterations: 50
max_runtime: 3600
max_cost: 0
verbose: true
adapters:
  claude: {timeout: 300, enabled: true}
  gemini: {timeout: 600, enabled: true, tool_permissions: [read]}
""",
    {
        "agent": {"command": "gemini"},
        "timeout": 600,
        "completionResponse": "COMPLETE",
        "tellCompletion": True,
        "maximumIterations": 50,
        "maxTime": 3600,
    },
    (
        *("adapters.claude", "adapters.gemini.tool_permissions", "agent_priority"),
        *("prompt_file", "verbose"),
    ),
)

TUI = Example(
    "ralph-tui",
    ".ralph-tui/config.toml",
    """configVersion = "2.1"
agent = "main"
tracker = "beads-bv"
model = "opus"
maxIterations = 20
iterationDelay = 1000
autoCommit = true
envExclude = ["OPENAI_API_KEY"]
envPassthrough = ["CLAUDE*"]
subagentTracingDetail = "full"

[[agents]]
name = "main"
plugin = "claude"
default = true
command = "ccr code"
defaultFlags = ["--verbose"]
timeout = 300000

[agents.options]
printMode = "stream"

[[agents]]
name = "spare"
plugin = "opencode"

[[trackers]]
name = "beads-bv"
plugin = "beads-bv"

[errorHandling]
strategy = "skip"
maxRetries = 3

[sandbox]
enabled = true
mode = "bwrap"
network = true
allowPaths = ["/data"]

[parallel]
mode = "auto"
maxWorkers = 4
directMerge = false

[notifications]
enabled = true
""",
    {
        "agent": {
            "command": "ccr code",
            "kind": "claude",
            "flags": ["--verbose"],
            "model": "opus",
            "env": {"unset": ["OPENAI_API_KEY"]},
        },
        "timeout": 300,
        "loop": {"parallelism": 4, "onFailure": "continue"},
        "sandbox": "auto",
        "network": "on",
        "maximumIterations": 20,
    },
    (
        *("agents.spare", "agents.main.options.printMode", "sandbox.mode", "tracker"),
        *("iterationDelay", "autoCommit", "envPassthrough", "subagentTracingDetail", "trackers"),
        *("errorHandling.maxRetries", "sandbox", "parallel.directMerge", "notifications"),
    ),
)

TUI_SMALL = Example(
    "ralph-tui",
    ".ralph-tui/config.toml",
    """agent = "codex"
maxIterations = 0
[parallel]
mode = "never"
maxWorkers = 3
[sandbox]
enabled = false
network = false
""",
    {"agent": {"command": "codex"}, "loop": {"parallelism": 1}},
    ("maxIterations",),
)

RALPHY = Example(
    "ralphy",
    ".ralphy/config.yaml",
    """project:
  name: "my-app"
  language: "TypeScript"
commands:
  test: "npm test"
  lint: "npm run lint"
  build: ""
rules:
  - "use server actions not API routes"
boundaries:
  never_touch:
    - "src/legacy/**"
    - "*.lock"
notifications:
  discord_webhook: "https://discord.example/secret"
  slack_webhook: ""
capabilities:
  browser: auto
""",
    {
        "guardrails": [{"command": "npm test"}, {"command": "npm run lint"}],
        "protect": ["src/legacy/**", "*.lock"],
    },
    ("project", "rules", "notifications", "capabilities"),
)

RALPHRC = Example(
    "ralphrc",
    ".ralphrc",
    """#!/bin/bash
# .ralphrc - Ralph project configuration
PROJECT_NAME="my-project"
export PROJECT_TYPE=typescript
CLAUDE_CODE_CMD="npx @anthropic-ai/claude-code"   # installed by hand
MAX_CALLS_PER_HOUR=100
CLAUDE_TIMEOUT_MINUTES=15
CLAUDE_OUTPUT_FORMAT="json"
ALLOWED_TOOLS='Write,Read,Bash(git *),Bash(echo $HOME)'
SESSION_CONTINUITY=true
CB_NO_PROGRESS_THRESHOLD=3
CB_SAME_ERROR_THRESHOLD=${CB_SAME_ERROR_THRESHOLD:-5}
PROMPT_FILE=$(touch ran; echo PROMPT.md)
FIX_PLAN_FILE=`touch ran`
RALPH_VERBOSE=false; SLEEP=3
if [[ -n "$CI" ]]; then
  CLAUDE_MIN_VERSION=2
fi
GITHUB_TOKEN=hush
SANDBOX_PROVIDER=docker
MORE=(a b)
""",
    {
        "agent": {
            "command": "npx @anthropic-ai/claude-code",
            "kind": "claude",
            "flags": ["--allowedTools", "Write,Read,Bash(git *),Bash(echo $HOME)"],
        },
        "timeout": 900,
        "stallAfter": 3,
    },
    (
        *("CB_SAME_ERROR_THRESHOLD", "PROMPT_FILE", "FIX_PLAN_FILE", "CLAUDE_MIN_VERSION", "MORE"),
        *("PROJECT_NAME", "PROJECT_TYPE", "MAX_CALLS_PER_HOUR", "CLAUDE_OUTPUT_FORMAT"),
        *("SESSION_CONTINUITY", "RALPH_VERBOSE", "SLEEP", "GITHUB_TOKEN", "SANDBOX_PROVIDER"),
    ),
)

EXAMPLES = (
    *(RALPH_CLI, ORCHESTRATOR, ORCHESTRATOR_CUSTOM, ORCHESTRATOR_FLAT),
    *(TUI, TUI_SMALL, RALPHY, RALPHRC),
)
