"""A prompt in a loop as a library (H): `from ralph import run_prompt`."""

import os
from typing import Unpack

from ralph.loops.library import LoopRun, RunOptions, RunResult


class PromptOptions(RunOptions, total=False):
    """What a run of a prompt may be given: the flags of `ralph run` with `_` for `-`."""

    completion_response: str | None
    tell_completion: bool | None
    until_green: bool | None


class PromptRun(LoopRun):
    """Runs an agent in a loop until its work is done and proven, or a limit is reached.

    A `prompt` that is a path is read before each turn.
    """

    loop, options = "prompt", PromptOptions.__optional_keys__

    def __init__(
        self,
        prompt: str | os.PathLike[str],
        project: str | os.PathLike[str] = ".",
        **options: Unpack[PromptOptions],
    ) -> None:
        if isinstance(prompt, str):
            super().__init__(project, options, prompt=prompt)
        else:
            super().__init__(project, options, prompt_file=os.path.abspath(os.fspath(prompt)))


def run_prompt(
    prompt: str | os.PathLike[str],
    project: str | os.PathLike[str] = ".",
    **options: Unpack[PromptOptions],
) -> RunResult:
    """Run a prompt to its end; `PromptRun` can be cancelled too."""
    return PromptRun(prompt, project, **options).run()
