"""Which new files look like secrets, and what the agent is told to do about them (ADR 13)."""

import pytest

from ralph.gates.secret_files import (
    Suspect,
    is_allowed,
    objections,
    why_by_content,
    why_by_name,
)

KEY = "sk-ant-api03-abcdefghijklmnop"


@pytest.mark.parametrize(
    "path",
    [
        *(".env", "a/.env.local", ".ENV.production", ".envrc", "server.pem", "a/b/CA.PEM"),
        *("id_rsa", "keys/id_dsa", "id_ecdsa", "x/id_ed25519"),
    ],
)
def test_names_of_secrets(path: str) -> None:
    """ "`.env*`; `*.pem`; `id_rsa|id_dsa|id_ecdsa|id_ed25519` without extension"."""
    assert why_by_name(path).startswith("named like ")


@pytest.mark.parametrize(
    "path",
    [
        *(".env.example", ".env.sample", "a/.env.template", ".env.dist", ".env.local.example"),
        *("id_rsa.pub", "env", "my.env", ".env/bin/python", "pem", "a.pem.md"),
    ],
)
def test_innocent_names(path: str) -> None:
    """ "Other than examples and templates such as .env.example"."""
    assert why_by_name(path) == ""


def test_a_key_in_a_text_is_named_by_its_line_and_never_printed() -> None:
    assert why_by_content(f"a\nb = '{KEY}'\n{KEY}".encode()) == "shaped like a key in line 2"
    assert why_by_content(b"nothing\n") == ""
    assert why_by_content(b"\0" + KEY.encode()) == "", "no text"


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        ("tests/fixtures/*.pem", True),
        ("tests/fixtures", True),
        ("tests/", True),
        ("tests/fixtures/a.pem", True),
        ("*.pem", True),
        ("fixtures/*.pem", False),
        ("test", False),
    ],
)
def test_paths_directories_and_patterns_can_be_allowed(pattern: str, *, allowed: bool) -> None:
    assert is_allowed("tests/fixtures/a.pem", ["x", pattern]) is allowed


def test_the_words_say_what_to_do_and_stay_the_same_for_the_same() -> None:
    """Told in every turn until it is done, and not as progress."""
    assert list(objections([])) == []
    suspects = [Suspect(".env", "why"), Suspect("a", "b", "c" * 40), Suspect("d", "e", "c" * 40)]
    work, commit = objections(suspects)
    assert work.gate == commit.gate == "secrets"
    assert "would be committed: .env (why). Have git ignore each" in work.text
    assert "Commit cccccccccccc of this run" in commit.text
    assert "a (b) and d (e)" in commit.text or "a (b), d (e)" in commit.text
    assert "git reset --soft cccccccccccc~1" in commit.text
    assert [f.identity for f in objections(suspects)] == [work.identity, commit.identity]
