"""Diffs: the files that changed, and the patch with its lines tinted."""

from itertools import groupby

from ralph.text.words import counted
from ralph.ui.paper.markup import EMPTY, Content, Markup, folded, foreign, joined, table, tag
from ralph.ui.paper.words import cut, excerpt
from ralph.ui.recap.values import Diff, FileChange

_PATH = 110  # characters
_SQUARES = 5
_KINDS = {"+": "ins", "-": "del", "@": "i"}


def diff_words(diff: Diff) -> Markup:
    """+12 −3, nothing where no file changed."""
    if not diff.files:
        return EMPTY
    return counts(diff.added, diff.removed)


def counts(added: int, removed: int) -> Markup:
    plus = tag("span", f"+{added:,}", class_="plus") if added or not removed else EMPTY
    minus = tag("span", f"−{removed:,}", class_="minus") if removed else EMPTY
    return joined((plus, " " if plus and minus else EMPTY, minus))


def diff_part(diff: Diff, room: int, most: int) -> Markup:
    """So many of the files, and the patch in so many bytes."""
    shown = diff.files[:most]
    rows: list[list[Content]] = [
        [foreign(cut(file.path, _PATH)), _of(file), _squares(file)] for file in shown
    ]
    if rest := len(diff.files) - len(shown):
        rows.append([f"and {counted(rest, 'file')} more", EMPTY, EMPTY])
    files = table(("file", "lines", ""), rows, class_="files") if rows else EMPTY
    if not diff.patch:
        return files
    return joined((files, folded("Patch", _patch(diff, room), class_="patch-fold")))


def _of(file: FileChange) -> Markup:
    if file.added is None or file.removed is None:
        return tag("span", "binary", class_="quiet")
    return counts(file.added, file.removed)


def _squares(file: FileChange) -> Markup:
    """Five squares, so many of them for what was added, as people know them from forges."""
    added, removed = file.added or 0, file.removed or 0
    size = added + removed
    plus = round(_SQUARES * added / size) if size else 0
    minus = min(_SQUARES - plus, round(_SQUARES * removed / size)) if size else 0
    drawn = (("plus", plus), ("minus", minus), ("none", _SQUARES - plus - minus))
    return tag(
        "span",
        *(tag("span", "■" * count, class_=class_) for class_, count in drawn if count),
        class_="squares",
        aria_hidden="true",
    )


def _patch(diff: Diff, room: int) -> Markup:
    part = excerpt(diff.patch, room)
    # Where lines of both kinds alternate the elements take more room than the lines.
    if (size := len(_tinted(part.head + part.tail))) > 1.5 * room:
        part = excerpt(diff.patch, int(room * room / size))
    gap = EMPTY
    if part.missing or diff.is_cut:
        words = f"{part.missing:,} characters" if part.missing else "More"
        gap = tag("p", f"… {words} left out: git shows the whole", class_="gap")
    ends = [
        tag("pre", _tinted(each), class_="patch", tabindex="0")
        for each in (part.head, part.tail)
        if each
    ]
    return joined((*ends[:1], gap, *ends[1:]))


def _tinted(patch: str) -> Markup:
    """The lines of a patch; those of one kind that follow each other are one element."""
    parts = []
    for kind, lines in groupby(patch.splitlines(), _kind):
        text = "\n".join(lines)
        parts.append(tag(kind, text) if kind else tag("span", text))
    return joined(parts)


def _kind(line: str) -> str:
    """`b` for the lines that name the file."""
    if line.startswith(("diff --git ", "index ", "--- ", "+++ ", "new file", "deleted file")):
        return "b"
    return _KINDS.get(line[:1], "")
