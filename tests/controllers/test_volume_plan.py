"""What becomes of claims and of volumes, and where a hollow volume can be used."""

import msgspec
import pytest

from skysail.api.core import EphemeralVolumeSource, Volume
from skysail.api.storage import PersistentVolumeClaimStatus, TopologySelectorLabelRequirement, TopologySelectorTerm
from skysail.api.volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, SELECTED_NODE, with_annotation
from skysail.controllers.volumes.ephemeral import new_claim
from skysail.controllers.volumes.plan import (
    Bind,
    Lose,
    Provision,
    Stock,
    UseClass,
    VolumePlan,
    Wait,
    best_match,
    bound_claim,
    bound_status,
    bound_volume,
    default_class,
    plan_claim,
    plan_volume,
)
from skysail.controllers.volumes.protection import uses
from skysail.controllers.volumes.topology import WrongNode, is_hollow, new_volume
from skysail.testing.builders import make_node
from skysail.testing.volumes import make_claim, make_pod, make_storage_class, make_volume, mount

CLAIM = make_claim("data")
LOST = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
NO_CLASS = "no persistent volumes available for this claim and no storage class is set"
FIRST_CONSUMER = "waiting for first consumer to be created before binding"


def stock(*classes, named=None, volumes=(), unscheduled=()) -> Stock:
    return Stock(named, list(volumes), {each.name: each for each in classes}, tuple(unscheduled))


def selected(claim, node="n1"):
    return with_annotation(claim, SELECTED_NODE, node)


def phase(volume, name):
    return msgspec.structs.replace(volume, status=msgspec.structs.replace(volume.status, phase=name))


def provisioned(volume):
    return with_annotation(volume, PROVISIONED_BY, "skysail.io/hollow")


IMMEDIATE, WAITS = make_storage_class(waits=False), make_storage_class()
FREE = make_volume("free")
PROMISED = make_volume("promised", claim=CLAIM)
OTHERS = make_volume("others", claim=make_claim("other"))
NAMING = make_claim("data", volume="disk")
DONE = make_claim("data", volume="disk", bound=True)
DISK = make_volume("disk")


@pytest.mark.parametrize(
    ("claim", "given", "action"),
    [
        (CLAIM, stock(IMMEDIATE, volumes=[FREE]), Bind(FREE)),
        (CLAIM, stock(IMMEDIATE), Provision(IMMEDIATE)),
        (CLAIM, stock(WAITS, volumes=[FREE]), Wait("Normal", "WaitForFirstConsumer", FIRST_CONSUMER)),
        (CLAIM, stock(WAITS, unscheduled=["a", "b"]),
         Wait("Normal", "WaitForPodScheduled", "waiting for pods a,b to be scheduled")),
        (CLAIM, stock(WAITS, volumes=[FREE, PROMISED]), Bind(PROMISED)),
        (selected(CLAIM), stock(WAITS, volumes=[FREE]), Provision(WAITS)),
        (CLAIM, stock(), Wait("Warning", "ProvisioningFailed", 'storageclass.storage.k8s.io "standard" not found')),
        (make_claim(storage_class=""), stock(), Wait("Normal", "FailedBinding", NO_CLASS)),
        (CLAIM, stock(make_storage_class(waits=False, provisioner="kubernetes.io/no-provisioner")),
         Wait("Warning", "ProvisioningFailed", "no volume plugin matched name: kubernetes.io/no-provisioner")),
        (NAMING, stock(IMMEDIATE), Wait()),
        (NAMING, stock(IMMEDIATE, named=DISK), Bind(DISK)),
        (NAMING, stock(named=make_volume("disk", size="1Mi")),
         Wait("Warning", "VolumeMismatch", 'Cannot bind to requested volume "disk": requested PV is too small')),
        (NAMING, stock(named=make_volume("disk", claim=CLAIM)), Bind(make_volume("disk", claim=CLAIM))),
        (NAMING, stock(named=OTHERS),
         Wait("Warning", "FailedBinding", 'volume "others" already bound to a different claim.')),
        (DONE, stock(), Lose("ClaimLost", LOST)),
        (DONE, stock(named=DISK), Bind(DISK)),
        (DONE, stock(named=OTHERS),
         Lose("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")),
    ],
)  # fmt: skip
def test_what_becomes_of_a_claim(claim, given, action):
    assert plan_claim(claim, given) == action


