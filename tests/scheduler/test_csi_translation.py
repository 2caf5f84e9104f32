"""In-tree disks in their CSI drivers' words."""

import msgspec
import pytest

from skysail.api.core import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    Volume,
    VsphereVirtualDiskVolumeSource,
)
from skysail.api.meta import ObjectMeta
from skysail.api.storage import CSINode, PersistentVolume
from skysail.scheduler.plugins.csi_translation import (
    MIGRATED_PLUGINS,
    TranslationError,
    counts_on,
    inline_handle,
    is_migrated_on,
    migration_of,
    translated,
    volume_handle,
)
from skysail.testing.volumes import make_volume

BETA_ZONE, ZONE = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"


def disk(labels=None, zone="", **source) -> PersistentVolume:
    volume = make_volume("disk", labels=labels, zone=zone)
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, csi=None, **source))


def gce(**arguments) -> PersistentVolume:
    return disk(gce_persistent_disk=GCEPersistentDiskVolumeSource(pd_name="pd"), **arguments)


def terms_of(volume: PersistentVolume) -> list[list[tuple[str, tuple[str, ...]]]]:
    affinity = translated(volume, migration_of(volume.spec)).spec.node_affinity
    terms = affinity.required.node_selector_terms if affinity is not None else ()
    return [[(each.key, each.values) for each in term.match_expressions] for term in terms]


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        ({"gce_persistent_disk": GCEPersistentDiskVolumeSource(pd_name="pd")}, "pd.csi.storage.gke.io",
         "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd"),
        ({"aws_elastic_block_store": AWSElasticBlockStoreVolumeSource(volume_id="vol-1")}, "ebs.csi.aws.com", "vol-1"),
        ({"aws_elastic_block_store": AWSElasticBlockStoreVolumeSource(volume_id="aws://us-1a/vol-2")},
         "ebs.csi.aws.com", "vol-2"),
        ({"aws_elastic_block_store": AWSElasticBlockStoreVolumeSource(volume_id="aws:///vol-3")},
         "ebs.csi.aws.com", "vol-3"),
        ({"azure_disk": AzureDiskVolumeSource(disk_uri="/uri", kind="Managed")}, "disk.csi.azure.com", "/uri"),
        ({"cinder": CinderVolumeSource(volume_id="c")}, "cinder.csi.openstack.org", "c"),
    ],
)  # fmt: skip
def test_an_inline_disk_has_a_driver_and_a_handle(source, driver, handle):
    volume = Volume(name="v", **source)
    migration = migration_of(volume)
    assert (migration.driver, inline_handle(migration, volume)) == (driver, handle)


@pytest.mark.parametrize(
    "source",
    [
        {"aws_elastic_block_store": AWSElasticBlockStoreVolumeSource(volume_id="aws://us-1a/disk-2")},
        {"azure_disk": AzureDiskVolumeSource(disk_uri="/uri", kind="Shared")},
    ],
)
def test_a_disk_without_a_name_in_csi_is_refused(source):
    volume = Volume(name="v", **source)
    with pytest.raises(TranslationError):
        inline_handle(migration_of(volume), volume)


def test_what_is_no_in_tree_disk_has_no_migration():
    assert migration_of(Volume(name="v")) is None
    assert migration_of(make_volume().spec) is None


@pytest.mark.parametrize(
    ("label", "handle"),
    [
        ("", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd"),
        ("us-east1-b", "projects/UNSPECIFIED/zones/us-east1-b/disks/pd"),
        ("us-east1-b__us-east1-c", "projects/UNSPECIFIED/regions/us-east1/disks/pd"),
    ],
)
def test_the_zones_of_a_google_disk_are_part_of_its_handle(label, handle):
    volume = gce(labels={ZONE: label} if label else None)
    assert volume_handle(migration_of(volume.spec), volume) == handle


@pytest.mark.parametrize("label", ["us-east1-b__eu-west1-c", "a__b"])
def test_zones_of_two_regions_or_of_none_cannot_be_named(label):
    volume = gce(labels={ZONE: label})
    with pytest.raises(TranslationError, match="failed to get region from zones"):
        volume_handle(migration_of(volume.spec), volume)


def test_a_zone_in_the_affinity_is_renamed_and_wins_over_labels():
    assert terms_of(gce(zone="b", labels={ZONE: "c"})) == [[("topology.gke.io/zone", ("b",))]]


def test_zones_in_labels_become_affinity():
    assert terms_of(gce(labels={ZONE: "us-east1-c__us-east1-b"})) == [
        [("topology.gke.io/zone", ("us-east1-b", "us-east1-c"))]
    ]
    assert terms_of(gce(labels={BETA_ZONE: "us-east1-d"})) == [[("topology.gke.io/zone", ("us-east1-d",))]]


def test_a_disk_without_zones_can_be_used_anywhere():
    assert terms_of(gce()) == []


def test_azure_disks_keep_their_affinity():
    volume = disk(zone="b", azure_disk=AzureDiskVolumeSource(disk_uri="/uri"))
    assert terms_of(volume) == [[(ZONE, ("b",))]]


def test_a_plugin_is_migrated_where_the_node_says_so_and_counts_wherever_there_is_a_csi_node():
    migration = migration_of(gce().spec)
    plain = CSINode(metadata=ObjectMeta(name="n"))
    saying = CSINode(
        metadata=ObjectMeta(name="n", annotations={MIGRATED_PLUGINS: "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"})
    )
    assert [is_migrated_on(migration, node) for node in (None, plain, saying)] == [False, False, True]
    assert [counts_on(migration, node) for node in (None, plain, saying)] == [False, True, True]


def test_vsphere_disks_are_known_and_never_count():
    volume = Volume(name="v", vsphere_volume=VsphereVirtualDiskVolumeSource(volume_path="p"))
    assert not counts_on(migration_of(volume), CSINode(metadata=ObjectMeta(name="n")))
