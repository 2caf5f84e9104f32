"""Kinds known only at run time."""

import asyncio
import random

import pytest

from skysail.api.errors import NotFound
from skysail.api.kinds import DEPLOYMENTS, PODS
from skysail.api.meta import PartialObjectMetadata
from skysail.informer import ClientSource, Handlers, InformerFactory, Key, Scope, SharedInformer
from skysail.informer.discovery import discover_kind, discover_kinds, metadata_only
from skysail.testing import make_pod


async def test_a_kind_is_found_by_its_name_or_its_resource(cluster):
    for name in ("Deployment", "deployments"):
        kind = await discover_kind(cluster.client, "apps/v1", name)
        assert (kind.resource, kind.namespaced, kind.struct) == ("deployments.apps", True, dict)
        assert set(kind.subresources) == set(DEPLOYMENTS.subresources)
    pods = await discover_kind(cluster.client, "v1", "Pod")
    assert pods.path("default", "web") == PODS.path("default", "web")
    assert "Node" in {kind.name for kind in await discover_kinds(cluster.client, "v1")}


async def test_what_the_server_does_not_know_is_not_found(cluster):
    with pytest.raises(NotFound, match="no 'Widget' in v1"):
        await discover_kind(cluster.client, "v1", "Widget")
    with pytest.raises(NotFound):
        await discover_kind(cluster.client, "example.com/v1", "Widget")


async def test_an_informer_of_dictionaries_keeps_every_field(cluster):
    heard = []
    kind = await discover_kind(cluster.client, "v1", "Pod")

    async def run(client):
        informer = SharedInformer(
            ClientSource(client, Scope(kind)), clock=cluster.clock, rng=random.Random(1), name="dynamic"
        )
        run.informer = informer
        informer.add_handler(
            Handlers(
                add=lambda obj: heard.append(("add", obj["metadata"]["name"])),
                update=lambda old, new: heard.append(("update", new["metadata"]["labels"])),
                delete=lambda obj: heard.append(("delete", obj["metadata"]["name"])),
            )
        )
        await informer.run()

    await cluster.run("dynamic", run)
    await cluster.create(make_pod("web"))
    await cluster.client.patch(PODS, "web", "default", {"metadata": {"labels": {"a": "b"}}})
    await cluster.advance(1)
    cached = run.informer.lister.named("web", "default")
    assert cached["spec"]["dnsPolicy"] == "ClusterFirst"
    await cluster.client.delete(PODS, "web", "default", grace_period_seconds=0)
    await cluster.advance(1)
    assert heard == [("add", "web"), ("update", {"a": "b"}), ("delete", "web")]


async def test_an_informer_of_metadata_keeps_nothing_else(cluster):
    kind = metadata_only(PODS)
    await cluster.create(make_pod("web"))
    async with InformerFactory(cluster.client, clock=cluster.clock, rng=random.Random(1)) as informers:
        informer = informers.informer(kind)
        await informers.wait_for_sync()
        cached = informer.lister.get(Key("default", "web"))
        assert type(cached) is PartialObjectMetadata
        assert cached.uid
        await asyncio.sleep(0)
