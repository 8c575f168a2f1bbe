"""What the tests of loops share: a session with a transcript, and its loop."""

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from hook_support import Json

from ralph.hooks import prompt, stop, stop_failure
from ralph.loops.session.state import SessionLoop
from ralph.loops.session.store import load

DONE = "<promise>DONE</promise>"


def moment(ago: float = 0.0) -> str:
    """A time as transcripts have it; never a whole second, which a coarse clock would tell."""
    at = time.time() - ago
    at += 0.001 if at % 1 < 0.001 else 0.0
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    return f"{whole}.{int(at % 1 * 1000):03}Z"


def assistant(*blocks: Json, **changes: object) -> Json:
    usual: Json = {"type": "assistant", "isSidechain": False, "timestamp": moment()}
    return {**usual, "message": {"role": "assistant", "content": list(blocks)}, **changes}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(name: str = "t1") -> Json:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {}}


@dataclass
class Session:
    """A session of Claude Code in a project."""

    project: Path
    name: str = "s-1"
    extra: Json = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def transcript(self) -> Path:
        return self.project.parent / f"transcript of {self.name.replace('/', '_')}.jsonl"

    def event(self, kind: str, **changes: object) -> Json:
        usual: Json = {"session_id": self.name, "transcript_path": str(self.transcript)}
        usual |= {"cwd": str(self.project), "hook_event_name": kind}
        return {n: v for n, v in {**usual, **self.extra, **changes}.items() if v is not None}

    def types(self, words: str, **fields: object) -> Json:
        """What the host is told about a prompt; nothing is an empty object."""
        event = self.event("UserPromptSubmit", prompt=words, **fields)
        said = prompt.answer(event, self.environ, "/")
        found = json.loads(said or "{}")
        assert isinstance(found, dict)
        return found

    def starts(self, words: str = "Build it") -> None:
        assert "hookSpecificOutput" in self.types(f"/ralph:ralph-loop {words}")

    def writes(self, *lines: Json | bytes) -> None:
        with open(self.transcript, "ab") as file:
            file.writelines(
                line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
                for line in lines
            )

    def stops(self, words: str | None = "I'm done", **changes: object) -> Json:
        """What the host is told about a stop."""
        sent = self.event("Stop", last_assistant_message=words, **changes)
        found = json.loads(stop.answer(sent, self.environ, "/") or "{}")
        assert isinstance(found, dict)
        return found

    def held(self, words: str | None = "I'm done", **changes: object) -> str:
        """Why a stop is held; empty where it is let go."""
        return str(self.stops(words, **changes).get("reason", ""))

    def fails(self) -> None:
        sent = self.event("StopFailure", error="unknown", last_assistant_message="API Error: 400")
        assert stop_failure.answer(sent, self.environ, "/") == ""

    @property
    def loop(self) -> SessionLoop:
        found = load(self.name, self.environ)
        assert found is not None
        return found

    @property
    def state(self) -> Path:
        """The file of its loop."""
        (found,) = (Path(self.environ["RALPH_STATE_DIR"]) / "sessions").glob("*.loop")
        return found
