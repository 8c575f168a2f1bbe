"""An agent's login, renewed in a sandbox."""

from pathlib import Path

import pytest

from ralph.sandbox.credentials import Login

OLD = '{"oauth": {"accessToken": "old", "expiresAt": 1, "scopes": ["a"]}, "account": "me"}'


@pytest.mark.parametrize(
    ("seen", "kept"),
    [
        (OLD.replace("old", "new"), True),
        (OLD.replace("old", "new").replace("1,", "2,"), True),
        (OLD, False),
        (OLD.replace("me", "somebody else"), False),
        (OLD.replace('["a"]', '["a", "b"]'), False),
        (OLD.replace('"old"', "7"), False),
        (OLD.replace("}", ', "more": 1}'), False),
        ('{"oauth": {"accessToken": "new"}}', False),
        ("", False),
        (OLD.replace("old", "new").encode("utf-16"), False),
        ("[1]", False),
        ("not JSON", False),
    ],
)
def test_only_a_login_takes_the_place_of_a_login(
    tmp_path: Path, seen: str | bytes, kept: bool
) -> None:
    path = tmp_path / ".codex" / "auth.json"
    path.parent.mkdir()
    path.write_text(OLD)
    login = Login("codex", {"HOME": str(tmp_path)})
    login.remember()
    saved = tmp_path / "before"
    data = seen if isinstance(seen, bytes) else seen.encode()
    assert login.renew(lambda _: data, str(saved)) is kept
    assert path.read_text() == (seen if kept else OLD)
    assert not kept or (saved.read_text(), saved.stat().st_mode & 0o777) == (OLD, 0o600)


def test_what_somebody_else_renewed_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    path.write_text(OLD)
    login = Login("codex", {"CODEX_HOME": str(tmp_path)})
    login.remember()
    path.write_text(OLD.replace("old", "theirs"))
    assert not login.renew(lambda _: OLD.replace("old", "new").encode(), str(tmp_path / "before"))
    assert "theirs" in path.read_text()


@pytest.mark.parametrize("kind", ["claude", "text"])
def test_who_has_no_login_is_not_asked(tmp_path: Path, kind: str) -> None:
    login = Login(kind, {"HOME": str(tmp_path)})
    login.remember()
    assert not login.renew(pytest.fail, str(tmp_path / "before"))
    assert list(tmp_path.iterdir()) == []
