"""Deletes what has outlived its time: ConfigMaps annotated `example.com/ttl`, e.g. with `90s`, `30m`, `12h` or `7d`.

    python examples/controllers/ttl_cleaner.py --kubeconfig my.kubeconfig

Shows: `requeue_after` instead of timers, Events for people, a precondition so that only the object that was looked at
is deleted, and a `TerminalError` for what trying again cannot mend.
"""

from datetime import timedelta

from skysail.api.cluster import ConfigMap
from skysail.api.errors import Conflict, NotFound
from skysail.api.kinds import CONFIGMAPS
from skysail.cli.run_controllers import run_controllers
from skysail.controller import Controller, For, Key, Result, TerminalError

TTL = "example.com/ttl"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class TtlCleaner(Controller):
    """Deletes ConfigMaps whose time is over."""

    watches = (For(ConfigMap, predicates=(lambda event: TTL in event.object.metadata.annotations,)),)

    async def reconcile(self, key: Key) -> Result | None:
        """Delete it, or come back when its time is over."""
        config_map = self.lister(ConfigMap).get(key)
        if config_map is None or TTL not in config_map.metadata.annotations:
            return None
        created = config_map.metadata.creation_timestamp or self.clock.now()
        left = created + self.ttl_of(config_map) - self.clock.now()
        if left > timedelta(0):
            return Result(requeue_after=left.total_seconds())
        try:
            version = config_map.metadata.resource_version
            await self.client.delete(CONFIGMAPS, key.name, key.namespace, resource_version=version)
        except (NotFound, Conflict):
            return None  # gone already, or changed: then its change has woken us again
        lived = config_map.metadata.annotations[TTL]
        self.recorder.event(config_map, "Normal", "TimeToLiveOver", f"Deleted after {lived}")
        return None

    def ttl_of(self, config_map: ConfigMap) -> timedelta:
        """How long it may live."""
        text = config_map.metadata.annotations[TTL]
        if not text[:-1].isdecimal() or text[-1] not in UNITS:
            self.recorder.event(config_map, "Warning", "BadTimeToLive", f"{TTL}: {text!r} is no time, want e.g. 30m")
            raise TerminalError(f"{config_map.key}: {TTL}: {text!r} is no time")
        return timedelta(seconds=int(text[:-1]) * UNITS[text[-1]])


if __name__ == "__main__":
    run_controllers(TtlCleaner())
