"""The fleet that somebody wants on this machine."""

from ralph.kernel.value import value


@value
class Plan:
    """A scheduler, and so many workers."""

    scheme: str
    host: str
    port: int
    workers: int
    slots: int
    name: str  # how the workers' names begin
    directory: str = ""  # of the certificates
