"""The examples of README and docs: fenced blocks, played as a person would type them.

On a page, a block with `title="FILE"` is a file, written where the session is; ```console is a
session: lines after `$ ` are typed into one shell, in the order of the page, and what stands below
them is what they print. A line `...` stands for any lines, `…` for any words in a line. A block in
an HTML comment is played too, and not shown. ```sh is for reading: only its `ralph` commands are
checked.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
HAND_WRITTEN = tuple(page for page in PAGES if page.parent != ROOT / "docs" / "reference")
_MARK = "\x1e"
_WIDEST = 116
_CHANGING = (  # what differs from run to run, and what stands for it
    (r"\b\d{8}-\d{6}-[0-9a-f]{4}\b", "RUN"),
    (r"\bMSG-[0-9a-f-]+", "MSG"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"\b[0-9a-f]{7,40}\b", "HASH"),
    (r"\b\d{4}-\d\d-\d\d(T[\d:.]+Z?)?", "DATE"),
    (r"\b\d\d:\d\d(:\d\d)?\b", "TIME"),
    (r"\b\d+(\.\d+)?(ms|s|m\d+s)\b", "SECONDS"),
    (r"\b\d+(\.\d+)? ?[KMG]i?B\b", "SIZE"),
    (r"\b\d+% CPU", "CPU"),
    (r"\bpid:? \d+", "PID"),
    (r"\b\d+\.\d+\.\d+\b", "VERSION"),
    (r"ralph-demo-\w+", "DEMO"),
    (r"[ \t]+$", ""),
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its `title`, its text, and the line it begins in."""

    language: str
    title: str
    text: str
    line: int

    @property
    def typed(self) -> list[tuple[str, str]]:
        """Of a session, each command and what it shall print."""
        parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n?", self.text, flags=re.MULTILINE)
        assert not parts[0].strip(), f"line {self.line}: a session begins with a command"
        return list(zip(parts[1::2], parts[2::2], strict=True))


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced block of a page, in order; those in lists are taken out of their indentation."""
    opening = re.compile(
        r'^( *)```(\w*)(?:[^\n]*title="([^"]*)")?[^\n]*\n(.*?)^\1```$', re.MULTILINE | re.DOTALL
    )
    text = page.read_text("utf-8")
    for found in opening.finditer(text):
        indent, language, title, body = found.groups()
        lines = (line.removeprefix(indent) for line in body.splitlines(keepends=True))
        yield Block(language, title or "", "".join(lines), text.count("\n", 0, found.start()) + 1)


def play(page: Path, home: Path) -> list[tuple[Block, str, str, str]]:
    """Play the page in an empty home: for each command its block, what was typed, what it shall
    print and what it printed."""
    project, tools = home / "work", home.parent / "tools"
    for folder in (project, tools):
        folder.mkdir(parents=True)
    for name, module in (("ralph", " -m ralph"), ("python3", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n')
        (tools / name).chmod(0o755)
    script, asked = [], []
    for block in blocks(page):
        if block.title:
            script.append(_writing(block))
        elif block.language == "console":
            for command, shall in block.typed:
                asked.append((block, command, shall))
                script.append(f"{command}\n_code=$?; printf '{_MARK}'; (exit $_code)\n")
    (home.parent / "session.sh").write_text("".join(script), "utf-8")
    done = subprocess.run(
        ("bash", str(home.parent / "session.sh")),
        cwd=project,
        env=_environment(home, tools),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    printed = done.stdout.decode("utf-8", "replace").split(_MARK)
    assert len(printed) == len(asked) + 1, "the session ended early"
    return [(*each, said) for each, said in zip(asked, printed, strict=False)]


def _writing(block: Block) -> str:
    """The shell's words for writing a file."""
    where = f"mkdir -p \"$(dirname '{block.title}')\""
    return f"{where}\ncat > '{block.title}' <<'END OF FILE'\n{block.text}END OF FILE\n"


def _environment(home: Path, tools: Path) -> dict[str, str]:
    me = {"NAME": "Me", "EMAIL": "me@example.com"}
    names = {f"GIT_{who}_{what}": me[what] for who in ("AUTHOR", "COMMITTER") for what in me}
    return {
        **names,
        "PATH": os.pathsep.join((str(tools), "/usr/bin", "/bin")),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TMPDIR": str(home.parent),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "init.defaultBranch",
        "GIT_CONFIG_VALUE_0": "main",
    }


def shown(text: str, home: Path) -> str:
    """What a page shows of this output: a home of its own, and no long lines."""
    lines = text.replace(str(home), "/home/me").splitlines(keepends=True)
    return "".join(line if len(line) <= _WIDEST else f"{line[: _WIDEST - 2]}…\n" for line in lines)


def alike(shall: str, printed: str) -> bool:
    """True if the output is what the page shows, but for ids, times and `...`."""
    parts = [re.escape(_plain(part)) for part in re.split(r"^\.\.\.\n", shall, flags=re.MULTILINE)]
    pattern = "(?:.*\n)*?".join(parts).replace("…", ".*")
    return re.fullmatch(pattern, _plain(printed)) is not None


def _plain(text: str) -> str:
    for pattern, name in _CHANGING:
        text = re.sub(pattern, name, text, flags=re.MULTILINE)
    return text.strip("\n") + "\n" if text.strip() else ""
