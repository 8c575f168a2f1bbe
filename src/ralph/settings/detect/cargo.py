"""Checks of a Cargo package or workspace."""

from collections.abc import Iterator

from ralph.settings.detect.project import Project, ProposedCheck


def checks(project: Project) -> Iterator[ProposedCheck]:
    """Tests, which build everything; clippy where the project configures lints."""
    yield project.check("test", "cargo test", "Cargo.toml")
    named = project.first("clippy.toml", ".clippy.toml")
    text = project.text("Cargo.toml")
    source = named or ("Cargo.toml: lints" if "lints.clippy]" in text else "")
    if source:
        yield project.check("lint", "cargo clippy", source, "cargo-clippy")
