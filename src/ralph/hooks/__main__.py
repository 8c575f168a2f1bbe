"""`python -I -S .../ralph/hooks/__main__.py NAME`: a hook as quick as it can be.

Neither site-packages nor a script of the installer is looked at on the way, which takes as long as
the hook itself; so this must find its package.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from ralph.hooks import HOOKS, module_of


def main(names: list[str]) -> int:
    """Run the hook of that name; the exit code. A wrong name is the caller's mistake, not the
    agent's: it is told, and nobody is held."""
    if len(names) != 1 or names[0] not in HOOKS:
        from ralph.hooks.host import tell

        tell(f"no hook {' '.join(names)!r}: there is {', '.join(HOOKS)}")
        return 0
    return int(__import__(module_of(names[0]), fromlist=("main",)).main())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
