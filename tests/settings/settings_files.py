"""Workspaces with the settings files that a test wants."""

import json
from pathlib import Path

BASE, LOCAL = ".ralph/settings.json", ".ralph/settings.local.json"

# H §Settings File, the example, word for word.
H_EXAMPLE = """{
  "maximumIterations": 10,
  "completionResponse": "DONE",
  "outputTruncateChars": 5000,
  "streamAgentOutput": true,
  "includeIterationCountInPrompt": false,
  "agent": {
    "command": "claude",
    "flags": ["--model opus", "--no-auto-compact"]
  },
  "guardrails": [
    {
      "command": "make lint",
      "failAction": "APPEND",
      "hint": "Fix lint errors only. Do not change behavior."
    },
    {
      "command": "make test",
      "failAction": "APPEND"
    }
  ],
  "scm": {
    "command": "git",
    "tasks": ["commit", "push"]
  }
}
"""


def lay(workspace: Path, base: object = None, local: object = None) -> str:
    """Write the settings files, given as bytes, text or a JSON value; returns the workspace."""
    (workspace / ".ralph").mkdir(exist_ok=True)
    for name, content in ((BASE, base), (LOCAL, local)):
        if content is not None:
            (workspace / name).write_bytes(_bytes(content))
    return str(workspace)


def _bytes(content: object) -> bytes:
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()