def test_a_claim_without_a_class_gets_the_default_one_that_came_later():
    claim = make_claim()
    claim = msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, storage_class_name=None))
    default = make_storage_class("usual", annotations={"storageclass.kubernetes.io/is-default-class": "true"})
    assert plan_claim(claim, stock(default, make_storage_class("a"))) == UseClass("usual")
    assert default_class([make_storage_class("a")]) == ""


@pytest.mark.parametrize(
    ("volume", "why"),
    [
        (make_volume("disk", storage_class="other"), "storageClassName does not match"),
        (make_volume("disk", modes=["ReadOnlyMany"]), "incompatible accessMode"),
    ],
)
def test_a_volume_named_by_a_claim_must_suit_it(volume, why):
    action = plan_claim(NAMING, stock(named=volume))
    assert action == Wait("Warning", "VolumeMismatch", f'Cannot bind to requested volume "disk": {why}')


def test_the_volume_with_the_fewest_modes_goes_before_the_smallest():
    small = make_volume("small", size="1Gi", modes=["ReadWriteOnce", "ReadWriteMany"])
    plain = make_volume("plain", size="9Gi")
    assert best_match(CLAIM, [small, plain, make_volume("tiny", size="1Mi")], only_promised=False) == plain
    assert best_match(CLAIM, [small], only_promised=True) is None
    assert best_match(CLAIM, [phase(plain, "Released")], only_promised=False) is None


def test_binding_writes_both_sides_once():
    volume = bound_volume(FREE, CLAIM)
    assert volume.spec.claim_ref.uid == CLAIM.uid
    assert volume.metadata.annotations == {BOUND_BY_CONTROLLER: "yes"}
    assert bound_volume(volume, CLAIM) is volume
    claim = bound_claim(CLAIM, volume)
    assert claim.spec.volume_name == "free"
    assert set(claim.metadata.annotations) == {BOUND_BY_CONTROLLER, BIND_COMPLETED}
    assert bound_claim(claim, volume) is claim
    status = bound_status(claim.status, volume)
    assert status == PersistentVolumeClaimStatus(
        phase="Bound", access_modes=("ReadWriteOnce",), capacity={"storage": "1Gi"}
    )


def test_a_promise_by_the_volumes_maker_is_not_called_ours():
    ref = msgspec.structs.replace(PROMISED.spec.claim_ref, uid="")
    promised = msgspec.structs.replace(PROMISED, spec=msgspec.structs.replace(PROMISED.spec, claim_ref=ref))
    bound = bound_volume(promised, CLAIM)
    assert bound.spec.claim_ref.uid == CLAIM.uid
    assert bound.metadata.annotations == {}


ELSEWHERE = make_claim("data", volume="another", bound=True)


@pytest.mark.parametrize(
    ("volume", "claim", "plan"),
    [
        (phase(FREE, "Pending"), None, VolumePlan("Available")),
        (PROMISED, None, VolumePlan("Released")),
        (phase(PROMISED, "Failed"), None, VolumePlan("Failed")),
        (PROMISED, make_claim("data", uid="namesake"), VolumePlan("Released")),
        (PROMISED, CLAIM, VolumePlan("Bound", wakes_claim=True)),
        (PROMISED, make_claim("data", volume="promised"), VolumePlan("Bound")),
        (provisioned(make_volume("x", claim=CLAIM, policy="Delete")), ELSEWHERE, VolumePlan("Released")),
    ],
)
def test_what_becomes_of_a_volume(volume, claim, plan):
    assert plan_volume(volume, claim) == plan


def test_a_volume_whose_claim_has_another_is_freed_and_a_makers_promise_is_kept():
    ours = plan_volume(bound_volume(FREE, CLAIM), ELSEWHERE)
    assert (ours.phase, ours.unbound) == ("Available", FREE)
    makers = plan_volume(PROMISED, ELSEWHERE)
    assert (makers.unbound.spec.claim_ref.name, makers.unbound.spec.claim_ref.uid) == ("data", "")


