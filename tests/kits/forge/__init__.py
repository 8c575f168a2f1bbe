"""A GitHub, or a GitLab, on loopback: a real HTTP server before a real bare repository.

    forge = FakeForge(bare)                     # or FakeForge(bare, kind="gitlab")
    environ |= forge.environ                    # which names the API, the repository and a token
    forge.ci("ralph/t-1", [[pending("test")], [failed("test", log="boom")]], [[passed("test")]])

Each script of `ci` is for one commit, in the order in which they come to that branch; each of its
pictures is for one look, and the last one stays. `forge.pulls`, `forge.issues` and `forge.requests`
are what it knows; `forge.trouble` has it fail.
"""

from kits.forge.client import client
from kits.forge.fake import FakeForge, Issue, PullRequest, Sent
from kits.forge.pictures import (
    Picture,
    Run,
    Status,
    Suites,
    failed,
    neutral,
    passed,
    pending,
    skipped,
    status,
)

__all__ = [
    "FakeForge",
    "Issue",
    "Picture",
    "PullRequest",
    "Run",
    "Sent",
    "Status",
    "Suites",
    "client",
    "failed",
    "neutral",
    "passed",
    "pending",
    "skipped",
    "status",
]
