"""The shell commands by which an agent's host calls a hook of this very Ralph."""

import os
import shlex
import sys

import ralph
from ralph.hosts.hook_names import module_of
from ralph.hosts.settings_edit import MARK

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(ralph.__file__)))


def quickly(name: str) -> str:
    """A hook without the site's packages: it starts in half the time."""
    return _isolated(f"from {module_of(name)} import main", "main()")


def installed(agent: str, name: str) -> str:
    """The same for an agent's settings, where it must not run beside another one of its kind."""
    return _isolated(f"from {MARK} import main", f'main("{agent}", "{name}")')


def with_packages(name: str) -> str:
    """A hook that may use installed packages. Isolated: what stands in the project must not be
    taken for Ralph."""
    return f"{shlex.quote(sys.executable)} -I -m ralph hook {name}"


def _isolated(imports: str, call: str) -> str:
    # In Python's quotes that a shell's do not make unreadable, as far as possible.
    plain = SOURCE.isprintable() and not {'"', "\\"} & set(SOURCE)
    source = f'"{SOURCE}"' if plain else ascii(SOURCE)
    words = f"import sys; sys.path.insert(0, {source}); {imports}; sys.exit({call})"
    return f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(words)}"
