"""A node that refused a job: the job stays away, tries once more after a while, then only when the node changes."""

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final

from skysail.scheduler.cache.node_info import NodeInfo

REST_SECONDS: Final = 10.0
"""After so long a node that did not change may be tried once more: the refusal may have been the server's."""


@dataclass(frozen=True, slots=True)
class Distrust:
    """Why a job stays away from a node.

    Attributes:
        version: The node as it was, see `version_of`.
        since: Seconds since 1970 of the last refusal.
        times: How often it refused at this version.
    """

    version: object
    since: float
    times: int = 1

    @property
    def ends(self) -> float | None:
        """When the node may be tried again though it did not change; None for never."""
        return self.since + REST_SECONDS if self.times == 1 else None


@dataclass(slots=True)
class Refused:
    """Bindings of a gang that were refused.

    Attributes:
        since: Seconds since 1970 of the first.
        nodes: Where members were to go, by uid.
    """

    since: float
    nodes: dict[str, str] = field(default_factory=dict)


def version_of(account: NodeInfo, own: Container[str]) -> object:
    """What of a node must change before a refused job tries it again: the object, or whose pods are there.

    Args:
        account: The node.
        own: Uids of the job's pods, whose coming and going changes nothing.
    """
    return account.node, frozenset(uid for uid in account.pods if uid not in own)
