"""An agent's login, renewed in a sandbox."""

from pathlib import Path

import pytest

from ralph.adapters.sandbox.logins import Login

OLD = '{"token": "old", "more": 1}'


@pytest.mark.parametrize(
    ("seen", "kept"),
    [
        ('{"token": "new", "more": 1}', True),
        ('{"token": "new", "more": 1, "scopes": []}', True),
        (OLD, False),
        ('{"token": "new"}', False),
        ("", False),
        ("[1]", False),
        ("not JSON", False),
    ],
)
def test_only_a_login_takes_the_place_of_a_login(tmp_path: Path, seen: str, kept: bool) -> None:
    path = tmp_path / ".codex" / "auth.json"
    path.parent.mkdir()
    path.write_text(OLD)
    login = Login("codex", {"HOME": str(tmp_path)})
    login.remember()
    login.renew(lambda _: seen.encode())
    assert path.read_text() == (seen if kept else OLD)


def test_what_somebody_else_renewed_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    path.write_text(OLD)
    login = Login("codex", {"CODEX_HOME": str(tmp_path)})
    login.remember()
    path.write_text('{"token": "theirs", "more": 1}')
    login.renew(lambda _: b'{"token": "new", "more": 1}')
    assert "theirs" in path.read_text()


@pytest.mark.parametrize("kind", ["claude", "text"])
def test_who_has_no_login_is_not_asked(tmp_path: Path, kind: str) -> None:
    login = Login(kind, {"HOME": str(tmp_path)})
    login.remember()
    login.renew(pytest.fail)
    assert list(tmp_path.iterdir()) == []
