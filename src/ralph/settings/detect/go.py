"""Checks of a Go module."""

from collections.abc import Iterator

from ralph.settings.detect.project import Project, ProposedCheck

_LINTER = tuple(f".golangci.{ending}" for ending in ("yml", "yaml", "toml", "json"))


def checks(project: Project) -> Iterator[ProposedCheck]:
    """Tests; vet, which builds what has no tests; golangci-lint where it is configured."""
    yield project.check("test", "go test ./...", "go.mod")
    yield project.check("lint", "go vet ./...", "go.mod")
    if source := project.first(*_LINTER):
        yield project.check("lint", "golangci-lint run", source)
