"""ATIF 1.7 read strictly: the fields and rules of Harbor's RFC 0001, as its own models of version
0.25.0 enforce them. `make test-agents` asks those models themselves."""

from datetime import datetime
from typing import Any, Literal

import msgspec


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    extra: dict[str, Any] | None = None


class Agent(_Strict, kw_only=True):
    name: str
    version: str
    model_name: str | None = None


class ToolCall(_Strict, kw_only=True):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]


class Ref(_Strict, kw_only=True):
    trajectory_id: str
    session_id: str | None = None


class Result(_Strict, kw_only=True):
    source_call_id: str | None = None
    content: str | None = None
    subagent_trajectory_ref: list[Ref] | None = None


class Observation(msgspec.Struct, forbid_unknown_fields=True):
    results: list[Result]


class Metrics(_Strict, kw_only=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0


class Step(_Strict, kw_only=True):
    step_id: int
    source: Literal["system", "user", "agent"]
    message: str
    timestamp: str | None = None
    model_name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None


class FinalMetrics(_Strict, kw_only=True):
    total_prompt_tokens: int
    total_completion_tokens: int
    total_cached_tokens: int
    total_steps: int
    total_cost_usd: float | None = None


class Trajectory(_Strict, kw_only=True):
    schema_version: Literal["ATIF-v1.7"]
    session_id: str
    trajectory_id: str
    agent: Agent
    steps: list[Step]
    final_metrics: FinalMetrics | None = None
    notes: str | None = None
    subagent_trajectories: list["Trajectory"] = []

    @property
    def all_steps(self) -> list[Step]:
        """Its steps, and those of all who are embedded in it."""
        return [*self.steps, *(s for each in self.subagent_trajectories for s in each.all_steps)]

    def of(self, source: str) -> list[Step]:
        return [step for step in self.steps if step.source == source]


def trajectory(text: str) -> Trajectory:
    """The trajectory in a document; AssertionError or ValidationError if it breaks a rule."""
    found = msgspec.json.decode(text, type=Trajectory)
    _check(found)
    return found


def _check(found: Trajectory) -> None:
    assert [step.step_id for step in found.steps] == list(range(1, len(found.steps) + 1))
    assert found.steps
    embedded = [each.trajectory_id for each in found.subagent_trajectories]
    assert len(set(embedded)) == len(embedded)
    for step in found.steps:
        if step.timestamp is not None:
            datetime.fromisoformat(step.timestamp)
        if step.source != "agent":
            only = (step.model_name, step.reasoning_content, step.tool_calls, step.metrics)
            assert only == (None,) * 4
        calls = {call.tool_call_id for call in step.tool_calls or ()}
        for result in step.observation.results if step.observation else ():
            assert result.source_call_id is None or result.source_call_id in calls
            assert {r.trajectory_id for r in result.subagent_trajectory_ref or ()} <= {*embedded}
    if found.final_metrics is not None:
        assert found.final_metrics.total_steps == len(found.steps)
    for each in found.subagent_trajectories:
        _check(each)


def sums(found: Trajectory) -> tuple[int, int, int, float]:
    """The sums of all steps: prompt, completion and cached tokens, and dollars."""
    told = [step.metrics for step in found.all_steps if step.metrics]
    return (
        sum(each.prompt_tokens for each in told),
        sum(each.completion_tokens for each in told),
        sum(each.cached_tokens for each in told),
        sum(each.cost_usd for each in told),
    )


def final(found: Trajectory) -> tuple[int, int, int, float]:
    """The sums as its last lines tell them."""
    told = found.final_metrics
    assert told is not None
    return (
        told.total_prompt_tokens,
        told.total_completion_tokens,
        told.total_cached_tokens,
        told.total_cost_usd or 0.0,
    )
