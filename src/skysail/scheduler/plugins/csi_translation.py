"""In-tree disks as the CSI drivers that took them over see them: which driver, which volume handle, which topology.

A migrated disk counts against the CSI driver's limit on a node, and its zones are spelled with the driver's label.

Source: k8s.io/csi-translation-lib, v1.36. Differs: only what placement reads is translated.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from skysail.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from skysail.api.core import Volume
from skysail.api.storage import CSINode, PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONES_DELIMITER: Final = "__"
UNKNOWN: Final = "UNSPECIFIED"

_AWS_VOLUME = re.compile(r"vol-[^/]*")

Source = Volume | PersistentVolumeSpec


class TranslationError(ValueError):
    """A disk cannot be named in the CSI driver's way."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One in-tree plugin and the driver that took it over.

    Attributes:
        plugin: The in-tree plugin.
        driver: The CSI driver.
        is_source: Whether a volume is one of this plugin.
        handle: The driver's name for the disk, given the zones that the volume's labels tell.
        is_on: Whether the scheduler counts such disks as the driver's.
        topology_key: The driver's zone label; empty where topology is left as it is.
    """

    plugin: str
    driver: str
    is_source: Callable[[Source], bool]
    handle: Callable[[Source, tuple[str, ...]], str]
    is_on: bool = True
    topology_key: str = ""


def _gce_handle(source: Source, zones: tuple[str, ...]) -> str:
    assert source.gce_persistent_disk is not None
    disk = source.gce_persistent_disk.pd_name
    if len(zones) > 1:
        return f"projects/{UNKNOWN}/regions/{_region(zones)}/disks/{disk}"
    zone = zones[0] if zones and zones[0] else UNKNOWN
    return f"projects/{UNKNOWN}/zones/{zone}/disks/{disk}"


def _region(zones: tuple[str, ...]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, "
                f"got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        shown = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{shown}]"
        )
    return regions.pop()


def _aws_handle(source: Source, zones: tuple[str, ...]) -> str:
    assert source.aws_elastic_block_store is not None
    name = source.aws_elastic_block_store.volume_id
    if not name.startswith("aws://"):
        return name
    disk = name.removeprefix("aws://").partition("/")[2].strip("/")
    if _AWS_VOLUME.fullmatch(disk) is None:
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({name})"
        )
    return disk


def _azure_handle(source: Source, zones: tuple[str, ...]) -> str:
    disk = source.azure_disk
    assert disk is not None
    if disk.kind is not None and disk.kind.lower() != "managed":
        raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def _cinder_handle(source: Source, zones: tuple[str, ...]) -> str:
    assert source.cinder is not None
    return source.cinder.volume_id


def _portworx_handle(source: Source, zones: tuple[str, ...]) -> str:
    assert source.portworx_volume is not None
    return source.portworx_volume.volume_id


def _no_handle(source: Source, zones: tuple[str, ...]) -> str:
    return ""


MIGRATIONS: Final = (
    Migration(
        "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", lambda volume: volume.gce_persistent_disk is not None,
        _gce_handle, topology_key="topology.gke.io/zone",
    ),
    Migration(
        "kubernetes.io/aws-ebs", "ebs.csi.aws.com", lambda volume: volume.aws_elastic_block_store is not None,
        _aws_handle, topology_key="topology.ebs.csi.aws.com/zone",
    ),
    Migration(
        "kubernetes.io/cinder", "cinder.csi.openstack.org", lambda volume: volume.cinder is not None,
        _cinder_handle, topology_key="topology.cinder.csi.openstack.org/zone",
    ),
    Migration(
        "kubernetes.io/azure-disk", "disk.csi.azure.com", lambda volume: volume.azure_disk is not None, _azure_handle
    ),
    Migration(
        "kubernetes.io/portworx-volume", "pxd.portworx.com", lambda volume: volume.portworx_volume is not None,
        _portworx_handle,
    ),
    Migration(
        "kubernetes.io/azure-file", "file.csi.azure.com", lambda volume: volume.azure_file is not None, _no_handle,
        is_on=False,
    ),
    Migration(
        "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", lambda volume: volume.vsphere_volume is not None,
        _no_handle, is_on=False,
    ),
)  # fmt: skip
_BY_PLUGIN: Final = {each.plugin: each for each in MIGRATIONS}


def migration_of(source: Source) -> Migration | None:
    """The migration of a pod's inline volume or of a persistent volume's spec; None when it has nothing in-tree."""
    return next((each for each in MIGRATIONS if each.is_source(source)), None)


def migration_named(plugin: str) -> Migration | None:
    """The migration of an in-tree plugin, as a storage class's provisioner names it."""
    return _BY_PLUGIN.get(plugin)


