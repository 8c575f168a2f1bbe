"""Ralph's own agent as a command: the words that name it, its call, its model and who pays."""

import json
import os
import sys
from collections.abc import Mapping

import ralph
from ralph.agents.providers import KEYS, OWN, PROVIDERS, Model, access, default_model, model_of
from ralph.errors import ConfigError

BUILTIN = "builtin"
_NEEDS = ("msgspec", "click")
_START = """\
import sys
more = [place for place in {places} if place not in sys.path]
found = (n for n, place in enumerate(sys.path) if place.endswith("-packages"))
first = next(found, len(sys.path))
sys.path[first:first] = more
from {module} import main
main()
"""
_USUAL = dict.fromkeys(service.keys[0] for service in PROVIDERS.values())
BY_KEY = f"export {KEYS[0]}=... (or {', '.join([*_USUAL][1:])})"


def own_words(command: str | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command of our own agent, as `ralph-agent`, `builtin` or `builtin:MODEL` name it; where
    no command is given, with the usual model of whichever key is set. () for any other."""
    if command is None:
        model = default_model(environ)
        return _with(model) if model else ()
    if not command.startswith((OWN, BUILTIN)):
        return ()
    import shlex

    try:
        name, *rest = shlex.split(command)
    except ValueError:
        return ()
    builtin, colon, model_name = name.partition(":")
    if name in (OWN, BUILTIN):
        return (OWN, *rest)
    if builtin != BUILTIN or not colon:
        return ()
    return (*_with(model_of(model_name)), *rest)


def _with(model: Model) -> tuple[str, ...]:
    return (OWN, "--model", str(model))


def own_model(asked: str | None, environ: Mapping[str, str]) -> Model:
    """The model that is asked for, else the usual one by the keys in the environment. ConfigError
    where it cannot be called."""
    model = model_of(asked) if asked else default_model(environ)
    if model is None:
        raise ConfigError(
            f"{OWN} needs the key of a model: none of {', '.join(KEYS)} is set",
            f"Set one: {BY_KEY}\nOr name a model that needs none, such as a local one:\n"
            "  export OPENAI_BASE_URL=http://127.0.0.1:11434/v1\n"
            "  and --agent builtin:openai-chat:NAME (of ralph agent: --model openai-chat:NAME)",
        )
    access(model, environ)
    return model


def program() -> tuple[str, ...]:
    """The call of `ralph agent` of this very Ralph."""
    return (*call_of("ralph.__main__"), "agent")


def call_of(module: str) -> tuple[str, ...]:
    """The call of a module's `main` of this very Ralph. Isolated, so that no file of the project is
    imported: neither the current directory nor PYTHONPATH is searched, and what we need comes after
    Python's own modules and before what else is installed."""
    from importlib.util import find_spec

    found = (find_spec(name) for name in _NEEDS)
    files = [ralph.__file__, *(spec.origin for spec in found if spec and spec.origin)]
    places = dict.fromkeys(os.path.dirname(os.path.dirname(os.path.abspath(f))) for f in files)
    words = "; ".join(_START.format(places=json.dumps([*places]), module=module).splitlines())
    return (sys.executable, "-I", "-c", words)


def others(model: Model) -> frozenset[str]:
    """Variables of the other services: their keys, and the places that they lead to."""
    names = {name for each in PROVIDERS.values() for name in (*each.keys, each.url_variable)}
    return frozenset(names - {*model.provider.keys, model.provider.url_variable})
