"""The files of the page: those that are there, and no path leads to another."""

import hashlib
import os

from starlette.responses import Response

from ralph.web.replies import ApiError

_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}


class StaticFiles:
    """Serves files by their names alone: a name is looked up, never joined to a path."""

    def __init__(self, root: str = os.path.join(os.path.dirname(__file__), "static")) -> None:
        self._root = root
        self._paths = self._found()

    def _found(self) -> dict[str, str]:
        return {
            os.path.relpath(os.path.join(folder, name), self._root): os.path.join(folder, name)
            for folder, _, names in os.walk(self._root)
            for name in names
            if os.path.splitext(name)[1] in _TYPES
        }

    def answer(self, name: str, known: str | None = None) -> Response:
        """A file; nothing but a 304 for whoever has it `known` by this mark."""
        path = self._paths.get(name)
        if path is None:
            self._paths = self._found()  # a file may be new while the page is written
            path = self._paths.get(name)
        if path is None:
            raise ApiError(404, "there is no such file", "Open the page: /")
        with open(path, "rb") as file:
            data = file.read()
        mark = f'"{hashlib.blake2b(data, digest_size=8).hexdigest()}"'
        headers = {"ETag": mark, "Cache-Control": "no-cache"}
        if known == mark:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=_TYPES[os.path.splitext(path)[1]])
