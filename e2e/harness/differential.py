"""The same cluster and the same pods to the real kube-scheduler and to ours, decision by decision.

Each pod is created alone and the real one's answer awaited: a node, a condition, a nomination. Ours decides the same
pod on the same state of the same cluster; afterwards the real one's choice is taken over, so that the streams stay
together after a tie. A nominated pod is decided again when its victims are gone. Scores of the real one come from its
log (`--vmodule=schedule_one=10`).

What the copy of the cluster learns while a decision is awaited is held back until ours has decided.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from e2e.harness.answers import is_decided, is_final, possible_reasons, reason_of, told, waits_for
from e2e.harness.mirror import Mirror
from e2e.harness.provisioner import Provisioner
from e2e.harness.random_cluster import Made
from e2e.harness.random_pods import Wanted
from e2e.harness.score_log import differing, our_scores, scores_of
from skysail.api.core import Pod
from skysail.api.errors import ApiError, NotFound
from skysail.api.kinds import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    RESOURCE_CLAIMS,
    Kind,
)
from skysail.api.meta import format_time
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.scheduler.algorithm import schedule_pod
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.explain import explain_pod
from skysail.scheduler.live import READ
from skysail.scheduler.scenario import build_framework, build_world, resolve_profiles
from skysail.simulator.hollow import without_not_ready

_INFORMERS_SECONDS = 0.05
"""How long kube-scheduler's informers may take to hear of a change."""
_ANSWER_SECONDS = 20.0
_LOST_RACE = 'running PreBind plugin "VolumeBinding": Operation cannot be fulfilled'


@dataclass
class Differences:
    """What was compared and what differed.

    Attributes:
        seen: How often what happened: `bound`, `refused`, `preempted`, `rejected` by the API server, ...
        found: One line for each difference, the pod first.
    """

    seen: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)


