"""Keeping secrets out of what people read and out of saved streams (ADR 13)."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_MARK = b"[redacted]"
_KEY_SHAPED = re.compile(
    r"""(?:(?<![A-Za-z0-9_]) | (?<=[0-9;\[]m) | (?<=\\[nrt]))  # at a word's beginning, or right
    # after a colour, or after an escape that someone has printed as two characters
    (?:
      sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{16,}      # Anthropic, OpenAI, OpenRouter
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,}
    | AKIA[0-9A-Z]{16} | AIza[0-9A-Za-z_-]{30,}
    | xox[abprs]-[A-Za-z0-9-]{10,} | glpat-[\w-]{16,} | hf_[A-Za-z0-9]{20,}
    )""",
    re.VERBOSE,
)
_BEGINNINGS = (
    "sk-",
    "_pat_",
    "AKIA",
    "AIza",
    "xox",
    "glpat-",
    "hf_",
    *(f"gh{c}_" for c in "pousr"),
)
_JSON = json.JSONEncoder(separators=(",", ":"))  # `json.dumps` would make one for each line
_SECRET_NAME = re.compile(
    r"(?:^|_|API)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.IGNORECASE
)
_SHORTEST_SECRET = 8  # shorter values are words that would be cut out of innocent text


def redact(text: str) -> str:
    """The text without values shaped like keys."""
    return _KEY_SHAPED.sub(_MARK.decode(), text) if _may_hold_a_key(text) else text


def _may_hold_a_key(text: str) -> bool:
    """A first look, ten times as fast as the pattern."""
    return any(map(text.__contains__, _BEGINNINGS))


def redacted(value: Any, by: Callable[[str], str] = redact) -> Any:  # noqa: ANN401  JSON
    """A copy of a JSON value in which every string is redacted, so that it stays valid."""
    match value:
        case str():
            return by(value)
        case list():
            return [redacted(item, by) for item in value]
        case dict():
            return {key: redacted(item, by) for key, item in value.items()}
        case _:
            return value


def redacted_json(value: Any) -> str:  # noqa: ANN401
    """The value as one line of JSON, redacted."""
    line = _JSON.encode(value)
    # JSON escapes nothing of a beginning: one that is not in the line is in no string. The
    # pattern itself would be misled, by the `n` of a `\n` in front of a key.
    return _JSON.encode(redacted(value)) if _may_hold_a_key(line) else line


def secrets_of(environ: Mapping[str, str]) -> tuple[bytes, ...]:
    """The values in an environment whose names say that they are secret, longest first."""
    values = {v for k, v in environ.items() if _is_secret(k, v)}
    # Each as it is, and as JSON has it.
    spelled = values | {json.dumps(value, ensure_ascii=False)[1:-1] for value in values}
    return tuple(sorted((v.encode(errors="surrogateescape") for v in spelled), key=len)[::-1])


def _is_secret(name: str, value: str) -> bool:
    if name.upper().endswith("CREDENTIALS") and value.startswith("/"):
        return False  # the path of a file that holds them
    return bool(_SECRET_NAME.search(name)) and len(value) >= _SHORTEST_SECRET


class StreamRedactor:
    """Removes known secrets from bytes that come in pieces, the same however they are cut."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        # Longest first: of two secrets that begin alike, the longer one is taken out whole.
        self._secrets = tuple(sorted({s for s in secrets if s}, key=len, reverse=True))
        self._pattern = re.compile(b"|".join(map(re.escape, self._secrets)))
        self._hold = max(map(len, self._secrets), default=1) - 1
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """What may be written now; what may be a secret's beginning stays until it is clear."""
        data = self._rest + chunk if self._rest else chunk
        return self._clean(data, len(data) - self._begun(data))

    def end(self) -> bytes:
        """What was held back."""
        return self._clean(self._rest, len(self._rest))

    def _begun(self, data: bytes) -> int:
        """How many of the last bytes may be the beginning of a secret."""
        tail = data[-self._hold :] if self._hold else b""
        suffixes = (tail[start:] for start in range(len(tail)))
        return next((len(suffix) for suffix in suffixes if self._begins(suffix)), 0)

    def _begins(self, suffix: bytes) -> bool:
        return any(secret.startswith(suffix) for secret in self._secrets)

    def _clean(self, data: bytes, until: int) -> bytes:
        """Everything up to `until`, clean; a secret that begins before it goes as a whole."""
        pieces, done = [], 0
        if any(secret in data for secret in self._secrets):  # much faster than the pattern
            for found in self._pattern.finditer(data):
                if found.start() >= until:
                    break
                pieces += [data[done : found.start()], _MARK]
                done = found.end()
        cut = max(done, until)
        self._rest = data[cut:]
        return b"".join((*pieces, data[done:cut]))
