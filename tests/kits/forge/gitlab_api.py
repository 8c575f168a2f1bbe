"""GitLab's REST API, as far as Ralph uses it; the shapes are those of its documentation."""

from kits.forge.fake import FakeForge, Reply, Sent


def reply(forge: FakeForge, sent: Sent) -> Reply:
    return Reply(404, {"message": "404 Not Found"})
