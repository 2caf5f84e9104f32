"""Pods that nothing but an event (or the five-minute flush) moves: the unschedulable and the gated.

They are indexed by profile and refusing plugin, so that an event costs nothing for pods whose refusers do not care.

Source: pkg/scheduler/backend/queue/unschedulable_pods.go, v1.36.
"""

from collections.abc import Iterable, Iterator

from skysail.scheduler.framework.queued_pod import PodKey, QueuedPodInfo, scheduler_name

_Group = tuple[str, str]


class SleepingPods:
    """A map of pods by key with an index by (scheduler name, refusing plugin)."""

    def __init__(self) -> None:
        self._pods: dict[PodKey, QueuedPodInfo] = {}
        self._groups: dict[PodKey, tuple[_Group, ...]] = {}
        self._members: dict[_Group, dict[PodKey, QueuedPodInfo]] = {}
        self._gated: set[PodKey] = set()
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: PodKey) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """All of them, in order of entry."""
        return iter(list(self._pods.values()))

    @property
    def gated_count(self) -> int:
        """How many are held back by a PreEnqueue plugin."""
        return len(self._gated)

    def get(self, key: PodKey) -> QueuedPodInfo | None:
        """The pod of that name, or None."""
        return self._pods.get(key)

    def put(self, info: QueuedPodInfo) -> bool:
        """Add a pod, or index it anew when its refusers changed; whether it is new here. Cost: one step a refuser."""
        key, is_new, profile = info.key, info.key not in self._pods, scheduler_name(info.pod)
        groups = tuple((profile, plugin) for plugin in info.rejectors) or ((profile, ""),)
        if is_new:
            self._sequence += 1
            info.sequence = self._sequence
        else:
            self._unindex(key)
        self._pods[key] = info
        self._groups[key] = groups
        for group in groups:
            self._members.setdefault(group, {})[key] = info
        if info.gated:
            self._gated.add(key)
        return is_new

    def remove(self, key: PodKey) -> QueuedPodInfo | None:
        """Take a pod out by name."""
        info = self._pods.pop(key, None)
        if info is not None:
            self._unindex(key)
        return info

    def refused_by(self, profile: str, plugins: Iterable[str]) -> list[QueuedPodInfo]:
        """Pods of one profile that any of these plugins refused (and any that nobody did), in order of entry."""
        found: dict[PodKey, QueuedPodInfo] = {}
        for plugin in (*plugins, ""):
            found.update(self._members.get((profile, plugin), {}))
        return sorted(found.values(), key=lambda info: info.sequence)

    def _unindex(self, key: PodKey) -> None:
        for group in self._groups.pop(key, ()):
            members = self._members[group]
            del members[key]
            if not members:
                del self._members[group]
        self._gated.discard(key)
