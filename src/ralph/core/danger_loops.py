"""Loops that start processes and never end."""

from ralph.core.shell_nodes import Background, Block, Loop, Script, Simple, Test


def spawns_endlessly(node: Loop) -> bool:
    """`while true; do ... & done`, and nothing in it that waits or ends it."""
    head = node.head.items[0] if isinstance(node.head, Script) and node.head.items else node.head
    if isinstance(head, Test):  # for ((;;))
        endless = not "".join(word.literal() or "?" for word in head.words).strip("; ")
    else:
        endless = isinstance(head, Simple) and head.words[:1] != () and _always(head)
    return endless and spawns(node.body)


def _always(head: Simple) -> bool:
    return head.words[0].literal() in ("true", ":", "false")


def spawns(body: Script) -> bool:
    """Whether something is sent to the background, and nothing waits or ends it."""
    items = [
        inner
        for item in body.items
        for inner in (item.body.items if isinstance(item, Block) else (item,))
    ]
    plain = [item.words[0].literal() for item in items if isinstance(item, Simple) and item.words]
    waits = any(word in ("sleep", "wait", "break", "exit", "read") for word in plain)
    return any(isinstance(item, Background) for item in items) and not waits