def is_migrated_on(migration: Migration, csi_node: CSINode | None) -> bool:
    """Whether a node says that its driver has taken the plugin over."""
    if not migration.is_on or csi_node is None:
        return False
    return migration.plugin in csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


def counts_on(migration: Migration, csi_node: CSINode | None) -> bool:
    """Whether such a disk counts against the driver's limit on a node; any CSINode object will do."""
    return migration.is_on and csi_node is not None


def inline_handle(migration: Migration, volume: Volume) -> str:
    """The driver's name for a pod's inline disk.

    Raises:
        TranslationError: It has none.
    """
    return migration.handle(volume, ())


def volume_handle(migration: Migration, volume: PersistentVolume) -> str:
    """The driver's name for a persistent volume's disk.

    Raises:
        TranslationError: It has none.
    """
    labels = volume.metadata.labels
    label = labels.get(BETA_ZONE) or labels.get(ZONE, "")
    return migration.handle(volume.spec, tuple(label.split(ZONES_DELIMITER)))


def translated(volume: PersistentVolume, migration: Migration) -> PersistentVolume:
    """A persistent volume with its node affinity in the driver's words.

    Raises:
        TranslationError: The driver has no name for it.
    """
    volume_handle(migration, volume)
    if not migration.topology_key:
        return volume
    terms = _terms(volume)
    beta = _uses_beta_labels(volume, terms)
    zone = BETA_ZONE if beta else ZONE
    if any(each.values for term in terms for each in term.match_expressions if each.key == zone):
        terms = _renamed(terms, zone, migration.topology_key)
    else:
        terms = _with_zones(terms, migration.topology_key, volume.metadata.labels.get(zone, ""))
    if beta:
        terms = _renamed(terms, BETA_REGION, REGION)
    if terms == _terms(volume):
        return volume
    affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, node_affinity=affinity))


def _terms(volume: PersistentVolume) -> tuple[NodeSelectorTerm, ...]:
    affinity = volume.spec.node_affinity
    return affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()


def _uses_beta_labels(volume: PersistentVolume, terms: tuple[NodeSelectorTerm, ...]) -> bool:
    """Whether the volume's zone is told by the old label: the affinity goes before the labels, new before old."""
    in_terms = {each.key for term in terms for each in term.match_expressions}
    for known in (in_terms, volume.metadata.labels.keys()):
        if ZONE in known:
            return False
        if BETA_ZONE in known:
            return True
    return False


def _renamed(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    def rename(each: NodeSelectorRequirement) -> NodeSelectorRequirement:
        return msgspec.structs.replace(each, key=new) if each.key == old else each

    return tuple(
        msgspec.structs.replace(term, match_expressions=tuple(map(rename, term.match_expressions))) for term in terms
    )


def _with_zones(terms: tuple[NodeSelectorTerm, ...], key: str, label: str) -> tuple[NodeSelectorTerm, ...]:
    zones = tuple(sorted({zone.strip() for zone in label.split(ZONES_DELIMITER)} - {""}))
    if not zones:
        return terms
    zoned = NodeSelectorRequirement(key=key, operator="In", values=zones)
    return tuple(
        msgspec.structs.replace(term, match_expressions=(*term.match_expressions, zoned))
        for term in terms or (NodeSelectorTerm(),)
    )
