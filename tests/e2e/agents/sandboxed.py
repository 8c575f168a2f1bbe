"""Runs a command in an overlay and tells what came of it; a program, since who runs it matters.

It reads one JSON object with the wish from its standard input, and prints one.
"""

import json
import sys
from typing import Any

from ralph.sandbox.backends import overlay
from ralph.sandbox.interface import Network, SandboxPolicy


def main() -> None:
    wish: dict[str, Any] = json.load(sys.stdin)
    policy = SandboxPolicy(
        wish["environ"],
        wish["state"],
        network=Network(hosts=tuple(wish["hosts"])),
        visible=tuple(wish["visible"]),
        home=wish["home"],
    )
    said = bytearray()
    with overlay.open(wish["project"], policy) as sandbox:
        prompt = wish["prompt"].encode()
        child = sandbox.spawn(wish["argv"], said.extend, said.extend, stdin=prompt)
        found = {
            "code": child.wait(lambda: None).code,
            "changes": [change.path for change in sandbox.changes()],
            "refused": sandbox.refused(),
            "at_home": sandbox.run("ls", "-A", wish["home"]).output.decode().split(),
            "lacks": sandbox.capabilities.lacks,
        }
    print(json.dumps({**found, "said": said.decode("utf-8", "replace")}))


if __name__ == "__main__":
    main()
