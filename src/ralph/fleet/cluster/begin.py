"""`python -m ralph.fleet.cluster.begin`: the nest of `ralph fleet up`, which may be asked to end
while it still imports Dask."""

import os
import signal
import sys

_REFUSED = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Nothing is begun yet: a signal just ends us."""
    for number in _SIGNALS:
        signal.signal(number, lambda *_: os._exit(0))
    from ralph.errors import RalphError
    from ralph.fleet.cluster import nest

    try:
        return nest.main()
    except RalphError as error:
        lines = "\n".join(f"[ralph] {line}" for line in (error.message, error.remedy) if line)
        os.write(2, f"{lines}\n".encode())
        return _REFUSED


if __name__ == "__main__":
    sys.exit(main())
