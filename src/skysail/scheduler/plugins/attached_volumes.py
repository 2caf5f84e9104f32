"""Which CSI volumes a pod brings to a node: unique names, each with its driver.

A volume that several pods of a node use counts once. A claim without a volume yet counts under a name of its own, by
the provisioner of its class.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go, v1.36.
"""

from skysail.api.core import Pod, Volume
from skysail.api.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from skysail.api.storage import CSINode, PersistentVolumeClaim
from skysail.api.volumes import claim_class, claim_name, not_for_pod
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.plugins.csi_translation import (
    TranslationError,
    counts_on,
    inline_handle,
    migration_named,
    migration_of,
    volume_handle,
)

Attached = dict[str, str]
"""Driver by unique volume name."""

_UNBOUND = "unbound"


class CountingError(ValueError):
    """Volumes cannot be counted: something is wrong with the pod's own declaration."""


class ClaimMissing(CountingError):
    """The pod under test mounts a claim that does not exist."""


class VolumeCounter:
    """Names the volumes of pods.

    Args:
        handle: Where claims, volumes and classes are read.
    """

    def __init__(self, handle: Handle) -> None:
        self._claims = handle.lister(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = handle.lister(PERSISTENT_VOLUMES)
        self._classes = handle.lister(STORAGE_CLASSES)

    def add(self, pod: Pod, csi_node: CSINode | None, found: Attached, *, must_exist: bool) -> None:
        """Add a pod's volumes.

        Args:
            pod: Whose.
            csi_node: What the node says of its drivers; None when it says nothing.
            found: Where to.
            must_exist: Whether a missing claim is an error; else it does not count.

        Raises:
            CountingError: A claim is missing or another pod's, or an in-tree disk has no name in CSI.
        """
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name is None:
                self._add_inline(volume, csi_node, found)
                continue
            if not name:
                raise CountingError("PersistentVolumeClaim had no name")
            claim = self._claims.get(pod.metadata.namespace, name)
            if claim is None:
                if must_exist:
                    raise ClaimMissing(
                        f'looking up PVC {pod.metadata.namespace}/{name}: persistentvolumeclaim "{name}" not found'
                    )
                continue
            if volume.persistent_volume_claim is None and (why := not_for_pod(pod, claim)):
                raise CountingError(why)
            self._add_claim(claim, csi_node, found)

    def _add_inline(self, volume: Volume, csi_node: CSINode | None, found: Attached) -> None:
        migration = migration_of(volume)
        if migration is None or not counts_on(migration, csi_node):
            return
        try:
            handle = inline_handle(migration, volume)
        except TranslationError as error:
            raise CountingError(f"converting volume({volume.name}) from inline to csi: {error}") from error
        found[f"{migration.driver}/{handle}"] = migration.driver

    def _add_claim(self, claim: PersistentVolumeClaim, csi_node: CSINode | None, found: Attached) -> None:
        driver, handle = self._driver_of(claim, csi_node)
        if driver and handle:
            found[f"{driver}/{handle}"] = driver

    def _driver_of(self, claim: PersistentVolumeClaim, csi_node: CSINode | None) -> tuple[str, str]:
        volume = self._volumes.get("", claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is None:
            return self._driver_of_class(claim, csi_node)
        if volume.spec.csi is not None:
            return volume.spec.csi.driver, volume.spec.csi.volume_handle
        migration = migration_of(volume.spec)
        if migration is None or not counts_on(migration, csi_node):
            return "", ""
        try:
            return migration.driver, volume_handle(migration, volume)
        except TranslationError:
            return "", ""

    def _driver_of_class(self, claim: PersistentVolumeClaim, csi_node: CSINode | None) -> tuple[str, str]:
        """By the class of a claim that has no volume yet."""
        name = claim_class(claim)
        storage_class = self._classes.get("", name) if name else None
        if storage_class is None:
            return "", ""
        driver = storage_class.provisioner
        migration = migration_named(driver)
        if migration is not None:
            if not counts_on(migration, csi_node):
                return "", ""
            driver = migration.driver
        return driver, f"{_UNBOUND}-{claim.key}"
