"""tree-sitter-bash as a second parser, where it is installed (the extra `guard`).

It gives the structure of a script; words and assignments are read by our own reader. What ours does
not refuse is judged by this one too (ADR 25). A tree with any error is not followed.
"""

import sys
from importlib.machinery import PathFinder

from ralph.core.shell import Commands, parse
from ralph.core.shell_nodes import (
    Assign,
    Background,
    Block,
    Branch,
    Chain,
    For,
    Function,
    Loop,
    Pipe,
    Redirect,
    Redirected,
    Script,
    Simple,
    Test,
    Text,
    Unfollowable,
    Word,
)
from ralph.core.shell_words import is_name

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from tree_sitter import Node as Tree
    from tree_sitter import Parser

    from ralph.core.shell_nodes import Node

_IGNORED = frozenset(
    {"comment", ";", "\n", "then", "do", "done", "fi", "if", "elif", "else", "while"}
)
_IGNORED |= {"until", "{", "}", "(", ")", "heredoc_start", "heredoc_end", "heredoc_body"}
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_SIMPLE = frozenset({"command", "declaration_command", "unset_command"})


def reader() -> "Callable[[str], Script] | None":
    """A parser by tree-sitter-bash; None where it is not installed."""
    try:
        sitter, bash = _native("tree_sitter"), _native("tree_sitter_bash")
        parser = sitter.Parser(sitter.Language(bash.language()))
    except (ImportError, AttributeError, ValueError):  # not here, or not of our time
        return None
    return lambda text: _read(parser, text)


def _native(package: str) -> "Any":  # noqa: ANN401  it has no types
    """The native part of a package, without its `__init__`, which would import for 20 ms what no
    parsing needs: every call of an agent waits for that."""
    name = f"{package}._binding"
    if name in sys.modules:
        return sys.modules[name]
    found = PathFinder.find_spec(package)
    inner = PathFinder.find_spec(name, found.submodule_search_locations) if found else None
    if inner is None or inner.loader is None:
        raise ImportError(f"{package} is not installed")
    module = inner.loader.create_module(inner)
    if module is None:
        raise ImportError(f"{package} has no native part")
    inner.loader.exec_module(module)
    sys.modules[name] = module
    return module


def _read(parser: "Parser", text: str) -> Script:
    root = parser.parse(text.encode("utf-8", "surrogateescape")).root_node
    if root.has_error:
        raise Unfollowable("the grammar of bash does not know this")
    return _script(root.children)


def _source(tree: "Tree") -> str:
    return (tree.text or b"").decode("utf-8", "surrogateescape")


def _script(trees: "Iterable[Tree]") -> Script:
    """Statements one after the other; `&` sends the last one to the background."""
    items: list[Node] = []
    for tree in trees:
        if tree.type == "&":
            items[-1:] = [Background(item) for item in items[-1:]]
        elif tree.type not in _IGNORED:
            items.append(_statement(tree))
    return Script(tuple(items))


def _statement(tree: "Tree") -> "Node":
    kind = _KINDS.get(tree.type)
    if kind is None:
        raise Unfollowable(f"{tree.type} is not understood")
    return kind(tree)


def _by_text(tree: "Tree") -> "Node":
    """What our own parser reads as well: tests, assignments, arithmetic."""
    return parse(_source(tree))


def _word(tree: "Tree") -> Word:
    return _word_of(_source(tree))


def _word_of(text: str) -> Word:
    words = Commands(text)
    word = words.word()
    if words.peek():
        raise Unfollowable(f"{text[:20]!r} is no word")
    return word


def _judge_lines(tree: "Tree") -> None:
    """The grammar now and then takes the next line for more words of a command: no such tree is
    followed."""
    text = tree.text or b""
    for before, after in zip(tree.children, tree.children[1:], strict=False):
        gap = text[before.end_byte - tree.start_byte : after.start_byte - tree.start_byte]
        if b"\n" in gap.replace(b"\\\n", b""):
            raise Unfollowable("the grammar of bash joins two lines")


