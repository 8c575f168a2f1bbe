"""The client of a fake forge."""

import os
from collections.abc import Callable

from kits.forge.fake import FakeForge
from ralph.forge.found import forge_of
from ralph.forge.github import GitHub
from ralph.forge.gitlab import GitLab
from ralph.kernel.value import replace


def client(forge: FakeForge, sleep: Callable[[float], None] = lambda _: None) -> GitHub | GitLab:
    """What a run makes of the environment; it sleeps as it is told, which is not at all."""
    found = forge_of({**os.environ, **forge.environ}, os.getcwd())
    return replace(found, service=replace(found.service, sleep=sleep))
