"""Checks of a Mix project."""

from collections.abc import Iterator

from ralph.settings.detect.project import Project, ProposedCheck


def checks(project: Project) -> Iterator[ProposedCheck]:
    """Tests, which compile everything; the formatter and credo where they are configured."""
    yield project.check("test", "mix test", "mix.exs")
    if ".formatter.exs" in project.names:
        yield project.check("lint", "mix format --check-formatted", ".formatter.exs")
    if ".credo.exs" in project.names:
        yield project.check("lint", "mix credo", ".credo.exs")
