"""The kinds as a server sees them: definitions it takes, defaults it fills in, objects it refuses."""

from pathlib import Path

import pytest
import yaml

from skysail.api.errors import Invalid
from skysail.apiserver.schema.table import load
from skysail.batch.kinds import JOB_QUEUES, POD_GROUPS, QUEUES, QUOTAS, batch_definitions
from skysail.controller.customresources.installing import DEFINITIONS
from skysail.simulator.clock import run_virtual, settle

MANIFEST = Path(__file__).parents[3] / "deploy" / "crds" / "scheduling.skysail.io.yaml"


def serve(act):
    """Run against an embedded server that serves the kinds."""
    from random import Random

    from skysail.apiserver.authentication import ADMIN
    from skysail.apiserver.server import ApiServer
    from skysail.client.api_client import ApiClient
    from skysail.client.inprocess import InProcessTransport

    async def main(clock):
        server = ApiServer(clock=clock, rng=Random(1))
        client = ApiClient(InProcessTransport(server, ADMIN), user_agent="test", clock=clock, rng=Random(1))
        async with server.running():
            for definition in batch_definitions():
                await client.create(DEFINITIONS, definition)
            await settle(1)
            return await act(client)

    return run_virtual(main)


def test_no_name_of_a_kind_is_one_that_people_type_for_a_kind_of_kubernetes():
    core = {name for row in load().resources for name in (row.resource, row.singular, *row.short_names)}
    ours = [definition["spec"]["names"] for definition in batch_definitions()]
    typed = {name for each in ours for name in (each["plural"], each["singular"], *each.get("shortNames", ()))}
    assert len(core) > 100
    assert not typed & core


def test_the_shipped_manifest_is_what_the_structs_say():
    assert list(yaml.safe_load_all(MANIFEST.read_text())) == list(batch_definitions())


def test_short_names_and_columns():
    names = {each["spec"]["names"]["kind"]: each["spec"]["names"]["shortNames"] for each in batch_definitions()}
    assert names == {"Queue": ["q"], "JobQueue": ["jq"], "Quota": ["qt"], "PodGroup": ["pg"]}
    quota = batch_definitions()[2]["spec"]["versions"][0]
    assert [column["name"] for column in quota["additionalPrinterColumns"]] == [
        "Queue", "Size", "Count", "Phase", "Node", "Zone", "Holder", "Age",
    ]  # fmt: skip
    assert "Not a limit" in quota["schema"]["openAPIV3Schema"]["description"]


def test_defaults_are_filled_in():
    async def act(client):
        queue = await client.create(QUEUES, {"metadata": {"name": "a"}, "spec": {}})
        group = await client.create(POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"queue": "a"}}, "default")
        slot = await client.create(
            QUOTAS, {"metadata": {"name": "s"}, "spec": {"queue": "a", "resources": {"cpu": 4}}}, "default"
        )
        return queue, group, slot

    queue, group, slot = serve(act)
    assert (queue.spec.type, queue.spec.parent, queue.spec.weight, queue.spec.reclaimable) == ("Quota", "root", 1, True)
    assert (group.spec.min_member, group.spec.match_policy, group.spec.disruption_mode) == (
        1,
        "waiting-and-running",
        "Pod",
    )
    assert (slot.spec.count, slot.spec.release_policy.type) == (1, "Never")


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        (QUEUES, {"type": "Elastic"}, "spec.type"),
        (QUEUES, {"weight": -1}, "spec.weight"),
        (QUEUES, {"deserved": {"cpu": "many"}}, "spec.deserved"),
        (QUEUES, {"type": "Spot", "deserved": {"cpu": 1}}, "spec"),
        (QUEUES, {"deserved": {"cpu": 1}, "flavors": [{"name": "a"}]}, "spec"),
        (QUEUES, {"reclaimMinRuntime": "soon"}, "spec.reclaimMinRuntime"),
        (JOB_QUEUES, {"order": "FIFO"}, "spec"),
        (QUOTAS, {"queue": "a"}, "spec.resources"),
        (QUOTAS, {"queue": "a", "resources": {}}, "spec.resources"),
        (QUOTAS, {"queue": "a", "resources": {"cpu": 1}, "count": 2147483647}, "spec.count"),
        (POD_GROUPS, {"minMember": -1}, "spec.minMember"),
        (POD_GROUPS, {"subGroups": [{"name": "a"}, {"name": "a"}]}, "spec.subGroups[1]"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_field(kind, spec, field):
    async def act(client):
        with pytest.raises(Invalid) as caught:
            await client.create(kind, {"metadata": {"name": "x"}, "spec": spec}, "default" if kind.namespaced else "")
        return str(caught.value)

    assert field in serve(act)
