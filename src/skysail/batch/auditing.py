"""Now and then the world is held against a fresh list of pods and nodes, and set right where it is not true.

What the watches have not shown yet is no fault: only a difference that a second list, a while later, finds again
with the same versions is one. It is reported, counted and repaired; no restart is needed.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from skysail.api.core import Pod
from skysail.api.errors import ApiError, Unreachable
from skysail.api.kinds import NODES, PODS
from skysail.api.node import Node
from skysail.batch.audit import Difference, differences, digest, repair_some
from skysail.batch.world import World
from skysail.client.api_client import ApiClient

_log = logging.getLogger(__name__)
SHOWN: Final = 5
"""How many differences a log line names."""


@dataclass(slots=True)
class AuditStatistics:
    """What audits found.

    Attributes:
        audits: How many were made.
        differences: How many objects were not as they should be.
        repairs: How often the world was set right.
        digest: Of the last list of pods and nodes.
    """

    audits: int = 0
    differences: int = 0
    repairs: int = 0
    digest: str = ""


class Auditing:
    """The auditor.

    Args:
        client: Lists.
        world: What is audited.
        submit: Makes a change of the world, at once or when a running cycle allows it.
        changed: Called after a repair.
        period_seconds: Between two audits.
        patience_seconds: How long a difference may last before it is one.
    """

    def __init__(
        self,
        client: ApiClient,
        world: World,
        submit: Callable[[Callable[[], None]], None],
        changed: Callable[[], None],
        *,
        period_seconds: float = 300.0,
        patience_seconds: float = 10.0,
    ) -> None:
        self._client, self._world, self._submit, self._changed = client, world, submit, changed
        self._period, self._patience = period_seconds, patience_seconds
        self.statistics = AuditStatistics()

    async def run(self) -> None:
        """Audit until cancelled."""
        while True:
            await asyncio.sleep(self._period)
            try:
                await self.audit()
            except (ApiError, Unreachable) as error:
                _log.info("audit not made", extra={"error": str(error)})

    async def audit(self) -> list[Difference]:
        """One audit, on demand too; the differences it found and repaired.

        Raises:
            ApiError: The server refuses the list.
            Unreachable: There is no server.
        """
        self.statistics.audits += 1
        first = set(await self._compare())
        if not first:
            return []
        await asyncio.sleep(self._patience)
        nodes, pods = await self._lists()
        lasting = [each for each in differences(self._world, nodes, pods) if each in first]
        if not lasting:
            return []
        self.statistics.differences += len(lasting)
        self.statistics.repairs += 1
        names = [f"{each.kind} {each.name}: {each.known or '-'} known, {each.listed or '-'} listed" for each in lasting]
        _log.error("the cluster is not as it was believed to be", extra={"differences": names[:SHOWN]})
        self._submit(lambda: repair_some(self._world, lasting, nodes, pods))
        self._changed()
        return lasting

    async def _compare(self) -> list[Difference]:
        return differences(self._world, *await self._lists())

    async def _lists(self) -> tuple[list[Node], list[Pod]]:
        nodes, pods = (await self._client.list_all(NODES)).items, (await self._client.list_all(PODS)).items
        self.statistics.digest = digest([*nodes, *pods])
        return list(nodes), list(pods)
