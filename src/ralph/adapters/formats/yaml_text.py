"""YAML, by PyYAML (the extra `formats`): plain values only, nothing that runs."""

from typing import Any

from ralph.errors import ConfigError


def load(text: str) -> Any:  # noqa: ANN401  whatever the file holds
    """What the text holds; ValueError, with the line, for what is no YAML; ConfigError where PyYAML
    is missing."""
    try:
        import yaml
    except ImportError:
        raise ConfigError(
            "YAML needs the extra `formats`, which is not installed",
            "Type: pip install 'ralph-engine[formats]'",
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(_reason(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "no YAML"
    return f"line {mark.line + 1}: {what}" if mark else str(what)
