"""The queue's order when a third party's plugin gives it: whatever that plugin does, the heap stays one.

A key that cannot be made, or two that cannot be compared, fall back to the usual order: priority, then age.
"""

from collections.abc import Callable
from typing import Any

from skysail.scheduler.framework.containment import PluginFailed, contained
from skysail.scheduler.framework.queued_pod import QueuedPodInfo
from skysail.scheduler.queue.pod_heap import Order

OrderFailed = Callable[[str, BaseException], None]
"""Told when the plugin fails: its name, what it raised."""


class SafeKey:
    """A plugin's sort key, with the usual one behind it."""

    __slots__ = ("_on_failure", "_plugin", "key", "usual")

    def __init__(self, key: Any, usual: tuple[int, float], plugin: str, on_failure: OrderFailed) -> None:
        self.key, self.usual = key, usual
        self._plugin, self._on_failure = plugin, on_failure

    def __lt__(self, other: "SafeKey") -> bool:
        if self.key is None or other.key is None:
            return self.usual < other.usual
        try:
            return contained(self._plugin, "comparing two pods", lambda: bool(self.key < other.key))
        except PluginFailed as failure:
            self._on_failure(self._plugin, failure)
            return self.usual < other.usual


def safe_order(plugin: str, order: Order, on_failure: OrderFailed) -> Order:
    """A plugin's order that never raises.

    Args:
        plugin: Its name.
        order: Its `sort_key`.
        on_failure: Told of every failure.
    """

    def key(info: QueuedPodInfo) -> SafeKey:
        usual = (-(info.pod.spec.priority or 0), info.timestamp)
        try:
            made: Any = contained(plugin, "running QueueSort", order, info)
        except PluginFailed as failure:
            on_failure(plugin, failure)
            made = None
        return SafeKey(made, usual, plugin, on_failure)

    return key
