"""The guard's tables (tests/guard/danger), and the world that they are judged in."""

from pathlib import Path

from ralph.guard.judge import Where

TABLES = Path(__file__).parent / "danger"
WHERE = Where(
    cwd="/home/me/project",
    home="/home/me",
    project="/home/me/project",
    temps=("/tmp", "/var/tmp"),
    strict=True,
)
STANDARD = Where(
    cwd=WHERE.cwd,
    home=WHERE.home,
    project=WHERE.project,
    temps=WHERE.temps,
)


def commands(path: Path) -> list[str]:
    lines = path.read_text("utf-8").splitlines()
    return [line.replace("⏎", "\n") for line in lines if line]


DENIED = [
    (path.stem, command)
    for path in sorted((TABLES / "denied").glob("*.txt"))
    for command in commands(path)
]
HIDDEN = commands(TABLES / "hidden.txt")
ALLOWED = [
    command for path in sorted((TABLES / "allowed").glob("*.txt")) for command in commands(path)
]
LOOSE = commands(TABLES / "standard.txt")
NEVER_LOOSE = commands(TABLES / "standard-denied.txt")
EVERYTHING = [*(command for _, command in DENIED), *HIDDEN, *ALLOWED]
