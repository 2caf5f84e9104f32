"""A set's history: what its revisions hold, and how many of them stay."""

from typing import Any

import msgspec
import pytest

from skysail.api.apps import ControllerRevision, DaemonSet, StatefulSet
from skysail.api.kinds import CONTROLLER_REVISIONS, DAEMONSETS, STATEFULSETS, Kind
from skysail.api.raw import Raw
from skysail.client.bodies import STRATEGIC
from skysail.controllers.history.revisions import revision_data


def manifest(kind: Kind[Any], **spec: Any) -> Raw:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:0"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind.name,
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


def image(version: int) -> Raw:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": f"web:{version}"}]}}}}


@pytest.mark.parametrize(("limit", "left"), [(-1, [1, 2, 3, 4]), (0, [4]), (2, [2, 3, 4])])
async def test_a_stateful_set_keeps_as_many_revisions_as_it_says_and_all_when_the_limit_is_negative(
    cluster, limit, left
):
    await cluster.start_controllers("statefulset-controller")
    await cluster.client.create(STATEFULSETS, manifest(STATEFULSETS, replicas=0, revisionHistoryLimit=limit), "default")
    for version in (1, 2, 3):
        await cluster.settle()
        await cluster.client.patch(STATEFULSETS, "web", "default", image(version), patch_type=STRATEGIC)
    await cluster.settle()
    assert sorted(item.revision for item in await cluster.list(ControllerRevision)) == left


@pytest.mark.parametrize("kind", [STATEFULSETS, DAEMONSETS], ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "data",
    [
        {},
        {"spec": None},
        {"spec": "text"},
        {"spec": {"template": None}},
        {"spec": {"template": ["text"]}},
        {"spec": {"template": {"metadata": "text"}}},
        {"spec": {"template": {"metadata": {"labels": ["text"]}}}},
        {"spec": {"template": {"spec": {"containers": "text"}}}},
    ],
    ids=str,
)
async def test_a_revision_that_holds_no_template_is_part_of_the_history_and_stops_nothing(cluster, kind, data):
    await cluster.start_controllers("statefulset-controller", "daemonset-controller")
    revision = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "odd", "labels": {"app": "web"}},
        "data": data,
        "revision": 7,
    }
    await cluster.client.create(CONTROLLER_REVISIONS, revision, "default")
    await cluster.client.create(kind, manifest(kind), "default")
    await cluster.settle()
    assert sorted(item.revision for item in await cluster.list(ControllerRevision)) == [7, 8]
    [made] = await cluster.list(StatefulSet if kind is STATEFULSETS else DaemonSet)
    assert made.status.observed_generation == 1


def test_a_revision_holds_its_template_to_the_byte_as_the_real_controllers_write_it() -> None:
    """Recorded from kube-controller-manager 1.36.3, which takes a revision for another when one byte differs."""
    template = {
        "metadata": {"labels": {"b": "1", "a": "2"}, "annotations": {"note": 'a<b>&c äöü \u2028 \x01 \b\n\t " \\ /'}},
        "spec": {"terminationGracePeriodSeconds": 30, "containers": [{"name": "c", "image": "i", "resources": {}}]},
    }
    assert bytes(revision_data(msgspec.Raw(msgspec.json.encode(template)))).decode() == (
        '{"spec":{"template":{"$patch":"replace",'
        '"metadata":{"annotations":{"note":"a\\u003cb\\u003e\\u0026c äöü \\u2028 \\u0001 \\b\\n\\t \\" \\\\ /"},'
        '"labels":{"a":"2","b":"1"}},'
        '"spec":{"containers":[{"image":"i","name":"c","resources":{}}],"terminationGracePeriodSeconds":30}}}}'
    )


@pytest.mark.parametrize("kind", [STATEFULSETS, DAEMONSETS], ids=lambda kind: kind.name)
async def test_what_a_set_remembers_reaches_the_server_to_the_byte(cluster, kind):
    await cluster.start_controllers("statefulset-controller", "daemonset-controller")
    await cluster.client.create(kind, manifest(kind), "default")
    await cluster.settle()
    [made] = await cluster.list(StatefulSet if kind is STATEFULSETS else DaemonSet)
    [revision] = await cluster.list(ControllerRevision)
    assert bytes(revision.data) == bytes(revision_data(made.spec.template))


@pytest.mark.parametrize("kind", [STATEFULSETS, DAEMONSETS], ids=lambda kind: kind.name)
async def test_any_label_of_a_sets_template_makes_another_revision(cluster, kind):
    await cluster.start_controllers("statefulset-controller", "daemonset-controller")
    await cluster.client.create(kind, manifest(kind), "default")
    await cluster.settle()
    patch = {"spec": {"template": {"metadata": {"labels": {"pod-template-hash": "x"}}}}}
    await cluster.client.patch(kind, "web", "default", patch)
    await cluster.settle()
    assert sorted(item.revision for item in await cluster.list(ControllerRevision)) == [1, 2]