def _simple(tree: "Tree") -> "Node":
    assigns: list[Assign] = []
    redirects: list[Redirect] = []
    pieces: list[tuple[int, str]] = []  # where a word ends, and its text
    _judge_lines(tree)
    for child in tree.children:
        if child.type == "variable_assignment":
            (made,) = parse(_source(child)).items
            assert isinstance(made, Simple)
            assigns += made.assigns
        elif child.type in _REDIRECTS:
            redirects += _redirect(child)
        elif pieces and pieces[-1][0] == child.start_byte:  # the tree parts what is one word
            pieces[-1] = (child.end_byte, pieces[-1][1] + _source(child))
        else:
            pieces.append((child.end_byte, _source(child)))
    if pieces and pieces[0][1] == "time":  # a keyword, before assignments and blocks too
        return _by_text(tree)
    if pieces and pieces[0][1] == "coproc":
        raise Unfollowable("coproc is not understood")
    return Simple(tuple(assigns), tuple(_word_of(text) for _, text in pieces), tuple(redirects))


def _redirect(tree: "Tree") -> list[Redirect]:
    if tree.type == "heredoc_redirect":
        return [
            _document(tree),
            *(r for c in tree.children if c.type in _REDIRECTS for r in _redirect(c)),
        ]
    (made,) = parse(f": {_source(tree)}").items  # alone, `&> file` would begin with an operator
    assert isinstance(made, Simple)
    return [*made.redirects]


def _judge_end(tree: "Tree") -> None:
    """A here-document ends with a line that holds nothing else; the grammar minds less."""
    root = tree
    while root.parent is not None:
        root = root.parent
    text = root.text or b""
    for end in [c for c in tree.children if c.type == "heredoc_end"]:
        place = end.end_byte - root.start_byte
        if text[place : place + 1] not in (b"", b"\n"):
            raise Unfollowable("a here-document's end is not alone in its line")


def _document(tree: "Tree") -> Redirect:
    _judge_end(tree)
    start = next(_source(c) for c in tree.children if c.type == "heredoc_start")
    body = "".join(_source(c) for c in tree.children if c.type == "heredoc_body")
    if tree.children[0].type == "<<-" or any(c.type == "<<-" for c in tree.children):
        body = "".join(line.lstrip("\t") for line in body.splitlines(keepends=True))
    if any(mark in start for mark in "'\"\\"):
        return Redirect("<<", Word((Text(body, quoted=True),)))
    return Redirect("<<", Word(tuple(Commands(body).double_quoted(end=""))))


def _redirected(tree: "Tree") -> "Node":
    """A statement with redirections; a here-document's line may go on with `|` and `&&`."""
    parts = [c for c in tree.children if c.type in _REDIRECTS]
    redirects = tuple(redirect for part in parts for redirect in _redirect(part))
    bodies = [c for c in tree.children if c.type not in _REDIRECTS]
    made = _with(_statement(bodies[0]) if bodies else Simple((), ()), redirects)
    for part in parts:
        if part.type == "heredoc_redirect":
            made = _going_on(made, part)
    return made


def _with(body: "Node", redirects: tuple[Redirect, ...]) -> "Node":
    if isinstance(body, Simple):
        return Simple(body.assigns, body.words, (*body.redirects, *redirects))
    if isinstance(body, Pipe | Chain):  # they belong to the last of them
        last = _with(body.items[-1], redirects)
        return type(body)((*body.items[:-1], last))
    return Redirected(body, redirects)


def _going_on(first: "Node", tree: "Tree") -> "Node":
    made = first
    for child in tree.children:
        if child.type == "pipeline":
            for rest in child.named_children:
                made = _piped(made, _statement(rest))
        elif child.is_named and child.type not in _REDIRECTS | _IGNORED:
            if child.type in _KINDS:
                made = Chain((made, _statement(child)))
            elif isinstance(made, Simple):
                made = Simple(made.assigns, (*made.words, _word(child)), made.redirects)
            else:
                raise Unfollowable(f"{child.type} after a here-document is not understood")
    return made


