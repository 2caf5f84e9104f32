"""The blocking face: generated, complete, and working at a prompt."""

import ast
import asyncio
import inspect
import threading
from contextlib import contextmanager

import pytest

from skysail.api.errors import NotFound
from skysail.api.kinds import CONFIGMAPS
from skysail.apiserver.authentication import ADMIN
from skysail.apiserver.server import ApiServer
from skysail.cli.notebook import Connection, connect
from skysail.client.api_client import ApiClient
from skysail.client.inprocess import InProcessTransport
from skysail.controller.blocking import client as blocking_client
from skysail.controller.blocking.client import BlockingClient
from skysail.controller.blocking.portal import Portal
from skysail.controller.blocking.source import blocking_source
from skysail.simulator.clock import WallClock


def test_the_blocking_face_is_what_the_generator_writes():
    """If this fails: python -m skysail.controller.blocking.source > .../client.py, then ruff format."""
    written = ast.dump(ast.parse(inspect.getsource(blocking_client)))
    assert _without_indentation(written) == _without_indentation(ast.dump(ast.parse(blocking_source())))


def _without_indentation(dumped):
    return dumped.replace(" ", "").replace("\\n", "")


def test_it_has_every_public_method_of_the_client_and_none_is_a_coroutine():
    methods = {name for name, _ in inspect.getmembers(ApiClient, inspect.isfunction) if not name.startswith("_")}
    mirrored = dict(inspect.getmembers(BlockingClient, inspect.isfunction))
    assert methods <= set(mirrored)
    for name in methods:
        assert not inspect.iscoroutinefunction(mirrored[name])
        assert mirrored[name].__doc__ == getattr(ApiClient, name).__doc__ or name
        theirs, ours = inspect.signature(getattr(ApiClient, name)), inspect.signature(mirrored[name])
        assert list(theirs.parameters) == list(ours.parameters)


@contextmanager
def connected():
    portal = Portal()
    from random import Random

    server = ApiServer(clock=WallClock(), rng=Random(1))
    started = threading.Event()

    async def serve():
        async with server.running():
            started.set()
            await asyncio.Event().wait()

    portal.run_beside(serve())
    assert started.wait(10)
    with Connection(InProcessTransport(server, ADMIN), portal) as connection:
        yield connection


def test_objects_are_written_and_read_and_errors_are_raised_where_one_stands():
    with connected() as cluster:
        made = cluster.create(CONFIGMAPS, {"metadata": {"name": "a"}, "data": {"x": "y"}}, "default")
        assert cluster.get(CONFIGMAPS, "a", "default") == made
        assert [each.name for each in cluster.list(CONFIGMAPS, "default").items] == ["a"]
        with pytest.raises(NotFound):
            cluster.get(CONFIGMAPS, "nope", "default")
        assert cluster.statistics().requests >= 4
    cluster.close()


def test_a_watch_is_a_plain_loop_and_leaving_it_closes_it():
    with connected() as cluster:
        cluster.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
        for event in cluster.watch(CONFIGMAPS, "default", send_initial_events=True):
            assert (event.type, event.object.name) == ("ADDED", "a")
            break
        ended = list(cluster.watch(CONFIGMAPS, "default", timeout_seconds=1))
        assert all(event.type in ("ADDED", "BOOKMARK") for event in ended)


def test_a_lister_follows_the_cluster():
    with connected() as cluster:
        cluster.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
        lister = cluster.lister(CONFIGMAPS, "default")
        assert [each.name for each in lister.list()] == ["a"]
        made = cluster.create(CONFIGMAPS, {"metadata": {"name": "b"}}, "default")
        (informer,) = cluster._informers.informers().values()
        cluster._portal.call(informer.wait_for_version(made.metadata.resource_version))
        assert len(lister) == 2


def test_an_interrupted_call_is_cancelled():
    with Portal() as portal:
        cancelled = threading.Event()

        async def forever():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        portal.run_beside(forever())
    assert cancelled.wait(10)
    portal.close()


def test_connect_names_what_is_wrong(tmp_path):
    from skysail.api.errors import ConfigError

    with pytest.raises(ConfigError, match="nope"):
        connect(str(tmp_path / "nope"))
