"""The example controllers do what their first lines say."""

from pathlib import Path

import pytest
from examples.controllers.config_mirror import MIRROR, MIRRORS, SOURCE, ConfigMirror
from examples.controllers.label_defaults import LABEL_DEFAULTS, LabelDefaulter, LabelDefaults
from examples.controllers.ttl_cleaner import TTL, TtlCleaner

from skysail.api.apps import Deployment
from skysail.api.cluster import ConfigMap, Event
from skysail.api.errors import Invalid, ServiceUnavailable
from skysail.api.kinds import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Kind
from skysail.controller.customresources import definition_of
from skysail.testing import make_deployment, make_namespace

EXAMPLES = Path(__file__).parents[2] / "examples/controllers"
DEFINITIONS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, dict, ("status",)
)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_has_less_than_eighty_lines(path):
    assert len(path.read_text().splitlines()) < 80


async def config_maps(cluster, namespace="default"):
    return {each.name: each for each in await cluster.list(ConfigMap, namespace) if each.name != "kube-root-ca.crt"}


async def make(cluster, name, ttl=None, **fields):
    annotations = {TTL: ttl} if ttl else {}
    body = {"metadata": {"name": name, "annotations": annotations, **fields}}
    return await cluster.client.create(CONFIGMAPS, body, "default")


async def test_the_ttl_cleaner_deletes_what_has_outlived_its_time_and_nothing_else(cluster):
    await cluster.start(TtlCleaner)
    await make(cluster, "short", "90s")
    await make(cluster, "long", "2h")
    await make(cluster, "for-ever")
    await cluster.advance(89)
    assert set(await config_maps(cluster)) == {"short", "long", "for-ever"}
    await cluster.advance(2)
    assert set(await config_maps(cluster)) == {"long", "for-ever"}
    await cluster.advance(7200)
    assert set(await config_maps(cluster)) == {"for-ever"}
    assert {event.reason for event in await cluster.list(Event)} == {"TimeToLiveOver"}


async def test_the_ttl_cleaner_respects_a_time_that_is_changed(cluster):
    await cluster.start(TtlCleaner)
    await make(cluster, "a", "60s")
    await cluster.advance(30)
    await cluster.client.patch(CONFIGMAPS, "a", "default", {"metadata": {"annotations": {TTL: "1h"}}})
    await cluster.advance(600)
    assert set(await config_maps(cluster)) == {"a"}


async def test_the_ttl_cleaner_says_when_a_time_is_none(cluster, caplog):
    await cluster.start(TtlCleaner)
    await make(cluster, "a", "soon")
    await cluster.advance(3600)
    assert set(await config_maps(cluster)) == {"a"}
    (event,) = await cluster.list(Event)
    assert event.reason == "BadTimeToLive"
    assert event.count == 1


async def test_label_defaults_are_set_where_they_are_missing(cluster):
    await cluster.client.create(DEFINITIONS, definition_of(LabelDefaults))
    await cluster.advance(1)
    await cluster.start(LabelDefaulter)
    await cluster.create(make_deployment("old", replicas=0))
    body = {"metadata": {"name": "team"}, "spec": {"labels": {"team": "a", "app": "never"}}}
    await cluster.client.create(LABEL_DEFAULTS, body, "default")
    await cluster.create(make_deployment("new", replicas=0))
    await cluster.settle()
    for deployment in await cluster.list(Deployment):
        assert deployment.metadata.labels["team"] == "a"
    assert (await cluster.client.get(LABEL_DEFAULTS, "team", "default")).status.labelled == 2
    await cluster.client.patch(LABEL_DEFAULTS, "team", "default", {"spec": {"labels": {"tier": "web"}}})
    await cluster.settle()
    assert all(each.metadata.labels["tier"] == "web" for each in await cluster.list(Deployment))


async def test_a_label_that_is_there_is_never_changed(cluster):
    await cluster.client.create(DEFINITIONS, definition_of(LabelDefaults))
    await cluster.start(LabelDefaulter)
    await cluster.create(make_deployment("web", replicas=0))
    await cluster.client.patch(DEPLOYMENTS, "web", "default", {"metadata": {"labels": {"team": "mine"}}})
    await cluster.client.create(
        LABEL_DEFAULTS, {"metadata": {"name": "d"}, "spec": {"labels": {"team": "a"}}}, "default"
    )
    await cluster.settle()
    assert (await cluster.get(Deployment, "web")).metadata.labels["team"] == "mine"


async def test_the_definition_refuses_nonsense(cluster):
    await cluster.client.create(DEFINITIONS, definition_of(LabelDefaults))
    await cluster.advance(1)
    with pytest.raises(Invalid, match=r"spec\.labels"):
        await cluster.client.create(LABEL_DEFAULTS, {"metadata": {"name": "d"}, "spec": {}}, "default")


async def mirrored_cluster(cluster):
    for name in ("team-a", "team-b"):
        await cluster.create(make_namespace(name))
        await cluster.client.patch(NAMESPACES, name, "", {"metadata": {"labels": {MIRRORS: "true"}}})
    await cluster.create(make_namespace("other"))
    await cluster.start(ConfigMirror)
    body = {"metadata": {"name": "motd", "labels": {MIRROR: "true"}}, "data": {"text": "hello"}}
    await cluster.client.create(CONFIGMAPS, body, "default")
    await cluster.settle()


async def texts(cluster):
    names = ("team-a", "team-b", "other")
    found = {name: (await config_maps(cluster, name)).get("motd") for name in names}
    return {name: obj.data["text"] for name, obj in found.items() if obj is not None}


async def test_config_maps_are_mirrored_into_the_namespaces_that_want_them(cluster):
    await mirrored_cluster(cluster)
    assert await texts(cluster) == {"team-a": "hello", "team-b": "hello"}
    await cluster.client.patch(CONFIGMAPS, "motd", "default", {"data": {"text": "bye"}})
    await cluster.settle()
    assert await texts(cluster) == {"team-a": "bye", "team-b": "bye"}


async def test_a_mirror_that_somebody_changed_or_deleted_is_put_right(cluster):
    await mirrored_cluster(cluster)
    await cluster.client.patch(CONFIGMAPS, "motd", "team-a", {"data": {"text": "hacked"}})
    await cluster.client.delete(CONFIGMAPS, "motd", "team-b")
    await cluster.settle()
    assert await texts(cluster) == {"team-a": "hello", "team-b": "hello"}
    assert (await config_maps(cluster, "team-a"))["motd"].metadata.annotations[SOURCE] == "default/motd"


async def test_mirrors_go_with_their_source_and_with_the_namespaces_wish(cluster):
    await mirrored_cluster(cluster)
    await cluster.client.patch(NAMESPACES, "team-a", "", {"metadata": {"labels": {MIRRORS: None}}})
    await cluster.client.patch(NAMESPACES, "other", "", {"metadata": {"labels": {MIRRORS: "true"}}})
    await cluster.settle()
    assert set(await texts(cluster)) == {"team-b", "other"}
    await cluster.client.delete(CONFIGMAPS, "motd", "default")
    await cluster.settle()
    assert await texts(cluster) == {}


async def test_mirrors_are_right_in_the_end_whatever_the_server_does_meanwhile(cluster):
    await mirrored_cluster(cluster)
    cluster.faults.fail(ServiceUnavailable, verb="patch", times=4)
    cluster.faults.expire_watches()
    await cluster.client.patch(CONFIGMAPS, "motd", "default", {"data": {"text": "later"}})
    await cluster.settle()
    assert await texts(cluster) == {"team-a": "later", "team-b": "later"}
