"""The pytest plugin: the fixture `cluster`, and tests that run in virtual time.

An `async def` test that takes `cluster` runs, from its first line to its last, on an event loop of its own in virtual
time, inside a running cluster. It needs no plugin for asyncio, and gets along with those that are there.

    @pytest.mark.cluster(seed=7, horizon_seconds=86_400)
    async def test_a_day_in_the_life(cluster): ...
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from skysail.testing.cluster import Cluster

HORIZON_SECONDS = 6 * 3_600.0
"""A test that has waited for so much virtual time waits for something that will not come."""

_MARKER = (
    "cluster(seed=0, start=datetime(2026, 1, 1, tzinfo=UTC), options=None, horizon_seconds=21600): "
    "how the cluster of a test is made, and how much virtual time it may take"
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> "Cluster":
    """A cluster in one process: an API server that is up, in virtual time, with nothing in it yet."""
    from skysail.testing.cluster import Cluster

    options = _options(request.node)
    options.pop("horizon_seconds", None)
    return Cluster(**options)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a test that takes `cluster` inside it."""
    if "cluster" in pyfuncitem.funcargs:
        from skysail.testing.cluster import Cluster

        given = pyfuncitem.funcargs["cluster"]
        if isinstance(given, Cluster):  # and not somebody else's fixture of that name
            pyfuncitem.obj = _in_virtual_time(pyfuncitem, given)
    return (yield)


def _in_virtual_time(item: pytest.Function, given: "Cluster") -> Callable[..., None]:
    """The test as a plain function that runs it on a virtual-time loop."""
    from skysail.simulator.clock import run_virtual

    test = inspect.unwrap(item.obj)
    bound = test.__get__(item.instance) if item.instance is not None and not inspect.ismethod(test) else test
    if not inspect.iscoroutinefunction(test):
        pytest.fail(f"{item.nodeid}: a test that takes `cluster` must be `async def`", pytrace=False)
    horizon = float(_options(item).get("horizon_seconds", HORIZON_SECONDS))

    def run(**arguments: object) -> None:
        run_virtual(_test_in_cluster(given, lambda: bound(**arguments), horizon))

    return run


async def _test_in_cluster(given: "Cluster", test: Callable[[], Coroutine[Any, Any, None]], horizon: float) -> None:
    from skysail.testing.cluster import NotSettled

    async with given:
        try:
            async with asyncio.timeout(horizon) as limit:
                await test()
        except TimeoutError as error:
            if limit.expired():
                raise NotSettled(f"the test took more than {horizon:g} s of virtual time") from error
            raise


def _options(item: pytest.Item) -> dict[str, Any]:
    marker = item.get_closest_marker("cluster")
    return dict(marker.kwargs) if marker is not None else {}
