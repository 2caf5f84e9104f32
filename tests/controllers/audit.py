"""What must hold at every moment of a rollout, checked on every change that the server tells of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from skysail.api.apps import Deployment, ReplicaSet
from skysail.api.core import Pod
from skysail.api.kinds import PODS, REPLICASETS, Kind
from skysail.client.api_client import ApiClient
from skysail.controllers.pods import controller_of, is_active, is_ready
from skysail.controllers.templates import parse_template
from skysail.testing.cluster import Cluster


@dataclass
class Audit:
    """Looks at every change of pods and replica sets.

    Attributes:
        most: More pods must never be asked for, all replica sets of one owner together.
        least: Fewer pods must never be available, once so many have been.
        broken: What did not hold, in words.
        created: How many pods there have been.
    """

    most: int = 10**9
    least: int = 0
    broken: list[str] = field(default_factory=list)
    created: int = 0
    _pods: dict[str, Pod] = field(default_factory=dict)
    _sets: dict[str, ReplicaSet] = field(default_factory=dict)
    _largest: dict[str, int] = field(default_factory=dict)
    _was_available: bool = False

    async def start(self, cluster: Cluster) -> None:
        """Watch from now on, until the cluster ends."""
        await cluster.run("audit of pods", self._watch_pods)
        await cluster.run("audit of replica sets", self._watch_sets)
        await cluster.advance(0)

    async def _watch_pods(self, client: ApiClient) -> None:
        await self._watch(client, PODS, self._pods)

    async def _watch_sets(self, client: ApiClient) -> None:
        await self._watch(client, REPLICASETS, self._sets)

    async def _watch(self, client: ApiClient, kind: "Kind[Pod] | Kind[ReplicaSet]", known: dict) -> None:
        async for event in client.watch(kind, resource_version="0", allow_bookmarks=False):
            uid = event.object.uid
            self.created += event.type == "ADDED" and kind is PODS
            if event.type == "DELETED":
                known.pop(uid, None)
            else:
                known[uid] = event.object
            self._check()

    def _check(self) -> None:
        wanted = sum(item.spec.replicas or 0 for item in self._sets.values())
        if wanted > self.most:
            self.broken.append(f"{wanted} pods asked for: {self._words()}")
        active: dict[str, int] = {}
        for pod in filter(is_active, self._pods.values()):
            owner = controller_of(pod)
            if owner is not None:
                active[owner.uid] = active.get(owner.uid, 0) + 1
        for uid, item in self._sets.items():
            self._largest[uid] = max(self._largest.get(uid, 0), item.spec.replicas or 0)
            if active.get(uid, 0) > self._largest[uid]:
                self.broken.append(
                    f"{item.name} has {active[uid]} pods and never wanted more than {self._largest[uid]}"
                )
        available = sum(is_active(pod) and is_ready(pod) for pod in self._pods.values())
        self._was_available = self._was_available or available >= self.least
        if self._was_available and available < self.least:
            self.broken.append(f"only {available} pods available: {self._words()}")

    def _words(self) -> str:
        return ", ".join(f"{item.name}={item.spec.replicas}" for item in self._sets.values())


def with_image(deployment: Deployment, image: str) -> Mapping[str, object]:
    """The patch that gives the first container another image."""
    template = msgspec.to_builtins(parse_template(deployment.spec.template))
    container = {**template["spec"]["containers"][0], "image": image}
    return {"spec": {"template": {"spec": {"containers": [container]}}}}
