"""The documentation tells the truth: settings, commands, links and citations on its pages."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import reference

from kits.examples import HAND_WRITTEN, ROOT, blocks
from ralph.cli.commands import COMMANDS, ralph, with_command
from ralph.kernel.verdict import Reason
from ralph.settings.load import load
from ralph.settings.problems import known_keys

README = (ROOT / "README.md").read_text("utf-8")
PROSE = (*HAND_WRITTEN, *(ROOT / name for name in ("AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md")))
IDS = [str(page.relative_to(ROOT)) for page in HAND_WRITTEN]
WIDEST, LONGEST_README = 120, 200
COMMAND_LINE = re.compile(r"^(?:\w+=\S+ )*(ralph(?: .*)?)$")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.pages()


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= LONGEST_README


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_is_in_the_readme(command: str) -> None:
    assert re.search(rf"`ralph {command}\b", README)


@pytest.mark.parametrize("reason", list(Reason))
def test_every_exit_code_is_in_the_readme_and_the_reference(
    reason: Reason, pages: dict[str, str]
) -> None:
    assert f"| {reason.exit_code} | {reason} |" in README
    assert f"| `{reason.exit_code}` | {reason} |" in pages["exit-codes.md"]


@pytest.mark.parametrize("key", list(known_keys()))
def test_every_setting_is_in_the_reference(key: str, pages: dict[str, str]) -> None:
    assert f"| `{key}` |" in pages["settings.md"]


def test_every_option_is_in_the_reference(pages: dict[str, str]) -> None:
    missing = [
        f"{path} {name}"
        for path, command in every_command()
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
        for name in (*option.opts, *option.secondary_opts)
        if name not in section(pages["commands.md"], path)
    ]
    assert not missing


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Each command with its path, `ralph tasks run`, in the order of the page."""
    yield from _commands_of("ralph", ralph)


def _commands_of(path: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        if not command.hidden:
            yield f"{path} {name}", command
            if isinstance(command, click.Group):
                yield from _commands_of(f"{path} {name}", command)


def section(page: str, title: str) -> str:
    return re.split(r"^#+ ", page.partition(f" {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=IDS)
def test_the_settings_on_a_page_are_valid(page: Path, workspace: Path) -> None:
    (workspace / ".ralph").mkdir()
    for block in blocks(page):
        if block.language == "json" and (not block.title or "settings" in block.title):
            (workspace / ".ralph" / "settings.json").write_text(json.dumps(json.loads(block.text)))
            assert load(str(workspace)).settings, f"line {block.line}"


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=IDS)
def test_the_commands_on_a_page_exist(page: Path, workspace: Path) -> None:
    wrong = [
        f"line {line}: {typed}: {problem}"
        for line, typed in typed_on(page)
        if (problem := misuse(typed))
    ]
    assert not wrong, "\n".join(wrong)


def typed_on(page: Path) -> Iterator[tuple[int, str]]:
    """The command lines of `ralph` in the blocks of a page that show what to type."""
    for block in blocks(page):
        if block.language in ("sh", "console") and not block.title:
            text = block.text.replace("\\\n", " ")
            if block.language == "console":
                text = "\n".join(typed for typed, _ in block.typed)
            for number, line in enumerate(text.splitlines(), block.line + 1):
                for part in re.split(r" (?:&&|\||;) ", line):
                    if found := COMMAND_LINE.match(part):
                        yield number, found[1]


def misuse(typed: str) -> str:
    """What click objects to, when it only reads this line; "" if nothing."""
    script = 'shift_() { shift; printf "%s\\0" "$@"; }; shift_ '
    bare = re.split(r" (?:2?>|<|#)|  #|; ", typed)[0]
    quoted = subprocess.run(
        ("sh", "-c", f"{script}{bare}"), capture_output=True, check=False, env={"EDITOR": "vi"}
    )
    words = with_command(quoted.stdout.decode().split("\0")[:-1])
    group: click.Command = ralph
    ctx = click.Context(ralph, info_name="ralph", **ralph.context_settings)
    try:
        while isinstance(group, click.Group) and words and not words[0].startswith("-"):
            _, command, words = group.resolve_command(ctx, words)
            assert command is not None
            group, ctx = command, click.Context(command, parent=ctx)
        group.make_parser(ctx).parse_args([w for w in words if w not in ("--help", "-h")])
    except click.UsageError as error:
        return error.format_message()
    return ""


@pytest.mark.parametrize("page", PROSE, ids=[str(p.relative_to(ROOT)) for p in PROSE])
def test_lines_fit_a_window(page: Path) -> None:
    lines = enumerate(page.read_text("utf-8").splitlines(), 1)
    assert not [n for n, line in lines if len(line) > WIDEST and not line.startswith("|")]


def test_every_section_that_a_comment_cites_is_on_its_page() -> None:
    pages = {letter: ROOT / f"docs/loops/{name}.md" for letter, name in reference.LOOPS.items()}
    headings = {
        letter: re.findall(r"^#+ (.*)", page.read_text("utf-8"), re.MULTILINE)
        for letter, page in pages.items()
    }
    cited = re.compile(r"\b([HBSRP]) §([\w-]+(?: [\w-]+)*)")
    missing = {
        f"{letter} §{words}: {path.name}"
        for folder in ("src", "tests", "plugin", "tools")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for letter, words in cited.findall(re.sub(r"\s+#?\s*", " ", path.read_text("utf-8")))
        if not any(is_about(heading, words) for heading in headings[letter])
    }
    assert not missing


def is_about(heading: str, words: str) -> bool:
    """True if these words of a citation begin with the heading, or are its number or beginning."""
    number = re.match(r"(\w+)\. ", heading)
    if number:
        return words.split(maxsplit=1)[0] == number[1]
    return words.startswith(heading) or heading.startswith(words)


def test_the_site_is_built_without_a_warning_and_asks_nobody(tmp_path: Path) -> None:
    """By its strict mode, which also follows every link and anchor."""
    pytest.importorskip("zensical")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    reference.write(tmp_path / "docs" / "reference")
    command = (sys.executable, "-m", "zensical", "build", "--strict")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    fetched = re.compile(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="?(?:https?:)?//')
    css = re.compile(r"@import|url\([\"']?(?:https?:)?//")
    built = [*(tmp_path / "site").rglob("*.html"), *(tmp_path / "site").rglob("*.css")]
    assert len(built) > len(HAND_WRITTEN)
    for path in built:
        pattern = css if path.suffix == ".css" else fetched
        assert not pattern.search(path.read_text("utf-8")), path


def test_every_page_is_in_the_menu() -> None:
    names = set(re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8")))
    pages = {str(p.relative_to(ROOT / "docs")) for p in HAND_WRITTEN if p.parent != ROOT}
    assert names == pages | {f"reference/{name}" for name in reference.pages()}


def test_one_version_everywhere() -> None:
    from ralph import __version__

    for name in ("plugin.json", "marketplace.json"):
        text = (ROOT / ".claude-plugin" / name).read_text("utf-8")
        assert set(re.findall(r'"version": "(.*?)"', text)) == {__version__}
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
