"""Checks of a Gradle or Maven build."""

import fnmatch
from collections.abc import Iterator

from ralph.settings.detect.project import Project, ProposedCheck


def checks(project: Project) -> Iterator[ProposedCheck]:
    """Tests, which compile everything; by the project's own wrapper if it has one."""
    gradle = sorted(fnmatch.filter(project.names, "*.gradle*"))
    if gradle or "gradlew" in project.names:
        yield _by(project, "gradlew", "gradle test", (*gradle, "gradlew")[0])
    if "pom.xml" in project.names:
        yield _by(project, "mvnw", "mvn -B test", "pom.xml")


def _by(project: Project, wrapper: str, command: str, source: str) -> ProposedCheck:
    if not project.runs(f"./{wrapper}"):
        return project.check("test", command, source)
    arguments = command.partition(" ")[2]
    java = f"{project.java_home}/bin/java" if project.java_home else "java"
    lacks = "" if project.runs(java) else "java"
    return ProposedCheck("test", f"./{wrapper} {arguments}", source, lacks)
