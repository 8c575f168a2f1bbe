"""Whatever becomes of a run, nothing of it is left (ADR 23). The long version is `make faults`."""

import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from faults.kills import Kill, kill, kill_group
from faults.places import Installation, UnableError, User, make_installation, users
from faults.routes import ROUTES, Route
from faults.runs import Ralph
from kits.thorough import dealt

KILLS = 2  # by each route

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="there is a keeper on Linux only"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="the agent needs a C compiler"),
]
KILLED = [route for route in ROUTES if "SIGKILL" in route.name]
each_route = pytest.mark.parametrize("route", dealt(ROUTES, 1), ids=lambda route: route.name)
each_user = pytest.mark.parametrize("user", users(os.environ), ids=lambda user: user.name)


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    with make_installation() as made:
        yield made


def ralph_of(installation: Installation, user: User, command: str = "run") -> Ralph:
    try:
        return Ralph(installation, user, installation.python_of(user), command)
    except UnableError as error:
        pytest.skip(str(error))


def kills(ralph: Ralph, route: Route) -> list[Kill]:
    """A few at once."""
    with ThreadPoolExecutor(KILLS) as pool:
        return list(pool.map(lambda _: kill(ralph, route), range(KILLS)))


@each_user
@each_route
def test_nobody_is_left(route: Route, user: User, installation: Installation) -> None:
    """ADR 23: "only the kernel's word that there is no child counts"; exit codes as ADR 1."""
    wrong = [found for found in kills(ralph_of(installation, user), route) if not found.ok]
    assert not wrong


@pytest.mark.parametrize("route", dealt(KILLED, 1), ids=lambda route: route.name)
def test_nobody_is_left_of_a_supervised_task(route: Route, installation: Installation) -> None:
    """Where child runs are spared, the agent is not (ADR 24)."""
    ralph = ralph_of(installation, users(os.environ)[0], "supervise")
    assert [found for found in kills(ralph, route) if not found.ok] == []


@each_user
def test_a_plain_kill_of_the_group_leaves_some(user: User, installation: Installation) -> None:
    """The control: this agent can be left behind, and is found."""
    ralph_of(installation, user)
    assert kill_group(installation, user) > 0