class Differential:
    """Ours beside a real scheduler on one API server.

    Args:
        client: Of the server that the real scheduler watches.
        result: Takes what differs.
        config: The KubeSchedulerConfiguration of both; None for the default one.
    """

    def __init__(self, client: ApiClient, result: Differences, config: Raw | None = None) -> None:
        self.client, self.result = client, result
        self.decisions: dict[str, Raw] = {}
        self._provisioner = Provisioner(client)
        self.mirror = Mirror(client, READ, self._changed)
        self.world = build_world((), {})
        self._profile = resolve_profiles(config, self.world.gates)[0]
        self._framework = build_framework(self._profile, self.world)
        self._stale, self._dice = True, random.Random(0)
        self.waiting: Pod | None = None
        """A preemptor that waits for its victims; until it is dismissed others must keep off its node."""
        self._started = datetime(2026, 1, 1, tzinfo=UTC)

    async def prepare(self, made: Made) -> None:
        """Create the cluster."""
        for kind, namespace, body in made:
            created = await self.client.create(kind, body, namespace)
            if kind is NODES and (patch := without_not_ready(created)):
                await self.client.patch(NODES, created.name, "", patch)
            if kind is POD_DISRUPTION_BUDGETS:
                await self.allow_disruptions(namespace, created.name, 1)

    async def allow_disruptions(self, namespace: str, name: str, count: int) -> None:
        """Say how many pods a disruption budget may lose: there is no controller that would."""
        status = {"disruptionsAllowed": count, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
        patch = {"status": status | {"observedGeneration": 1}}
        await self.client.patch(POD_DISRUPTION_BUDGETS, name, namespace, patch, subresource="status")

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the cluster inside the block; provision what is asked for."""
        async with asyncio.TaskGroup() as group:
            provisioning = group.create_task(self._provisioner.run())
            async with self.mirror.following():
                yield
            provisioning.cancel()

    async def settle(self, seconds: float = _INFORMERS_SECONDS) -> None:
        """Let everybody hear of what has happened."""
        await self.mirror.wait_quiet(seconds)

    async def decide(self, wanted: Wanted) -> None:
        """One pod, by both."""
        await self._create_before(wanted)
        if made_for_it := waits_for(wanted.pod["spec"]):
            wanted.pod["spec"]["schedulingGates"] = [{"name": "example.com/claims"}]
        self.mirror.hold()
        try:
            created = await self.client.create(PODS, wanted.pod, wanted.namespace)
            if created.spec.scheduling_gates:
                created = await self._ungated(created, made_for_it)
        except ApiError as error:
            self.mirror.let_go()
            if error.status.code != 422:
                raise
            self.result.seen["rejected"] += 1
            return
        decision = self._explain(created)
        if decision["pre_enqueue"]["code"] != "Success":
            await self._compare_not_queued(created, decision)
            return
        try:
            real = await self._answer(created, lambda pod: is_final(pod, decision))
            self.result.seen["decided"] += 1
            if real.spec.node_name:
                await self._compare_bound(real, decision)
            else:
                await self._compare_refused(real, decision)
        except TimeoutError as error:
            self._differs(created, f"{error}, ours {told(decision)}")
            self.mirror.let_go()
            await self.remove(created)

    async def _compare_not_queued(self, created: Pod, decision: Raw) -> None:
        """The real one says nothing of such a pod."""
        self.result.seen["not queued"] += 1
        self.mirror.let_go()
        await self.settle(0.3)
        if is_decided(self.mirror.get(PODS, created.namespace, created.name)):
            self._differs(created, f"decided, ours {decision['pre_enqueue']}")
        await self.remove(created)

    async def _compare_refused(self, real: Pod, decision: Raw) -> None:
        if reason_of(real).startswith(_LOST_RACE) and decision["chosen_set"]:  # another controller wrote the claim
            self.result.seen["lost a race for a volume"] += 1
        elif reason_of(real) not in possible_reasons(decision):
            self._differs(real, f"real {reason_of(real)!r}, ours {told(decision)}")
        if real.status.nominated_node_name:
            await self._preempts(real, decision)
            return
        self.result.seen["refused"] += 1
        self.mirror.let_go()
        await self.remove(real)

    async def _preempts(self, real: Pod, decision: Raw) -> None:
        """The victims are those that ours would evict; then the pod is decided again."""
        self.result.seen["preempted"] += 1
        node, found = real.status.nominated_node_name, decision.get("preemption", {})
        if node not in found.get("best_nodes", ()):
            self._differs(real, f"real nominates {node}, ours {found.get('best_nodes')} {told(decision)}")
            self.mirror.let_go()
            await self.settle(1.0)
            await self.remove(real)
            return
        victims = [key.split("/") for key in found["candidates"][node]["victims"]]
        self.result.seen["victims"] += len(victims)
        await self._held_until(
            lambda: all(self._is_gone(*key, ending=True) for key in victims), f"{victims} evicted from {node}"
        )
        if self.waiting is not None:  # the victims' end wakes that one, too, and who comes first takes the room
            self.result.seen["preempted beside one that waits"] += 1
            self.mirror.let_go()
            await self.settle(0.3)
            await self.remove(real)
            await self.dismiss_waiting()
            return
        again = self.mirror.get(PODS, real.namespace, real.name)
        second = self._explain(again)
        if not second["feasible"]:
            await self._compare_waiting(again, second)
            return
        if not all(self._is_gone(*key) for key in victims) and not await self._is_bound_at_once(again):
            self.result.seen["woken by its last victim only"] += 1
            await self._keep_waiting(again)
            return
        bound = await self._answer(real, lambda pod: bool(pod.spec.node_name))
        await self._compare_bound(bound, second)

    async def _is_bound_at_once(self, preemptor: Pod) -> bool:
        """Whether a preemptor is bound for which there is room, though the last of its victims takes its time.

        While it evicts, kube-scheduler holds a preemptor back; only what happens afterwards wakes it, in the end the
        last victim's (pkg/scheduler/framework/preemption/executor.go `prepareCandidateAsync`, v1.36).
        """
        self.mirror.let_go()
        await self.settle(0.3)
        return bool(self.mirror.get(PODS, preemptor.namespace, preemptor.name).spec.node_name)

    async def _compare_waiting(self, real: Pod, second: Raw) -> None:
        """Victims that take their time hold the room: the preemptor waits, and evicts nobody else."""
        self.result.seen["waiting for victims"] += 1
        self.mirror.let_go()
        await self.settle(0.3)
        waiting = self.mirror.get(PODS, real.namespace, real.name)
        if waiting.spec.node_name:
            self._differs(real, f"bound to {waiting.spec.node_name} beside its victims, ours {told(second)}")
        await self._keep_waiting(real)

    async def _keep_waiting(self, real: Pod) -> None:
        await self.dismiss_waiting()
        waiting = self.mirror.get(PODS, real.namespace, real.name)
        self.waiting = None if waiting.spec.node_name else waiting  # the other's room may have been enough

    async def dismiss_waiting(self) -> None:
        """Remove the preemptor that still waits for its victims, if there is one."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            await self.remove(waiting)
            await self.settle(0.2)  # whom this wakes is to be done before the next pod comes

    async def _compare_bound(self, real: Pod, decision: Raw) -> None:
        self.result.seen["bound"] += 1
        self.mirror.let_go()
        if (node := real.spec.node_name) not in decision["chosen_set"]:
            self._differs(real, f"real {node}, ours {told(decision)}")
        names = [
            volume.persistent_volume_claim.claim_name for volume in real.spec.volumes if volume.persistent_volume_claim
        ]
        if names:
            self.result.seen["with volumes"] += 1
            await self.settle()
            for name, volume in decision.get("volumes", {}).get(node, {}).get("static", {}).items():
                bound = self.mirror.get(PERSISTENT_VOLUME_CLAIMS, real.namespace, name).spec.volume_name
                if self._size_of(bound) != self._size_of(volume):  # of equal ones kube-scheduler takes any
                    self._differs(real, f"ours would bind {name} to {volume}, real {bound}")
        if real.spec.resource_claims:
            self.result.seen["with devices"] += 1
            await self.settle()
            await self._compare_devices(real, decision)
        await self._start(real)

    def _size_of(self, volume: str) -> str:
        found = self.mirror.get(PERSISTENT_VOLUMES, "", volume)
        return str(found.spec.capacity.get("storage")) if found else "no volume"

    async def _start(self, real: Pod) -> None:
        """Let the pod run, as its kubelet would: which victims are best is a matter of when they started."""
        self._started += timedelta(seconds=1)
        patch = {"status": {"phase": "Running", "startTime": format_time(self._started)}}
        await self.client.patch(PODS, real.name, real.namespace, patch, subresource="status")

        def runs() -> bool:
            return self.mirror.get(PODS, real.namespace, real.name).status.start_time is not None

        await self.mirror.wait(runs, f"{real.key} running")

    async def _compare_devices(self, real: Pod, decision: Raw) -> None:
        ours = decision.get("allocation", {}).get(real.spec.node_name, {})
        for name, devices in ours.items():
            claim = self.mirror.get(RESOURCE_CLAIMS, real.namespace, name)
            got = claim.status.allocation.devices.results if claim and claim.status.allocation else ()
            told = [(each.request, each.driver, each.pool, each.device) for each in got]
            wanted = [(each["request"], each["driver"], each["pool"], each["device"]) for each in devices]
            if told != wanted:
                self._differs(real, f"claim {name} on {real.spec.node_name}: real {told}, ours {wanted}")

    async def remove(self, pod: Pod, *, for_good: bool = True) -> None:
        """Delete a pod and wait until it is gone; unless for good, one with a finalizer stays, ending."""
        if pod.metadata.finalizers and for_good:
            await self.client.patch(PODS, pod.name, pod.namespace, {"metadata": {"finalizers": None}})
        with contextlib.suppress(NotFound):  # it was ending already
            await self.client.delete(PODS, pod.name, pod.namespace, grace_period_seconds=0)
        stays = bool(pod.metadata.finalizers) and not for_good
        self.result.seen["ending"] += stays
        await self.mirror.wait(lambda: self._is_gone(pod.namespace, pod.name, ending=stays), f"{pod.key} gone")

    def _is_gone(self, namespace: str, name: str, *, ending: bool = False) -> bool:
        pod = self.mirror.get(PODS, namespace, name)
        return pod is None or (ending and bool(pod.metadata.finalizers and pod.metadata.deletion_timestamp))

    # -- ours -------------------------------------------------------------------------------------------------------

    def _explain(self, pod: Pod) -> Raw:
        if self._stale:
            self.world = replace(self.world, objects=self.mirror.objects())
            self._framework = build_framework(self._profile, self.world)
            self._stale = False
        self.world.cache.update_snapshot(self.world.current)
        quick = schedule_pod(
            self._framework, self.world.current, PodInfo(pod), self._dice, nominations=self.world.nominations
        )
        decision = explain_pod(self._framework, self.world, pod)
        self.decisions[pod.key] = decision
        if (quick.node_name or None) not in (decision["chosen_set"] or [None]):
            self._differs(pod, f"incremental {quick.node_name!r}, full {decision['chosen_set']}")
        return decision

    def _changed(self, change: str, kind: Kind[Any], old: Any, new: Any) -> None:
        cache = self.world.cache
        if kind is PODS:
            self.world.nominator.remove(new)
            if change == "DELETED":
                cache.remove_pod(new.uid)
            elif new.spec.node_name:
                cache.add_pod(new)
            elif new.status.nominated_node_name:
                self.world.nominator.add(new)
            return
        self._stale = True
        if kind is NODES:
            cache.remove_node(new.name) if change == "DELETED" else cache.add_node(new)
        if kind is PERSISTENT_VOLUME_CLAIMS and change != "DELETED":
            self._provisioner.look_at(new, self.mirror.all(NODES))

    def _differs(self, pod: Pod, what: str) -> None:
        self.result.found.append(f"{pod.key}: {what}")
        print(f"difference: {pod.key}: {what}", flush=True)  # noqa: T201 - a long run shows what it finds

    # -- the real one's ---------------------------------------------------------------------------------------------

    async def _create_before(self, wanted: Wanted) -> None:
        """Create what the pod needs; claims that name their volume are bound first."""
        for kind, namespace, body in wanted.before:
            created = await self.client.create(kind, body, namespace)
            place = (kind, created.metadata.namespace, created.metadata.name)
            is_bound = kind is PERSISTENT_VOLUME_CLAIMS and bool(created.spec.volume_name)
            await self.mirror.wait(lambda p=place, b=is_bound: self._is_there(*p, bound=b), f"{place[1:]} there")
        if wanted.before:
            await self.settle()

    def _is_there(self, kind: Kind[Any], namespace: str, name: str, *, bound: bool) -> bool:
        obj = self.mirror.get(kind, namespace, name)
        return obj is not None and (not bound or obj.status.phase == "Bound")

    async def _ungated(self, created: Pod, made_for_it: int) -> Pod:
        """Gated pods are told so by the API server and left alone by both; then the gates go."""
        self.result.seen["gated"] += 1
        if (refusal := self._explain(created)["pre_enqueue"])["code"] == "Success":
            self._differs(created, f"gated, ours {refusal}")
        key = (created.namespace, created.name)
        if made_for_it:
            self.mirror.let_go()
            await self.mirror.wait(lambda: self._claims_made(*key) >= made_for_it, f"{key} has its claims")
            await self.settle()
            self.mirror.hold()
        return await self.client.patch(PODS, created.name, created.namespace, {"spec": {"schedulingGates": None}})

    def _claims_made(self, namespace: str, name: str) -> int:
        """How many claims the controllers have made for a pod so far."""
        pod = self.mirror.get(PODS, namespace, name)
        if pod is None:
            return 0
        devices = sum(bool(each.resource_claim_name) for each in pod.status.resource_claim_statuses)
        names = [f"{name}-{each.name}" for each in pod.spec.volumes if each.ephemeral is not None]
        return devices + sum(self.mirror.get(PERSISTENT_VOLUME_CLAIMS, namespace, each) is not None for each in names)

    async def _answer(self, created: Pod, is_answer: Callable[[Pod], bool]) -> Pod:
        """The pod with the real one's answer; whatever happens next is held back.

        Raises:
            TimeoutError: No answer came.
        """
        key = (created.namespace, created.name)

        def answered() -> bool:
            pod = self.mirror.get(PODS, *key)
            return pod is not None and is_answer(pod)

        await self._held_until(answered, "decided")
        return self.mirror.get(PODS, *key)

    async def _held_until(self, condition: Callable[[], bool], what: str) -> None:
        self.mirror.let_go(until=condition)
        await self.mirror.wait(lambda: self.mirror.holds, what, _ANSWER_SECONDS)

    def compare_scores(self, log: Path) -> None:
        """Hold every score in the real one's log against ours."""
        for key, real in scores_of(log).items():
            decision = self.decisions.get(key)
            if decision is not None and "totals" in decision:
                self.result.seen["scores compared"] += sum(map(len, real.values()))
                self.result.found += [f"{key}: {line}" for line in differing(real, our_scores(decision))]