def _piped(left: "Node", right: "Node") -> "Node":
    if isinstance(right, Chain):
        return Chain((_piped(left, right.items[0]), *right.items[1:]))
    items = left.items if isinstance(left, Pipe) else (left,)
    return Pipe((*items, *(right.items if isinstance(right, Pipe) else (right,))))


def _pipeline(tree: "Tree") -> "Node":
    return Pipe(tuple(_statement(child) for child in tree.named_children))


def _list(tree: "Tree") -> "Node":
    items: list[Node] = []
    for child in tree.named_children:
        made = _statement(child)
        items += made.items if isinstance(made, Chain) else (made,)
    return Chain(tuple(items))


def _negated(tree: "Tree") -> "Node":
    return _statement(tree.named_children[0])


def _group(tree: "Tree") -> "Node":
    if tree.children[0].type == "((":
        return _by_text(tree)
    return Block(_script(tree.children), apart=tree.type == "subshell")


def _branch(tree: "Tree") -> "Node":
    flat: list[Tree] = []
    bodies = []
    for child in tree.children:
        if child.type in ("elif_clause", "else_clause"):
            bodies.append(_script(child.children))
        else:
            flat.append(child)
    return Branch((), (_script(flat), *bodies))


def _while(tree: "Tree") -> "Node":
    head = [c for c in tree.children if c.type != "do_group"]
    return Loop(_script(head), _body(tree))


def _body(tree: "Tree") -> Script:
    body = next((c for c in tree.children if c.type in ("do_group", "compound_statement")), None)
    if body is None:
        raise Unfollowable("a loop has no body")
    return _script(body.children)


def _for(tree: "Tree") -> "Node":
    name = tree.child_by_field_name("variable")
    has_in = any(child.type == "in" for child in tree.children)
    words = tuple(_word(child) for child in tree.children_by_field_name("value"))
    if name is None or not is_name(_source(name)):
        raise Unfollowable("for without a name")
    return For(_source(name), words if has_in else None, _body(tree))


def _counting(tree: "Tree") -> "Node":
    inner = _source(tree).partition("((")[2].partition("))")[0]
    return Loop(Test((Word(tuple(Commands(inner).double_quoted(end=""))),)), _body(tree))


def _case(tree: "Tree") -> "Node":
    words = [_word(child) for child in tree.children_by_field_name("value")]
    bodies = []
    for item in tree.named_children:
        if item.type == "case_item":
            values = item.children_by_field_name("value")
            words += [_word(value) for value in values]
            ends = {value.id for value in values}
            rest = [
                c
                for c in item.children
                if c.id not in ends and c.type not in ("|", ";;", ";&", ";;&")
            ]
            bodies.append(_script(rest))
    return Branch(tuple(words), tuple(bodies))


def _function(tree: "Tree") -> "Node":
    name, body = tree.child_by_field_name("name"), tree.child_by_field_name("body")
    if name is None or body is None:
        raise Unfollowable("a function has no body")
    return Function(_source(name), _statement(body))


_KINDS: "dict[str, Callable[[Tree], Node]]" = {
    **dict.fromkeys(_SIMPLE, _simple),
    **dict.fromkeys(("test_command", "variable_assignment", "variable_assignments"), _by_text),
    "redirected_statement": _redirected,
    "pipeline": _pipeline,
    "list": _list,
    "negated_command": _negated,
    "compound_statement": _group,
    "subshell": _group,
    "if_statement": _branch,
    "while_statement": _while,
    "for_statement": _for,
    "c_style_for_statement": _counting,
    "case_statement": _case,
    "function_definition": _function,
}
