"""Pods that a Permit plugin holds, each until all who hold it let go, one rejects it, or its time is over.

Source: pkg/scheduler/framework/runtime/waiting_pods_map.go, v1.36.
"""

import asyncio
from collections.abc import Iterator, Mapping

from skysail.api.core import Pod
from skysail.scheduler.config.durations import format_duration
from skysail.scheduler.framework.status import SUCCESS, Code, Status


class PermitWait:
    """One held pod.

    Args:
        pod: The assumed pod.
        seconds: How long each plugin that holds it may do so.
    """

    def __init__(self, pod: Pod, seconds: Mapping[str, float]) -> None:
        loop = asyncio.get_running_loop()
        self._pod = pod
        self._outcome: asyncio.Future[Status] = loop.create_future()
        self._timers = {
            plugin: loop.call_later(
                wait,
                self.reject,
                plugin,
                f"rejected due to timeout after waiting {format_duration(wait)} at plugin {plugin}",
            )
            for plugin, wait in seconds.items()
        }

    @property
    def pod(self) -> Pod:
        """Which pod."""
        return self._pod

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Who still holds it."""
        return tuple(self._timers)

    def allow(self, plugin: str) -> None:
        """One plugin lets it go; when all have, it goes on."""
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._settle(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """Send it back to the queue; False when it was decided already."""
        return self._settle(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Send it back as an error, to be tried again without waiting for an event."""
        return self._settle(Status(Code.ERROR, (message,), plugin))

    def abandon(self) -> None:
        """End the wait without a decision: whoever waits is cancelled (the scheduler stops)."""
        for timer in self._timers.values():
            timer.cancel()
        self._outcome.cancel()

    async def wait_decided(self) -> Status:
        """Wait for the decision."""
        return await self._outcome

    def _settle(self, status: Status) -> bool:
        for timer in self._timers.values():
            timer.cancel()
        if self._outcome.done():
            return False
        self._outcome.set_result(status)
        return True


class WaitingPods:
    """All held pods, of all profiles, by uid."""

    def __init__(self) -> None:
        self._pods: dict[str, PermitWait] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[PermitWait]:
        return iter(list(self._pods.values()))

    def add(self, pod: Pod, seconds: Mapping[str, float]) -> None:
        """Hold a pod; its time starts now."""
        self._pods[pod.metadata.uid] = PermitWait(pod, seconds)

    def get(self, uid: str) -> PermitWait | None:
        """A held pod, or None."""
        return self._pods.get(uid)

    def remove(self, uid: str) -> None:
        """Hold it no longer."""
        self._pods.pop(uid, None)

    def drop(self, uid: str) -> None:
        """Hold it no longer, and stop its timers: nobody waits for the decision any more."""
        waiting = self._pods.pop(uid, None)
        if waiting is not None:
            waiting.abandon()

    def reject(self, uid: str) -> bool:
        """Reject a pod in nobody's name (it is being deleted); False when it is not held."""
        waiting = self._pods.get(uid)
        return waiting is not None and waiting.reject("", "removed")
