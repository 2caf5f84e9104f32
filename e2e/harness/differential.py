"""The same cluster and the same pods to the real kube-scheduler and to ours, decision by decision.

Each pod is created alone and the real one's answer awaited: a node, or a condition. Ours decides the same pod on the
same cluster; afterwards the real one's choice is taken over, so that the streams stay together after a tie. Totals and
feasible nodes of the real one come from its log at `-v=10`.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from skysail.api.core import Pod
from skysail.api.kinds import NAMESPACES, NODES, PODS, SERVICES
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.client.codec import to_raw
from skysail.scheduler.explain import explain_pod
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles
from skysail.simulator.hollow import without_not_ready
from skysail.simulator.settling import is_decided, pending_reason

_TOTAL = re.compile(r"Calculated node's final score for pod\" pod=\"([^\"]+)\" node=\"([^\"]+)\" score=(-?\d+)")


@dataclass
class Differences:
    """What was compared and what differed.

    Attributes:
        pods: How many pods were decided.
        bound: How many of them got a node.
        found: One line for each difference, the pod first.
    """

    pods: int = 0
    bound: int = 0
    found: list[str] = field(default_factory=list)


class Differential:
    """Ours beside a real scheduler on one API server.

    Args:
        client: Of the server that the real scheduler watches.
        namespace: Where the pods go.
        config: The KubeSchedulerConfiguration of both; None for the default one.
    """

    def __init__(self, client: ApiClient, namespace: str, config: Raw | None = None) -> None:
        self._client, self._namespace, self._config = client, namespace, config
        self.decisions: dict[str, Raw] = {}

    async def prepare(self, nodes: list[Raw], services: list[Raw]) -> None:
        """Create the cluster, and ours out of what the server made of it."""
        made = []
        for node in nodes:
            created = await self._client.create(NODES, node)
            if patch := without_not_ready(created):
                created = await self._client.patch(NODES, created.name, "", patch)
            made.append(created)
        listed = [(SERVICES, await self._client.create(SERVICES, each, self._namespace)) for each in services]
        listed += [(NAMESPACES, each) for each in (await self._client.list_all(NAMESPACES)).items]
        listed += [(NODES, each) for each in made]
        manifests = [{**to_raw(obj), "apiVersion": kind.api_version, "kind": kind.name} for kind, obj in listed]
        self._world = build_world(manifests, {})
        self._framework = build_framework(resolve_profiles(self._config, self._world.gates)[0], self._world)

    async def decide(self, pod: Raw, result: Differences) -> None:
        """One pod, by both."""
        version = (await self._client.list(PODS, self._namespace, limit=1)).resource_version
        created = await self._client.create(PODS, pod, self._namespace)
        decision = explain_pod(self._framework, self._world, created)
        real = await self._real_answer(created, version)
        self.decisions[real.key] = decision
        result.pods += 1
        if real.spec.node_name:
            result.bound += 1
            self._world.cache.add_pod(real)
            self._world.cache.update_snapshot(self._world.current)
            if real.spec.node_name not in decision["chosen_set"]:
                result.found.append(f"{real.key}: real {real.spec.node_name}, ours one of {decision['chosen_set']}")
        else:
            if pending_reason(real) != decision.get("fit_error"):
                result.found.append(
                    f"{real.key}: real {pending_reason(real)!r}, ours {decision.get('fit_error')!r} "
                    f"feasible {decision['feasible']}"
                )
            await self._client.delete(PODS, real.name, self._namespace, grace_period_seconds=0)

    async def _real_answer(self, created: Pod, version: str) -> Pod:
        stream = self._client.watch(
            PODS, self._namespace, resource_version=version, field_selector=f"metadata.name={created.name}"
        )
        async for event in stream:
            if is_decided(event.object):
                return event.object
        raise AssertionError(f"no answer for {created.key}")

    def compare_totals(self, log: Path, result: Differences) -> None:
        """Hold every total in the real one's log against ours."""
        real: dict[str, dict[str, int]] = defaultdict(dict)
        with log.open(errors="replace") as lines:
            for line in lines:
                if found := _TOTAL.search(line):
                    real[found.group(1)][found.group(2)] = int(found.group(3))
        for key, totals in real.items():
            decision = self.decisions.get(key)
            if decision is None or "totals" not in decision:
                continue
            ours = dict(zip(decision["feasible"], decision["totals"], strict=True))
            if ours != totals:
                differing = {name: (totals.get(name), ours.get(name)) for name in {*totals, *ours}}
                wrong = {name: pair for name, pair in sorted(differing.items()) if pair[0] != pair[1]}
                result.found.append(f"{key}: totals (real, ours) {dict(list(wrong.items())[:4])}")