def places(storage_class, node) -> list[tuple[str, tuple[str, ...]]]:
    affinity = new_volume(CLAIM, storage_class, node).spec.node_affinity
    terms = affinity.required.node_selector_terms if affinity is not None else ()
    return [(each.key, each.values) for term in terms for each in term.match_expressions]


NODE = make_node("n1", zone="b")
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("storage_class", "node", "where"),
    [
        (make_storage_class(), NODE, [(ZONE, ("b",))]),
        (make_storage_class(), None, []),
        (make_storage_class(), make_node("n1"), []),
        (make_storage_class(parameters={"topologyKey": HOST}), NODE, [(HOST, ("n1",))]),
        (make_storage_class(zones=["a", "b"]), NODE, [(ZONE, ("b",))]),
        (make_storage_class(zones=["a", "b"]), None, [(ZONE, ("a",))]),
    ],
)
def test_where_a_hollow_volume_can_be_used(storage_class, node, where):
    assert places(storage_class, node) == where


def test_no_volume_is_made_outside_the_allowed_topologies():
    with pytest.raises(WrongNode, match='makes no volumes for node "n1"'):
        new_volume(CLAIM, make_storage_class(zones=["a"]), NODE)
    empty = msgspec.structs.replace(make_storage_class(), allowed_topologies=(TopologySelectorTerm(),))
    with pytest.raises(WrongNode):
        new_volume(CLAIM, empty, NODE)


def test_each_of_several_topology_terms_stands_for_itself():
    terms = tuple(
        TopologySelectorTerm(match_label_expressions=(TopologySelectorLabelRequirement(key=key, values=values),))
        for key, values in (("rack", ("1",)), (ZONE, ("b",)))
    )
    assert places(msgspec.structs.replace(make_storage_class(), allowed_topologies=terms), NODE) == [(ZONE, ("b",))]


def test_a_hollow_volume_is_the_same_however_often_it_is_made_and_belongs_to_its_claim():
    volume = new_volume(make_claim("data", size="1500Mi"), make_storage_class(), NODE)
    assert volume == new_volume(make_claim("data", size="1500Mi"), make_storage_class(), NODE)
    assert volume.name == "pvc-data-uid"
    assert volume.spec.capacity == {"storage": "1500Mi"}
    assert volume.spec.claim_ref.uid == "data-uid"
    assert volume.spec.csi.driver == "hollow.skysail.io"


@pytest.mark.parametrize(
    ("storage_class", "answer"),
    [
        (make_storage_class(), True),
        (make_storage_class(provisioner="ebs.csi.aws.com"), False),
        (make_storage_class(provisioner="ebs.csi.aws.com", annotations={"skysail.io/hollow": "true"}), True),
        (make_storage_class(provisioner="ebs.csi.aws.com", annotations={"skysail.io/hollow": "no"}), False),
    ],
)
def test_which_classes_want_hollow_volumes(storage_class, answer):
    assert is_hollow(storage_class) is answer


def test_an_ephemeral_volumes_claim_keeps_every_field_of_its_template_and_belongs_to_the_pod():
    template = {"metadata": {"annotations": {"a": "b"}}, "spec": {"dataSourceRef": {"kind": "X"}, "accessModes": ["R"]}}
    source = EphemeralVolumeSource(volume_claim_template=msgspec.Raw(msgspec.json.encode(template)))
    claim = new_claim(make_pod("web", uid="web-uid"), Volume(name="scratch", ephemeral=source))
    assert claim["spec"] == template["spec"]
    assert claim["metadata"]["name"] == "web-scratch"
    assert claim["metadata"]["annotations"] == {"a": "b"}
    [owner] = claim["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == ("web-uid", True)


def test_a_claim_is_used_only_by_pods_with_a_node():
    pod = mount(make_pod("web"), "data")
    placed = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="n1"))
    assert [uses(each, CLAIM) for each in (pod, placed, make_pod("other"))] == [False, True, False]
