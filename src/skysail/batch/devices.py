"""Devices of a node, one by one: whole ones and shares of one, summed on each device, not over the node.

A pod asks for whole devices by its resources, for a part of one by an annotation: `gpu-fraction: "0.5"`, or
`gpu-memory: "8000"` (MiB, of a device whose memory the node's label tells). A pod with a share sits on the device its
annotation `scheduling.skysail.io/device` names, else on the first that has room, in the order pods came to the node.

Shares are thousandths of a device. Differs: nothing isolates the sharers; that is the device plugin's affair.
"""

from dataclasses import dataclass
from typing import Final

from skysail.api.core import Pod
from skysail.scheduler.cache.node_info import NodeInfo

DEVICE: Final = "nvidia.com/gpu"
FRACTION: Final = "gpu-fraction"
MEMORY: Final = "gpu-memory"
MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
INDEX: Final = "scheduling.skysail.io/device"
WHOLE: Final = 1000


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a device: thousandths, or MiB of its memory; one of the two is 0."""

    thousandths: int = 0
    mebibytes: int = 0

    def on(self, info: NodeInfo) -> int | None:
        """Thousandths on this node's devices; None where that cannot be told."""
        if self.thousandths:
            return self.thousandths
        memory = info.node.metadata.labels.get(MEMORY_LABEL, "")
        if not memory.isdigit() or not int(memory):
            return None
        return -(-self.mebibytes * WHOLE // int(memory))


def share_of(pod: Pod) -> Share | None:
    """The part of a device a pod asks for; None for pods that ask for none, or write it in a way nobody can read."""
    annotations = pod.metadata.annotations
    fraction, memory = annotations.get(FRACTION), annotations.get(MEMORY, "")
    if fraction is not None:
        whole, _, digits = fraction.partition(".")
        if whole in ("", "0") and digits.isdigit() and int(digits[:3].ljust(3, "0")) > 0:
            return Share(thousandths=int(digits[:3].ljust(3, "0")))
        return None
    return Share(mebibytes=int(memory)) if memory.isdigit() and int(memory) else None


@dataclass(slots=True)
class DeviceLedger:
    """One node's devices.

    Attributes:
        count: How many there are.
        whole: How many are taken whole.
        shared: Thousandths taken of each device that is shared.
    """

    count: int
    whole: int
    shared: list[int]

    @property
    def free(self) -> int:
        """Devices nobody uses."""
        return self.count - self.whole - len(self.shared)

    def holds_share(self, thousandths: int) -> bool:
        """Whether some device has so much left."""
        return self.free > 0 or any(used + thousandths <= WHOLE for used in self.shared)

    def take_share(self, thousandths: int) -> None:
        """Put a share on the first device with room, or on a free one."""
        for place, used in enumerate(self.shared):
            if used + thousandths <= WHOLE:
                self.shared[place] += thousandths
                return
        self.shared.append(thousandths)


def ledger_of(info: NodeInfo) -> DeviceLedger:
    """What a node's pods take of its devices."""
    ledger = DeviceLedger(info.allocatable.get(DEVICE, 0), info.requested.get(DEVICE, 0), [])
    named: dict[str, int] = {}
    for pod in info.pods.values():
        share = share_of(pod.pod)
        thousandths = share.on(info) if share is not None else None
        if thousandths is None:
            continue
        index = pod.pod.metadata.annotations.get(INDEX)
        if index is None:
            ledger.take_share(thousandths)
        elif index in named:
            ledger.shared[named[index]] += thousandths
        else:
            named[index] = len(ledger.shared)
            ledger.shared.append(thousandths)
    return ledger
