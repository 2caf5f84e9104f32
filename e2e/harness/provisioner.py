"""Makes a volume for each claim that kube-scheduler has chosen a node for, in the place of a CSI provisioner."""

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Any

from e2e.harness.random_cluster import DRIVER, FREE_DRIVER, LATE, LOCAL, ZONE, driver_volume
from skysail.api.errors import AlreadyExists
from skysail.api.kinds import PERSISTENT_VOLUMES
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.client.codec import to_raw

_SELECTED = "volume.kubernetes.io/selected-node"


class Provisioner:
    """Provisions what it is shown and somebody waits for.

    Args:
        client: Creates the volumes.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client, self._rng = client, Random(0)
        self._wanted: asyncio.Queue[Raw] = asyncio.Queue()
        self._done: set[str] = set()

    def look_at(self, claim: Any, nodes: Iterable[Any]) -> None:
        """Notice a claim with a chosen node."""
        node = claim.metadata.annotations.get(_SELECTED, "")
        if not node or claim.spec.volume_name or claim.spec.storage_class_name == LOCAL or claim.uid in self._done:
            return
        self._done.add(claim.uid)
        zone = next((each.metadata.labels.get(ZONE, "") for each in nodes if each.name == node), "")
        driver = DRIVER if claim.spec.storage_class_name == LATE else FREE_DRIVER
        reference = {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
        body = {"metadata": reference, "spec": to_raw(claim.spec)}
        volume = driver_volume(self._rng, f"made-{claim.uid}", body, zone, driver)
        volume["spec"]["storageClassName"] = claim.spec.storage_class_name
        self._wanted.put_nowait(volume)

    async def run(self) -> None:
        """Create volumes, until cancelled."""
        while True:
            try:
                await self._client.create(PERSISTENT_VOLUMES, await self._wanted.get())
            except AlreadyExists:
                continue
