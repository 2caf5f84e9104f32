"""A scheduler plugin: prefers nodes whose name ends in the same digit as the pod's.

    skysail scheduler --plugin examples.plugins.node_number:NodeNumber --config sky.yaml

with `plugins: {score: {enabled: [{name: NodeNumber, weight: 10}]}}` in the profile.
"""

from skysail.api.core import Pod
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.framework.status import SUCCESS, Status


class NodeNumber:
    """Scores 100 where the last digits agree, 0 elsewhere."""

    name = "NodeNumber"

    def __init__(self, args: object, handle: Handle) -> None:
        """It has no arguments and needs nothing of the cluster."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> tuple[int, Status]:
        """0..100 for one node."""
        agrees = pod.name[-1:].isdigit() and pod.name[-1] == node.name[-1]
        return (100 if agrees else 0), SUCCESS
