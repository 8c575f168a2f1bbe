"""`python -m ralph.fleet.cluster.begin`: the nest of `ralph fleet up`, which may be asked to end
while it still imports Dask."""

import os
import signal
import sys

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Nothing is begun yet: a signal just ends us."""
    for number in _SIGNALS:
        signal.signal(number, lambda *_: os._exit(0))
    from ralph.fleet.cluster import nest

    return nest.main()


if __name__ == "__main__":
    sys.exit(main())
