"""Scripts of a composer.json, or PHPUnit where it is configured."""

from collections.abc import Iterator

from ralph.settings.detect.project import Project, ProposedCheck, by_role, scripts_of

_SCRIPTS = {"test": ("test", "tests"), "lint": ("lint", "analyse", "phpstan"), "build": ("build",)}
_PHPUNIT = "vendor/bin/phpunit"


def checks(project: Project) -> Iterator[ProposedCheck]:
    """The scripts named test, lint and build; else the tests as phpunit.xml has them."""
    roles = dict(by_role(scripts_of(project.json("composer.json")), _SCRIPTS))
    for role, script in roles.items():
        yield project.check(role, f"composer {script}", f"composer.json: scripts.{script}")
    configured = project.first("phpunit.xml", "phpunit.xml.dist")
    if "test" not in roles and configured:
        yield project.check("test", _PHPUNIT, configured)
