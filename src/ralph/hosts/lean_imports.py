"""Imports a hook can do without: a session waits for every one of them."""

import sys

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from types import ModuleType
else:
    ModuleType = type(sys)


class _Later(ModuleType):
    """Stands in for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> object:
        return getattr(__import__(self.__name__), name)


def import_values() -> None:
    """Import `dataclasses`, of which values are made, without `inspect`: that takes a sixth of a
    stop's time, for signatures that nobody asks for."""
    if "dataclasses" in sys.modules or "inspect" in sys.modules:
        return
    sys.modules["inspect"] = _Later("inspect")
    try:
        import dataclasses  # noqa: F401  it keeps the stand-in
    finally:
        if isinstance(sys.modules.get("inspect"), _Later):
            del sys.modules["inspect"]  # whoever else asks gets the real one
