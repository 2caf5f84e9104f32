"""Fixtures: a whole `skysail up`, and kubectl in a namespace of its own for every test."""

from collections.abc import Callable, Iterator

import pytest

from tests.e2e.running import Running, start, stop


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One cluster of five nodes for a module's tests; each test uses a namespace of its own."""
    running = start(tmp_path_factory.mktemp("up"), "--nodes", "5")
    yield running
    stop(running)


@pytest.fixture
def namespace(up: Running, request: pytest.FixtureRequest) -> str:
    """A namespace named after the test."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:60].strip("-")
    up.kubectl("create", "-f", "-", stdin=f'{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}')
    return name


Kubectl = Callable[..., str]


@pytest.fixture
def kubectl(up: Running, namespace: str) -> Kubectl:
    """kubectl in the test's own namespace."""

    def run(*args: str, stdin: str | None = None, check: bool = True, timeout: float = 60) -> str:
        return up.kubectl("-n", namespace, *args, stdin=stdin, check=check, timeout=timeout)

    return run
