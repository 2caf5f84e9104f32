"""Carrying a transcript's actions out: as a user, as a scheduler, as a kubelet."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any

from skysail.api.errors import AlreadyExists, ApiError, ConfigError, NotFound
from skysail.api.kinds import KINDS, LEASES, PODS, Kind
from skysail.api.meta import format_micro_time, format_time
from skysail.api.ports import Clock
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.client.bodies import JSON, MERGE, STRATEGIC
from skysail.testing.transcripts.naming import NAMESPACE, OTHER_NAMESPACE, Names
from skysail.testing.transcripts.observing import target_node
from skysail.testing.transcripts.picking import PodHistory, pick

RAW_KINDS: Mapping[str, Kind[Raw]] = {
    kind.name: Kind(kind.group, kind.version, kind.name, kind.plural, kind.namespaced, dict) for kind in KINDS
}
_PATCHES = {"merge": MERGE, "strategic": STRATEGIC, "json": JSON}
_DEFAULT_NODE = "n0"


class Actor:
    """Performs actions.

    Args:
        client: In the user's name.
        clock: For times written.
        names: Aliases.
        history: Of pods.
        beside: Runs something until the transcript ends.
        pause: Between several actions of one step: lets the controllers react.
        lift_taints: Whether new nodes lose the not-ready taint at once, as they did in recordings without a node life
            cycle controller.
    """

    def __init__(
        self,
        client: ApiClient,
        clock: Clock,
        names: Names,
        history: PodHistory,
        beside: Callable[[Awaitable[None]], object],
        pause: Callable[[], Awaitable[None]],
        *,
        lift_taints: bool = True,
    ) -> None:
        self._lift_taints = lift_taints
        self._client, self._clock, self._names, self._history = client, clock, names, history
        self._beside, self._pause = beside, pause
        self._heartbeats: dict[str, asyncio.Event] = {}
        self.step = 0

    async def perform(self, action: Raw) -> Any:
        """Do it; what the API answered, where the transcript notes that."""
        if action["op"] == "multi":
            results = [await self._perform_in_turn(each) for each in action["actions"]]
            return results if any(result is not None for result in results) else None
        if action["op"] in _POD_STATUS:
            return await self._report_pods(action)
        try:
            return await self._perform_one(action)
        except ApiError as error:
            return _refusal(error)

    async def _perform_in_turn(self, action: Raw) -> Any:
        """One of several: the controllers have time to react before the next, as in a recording over the network."""
        result = await self.perform(action)
        await self._pause()
        return result

    async def _perform_one(self, action: Raw) -> Any:
        match action["op"]:
            case "wait":
                await asyncio.sleep(float(action["seconds"]))
            case "kubelet":
                await self._kubelet(action["node"], heartbeat=action["heartbeat"])
            case "create":
                await self._create(action)
            case "delete":
                await self._delete(action)
            case "add_owner":
                await self._add_owner(action)
            case "rollback":
                await self._roll_back(action)
            case "patch" | "scale" | "set_image" | "pause" | "resume":
                await self._patch(action, *_patch_of(action))
            case "evict":
                return [await self._evict(pod) for pod in await self._pick(action)]
            case "bind" | "delete_pod" | "finish_deletion" | "label_pod":
                return await self._each_pod(action)
            case other:
                raise ConfigError(f"unknown action {other!r}", path="steps[].action.op")
        return None

    # As a user

    def _namespace(self, action: Raw) -> str:
        return self._names.namespaces[action.get("namespace", NAMESPACE)]

    def _where(self, action: Raw, kind: Kind[Raw]) -> str:
        return self._namespace(action) if kind.namespaced else ""

    def _name(self, action: Raw) -> str:
        name = str(action["name"])
        return self._names.namespaces.get(name) or self._names.real(name.removeprefix("@"))

    async def _create(self, action: Raw) -> None:
        obj = await self._resolve(deepcopy(action["object"]))
        kind = RAW_KINDS[obj["kind"]]
        await self._client.create(kind, obj, self._where(action, kind))
        if obj["kind"] == "Node" and self._lift_taints:
            taints = {"spec": {"taints": obj.get("spec", {}).get("taints")}}
            await self._client.patch(kind, obj["metadata"]["name"], "", taints)
        if obj["kind"] in ("Node", "ResourceQuota") and "status" in obj:
            patch = {"status": obj["status"]}
            name = obj["metadata"]["name"]
            await self._client.patch(kind, name, self._where(action, kind), patch, subresource="status")

    async def _resolve(self, value: Any) -> Any:
        """Put real uids and times where the transcript has placeholders."""
        if isinstance(value, dict):
            return {key: await self._resolve(item) for key, item in value.items()}
        if isinstance(value, list):
            return [await self._resolve(item) for item in value]
        if value == "<now>":
            return format_time(self._clock.now())
        if isinstance(value, str) and value.startswith("uid:"):
            return await self._uid(value)
        return value

    async def _uid(self, text: str) -> str:
        _, kind_name, name = text.split(":", 2)
        namespace, slash, rest = name.partition("/")
        action = {"namespace": OTHER_NAMESPACE if slash and namespace == OTHER_NAMESPACE else NAMESPACE}
        kind = RAW_KINDS[kind_name]
        real = self._names.real((rest if slash else name).removeprefix("@"))
        try:
            found = await self._client.get(kind, real, self._where(action, kind))
        except NotFound:
            return "00000000-0000-4000-8000-000000000000"
        return str(found["metadata"]["uid"])

    async def _delete(self, action: Raw) -> None:
        kind = RAW_KINDS[action["kind"]]
        propagation = action.get("propagationPolicy", "")
        await self._client.delete(kind, self._name(action), self._where(action, kind), propagation=propagation)

    async def _patch(self, action: Raw, kind_name: str, patch: Any, patch_type: str, subresource: str) -> None:
        kind = RAW_KINDS[kind_name]
        await self._client.patch(
            kind,
            self._name(action),
            self._where(action, kind),
            await self._resolve(patch),
            patch_type=_PATCHES[patch_type],
            subresource=subresource,
        )

    async def _add_owner(self, action: Raw) -> None:
        kind = RAW_KINDS[action["kind"]]
        found = await self._client.get(kind, self._name(action), self._where(action, kind))
        references = [*(found["metadata"].get("ownerReferences") or ()), await self._resolve(action["owner"])]
        patch = {"metadata": {"ownerReferences": references}}
        await self._client.patch(kind, self._name(action), self._where(action, kind), patch)

    async def _roll_back(self, action: Raw) -> None:
        """As `kubectl rollout undo`: the template of an earlier replica set, without its hash."""
        namespace, kind = self._namespace(action), RAW_KINDS["Deployment"]
        deployment = await self._client.get(kind, self._name(action), namespace)
        sets = [
            item
            for item in (await self._client.list(RAW_KINDS["ReplicaSet"], namespace)).items
            if any(ref["uid"] == deployment["metadata"]["uid"] for ref in item["metadata"].get("ownerReferences", ()))
        ]
        by_revision = {int(item["metadata"]["annotations"]["deployment.kubernetes.io/revision"]): item for item in sets}
        wanted = int(action.get("toRevision") or sorted(by_revision)[-2])
        template = deepcopy(by_revision[wanted]["spec"]["template"])
        template["metadata"].get("labels", {}).pop("pod-template-hash", None)
        patch = [{"op": "replace", "path": "/spec/template", "value": template}]
        await self._client.patch(kind, self._name(action), namespace, patch, patch_type=JSON)

    async def _evict(self, pod: Raw) -> Raw:
        meta = pod["metadata"]
        try:
            await self._client.evict(meta["namespace"], meta["name"])
        except ApiError as error:
            return _refusal(error)
        return {"code": 201}

    # As a scheduler and a kubelet

    async def pods(self, namespace: str = "") -> list[Raw]:
        """All pods of the transcript's namespaces, with new ones noted."""
        found = list((await self._client.list(RAW_KINDS["Pod"], namespace)).items)
        for pod in found:
            self._names.learn("Pod", pod)
        self._history.see(found, self.step)
        return found

    async def _pick(self, action: Raw) -> list[Raw]:
        return pick(await self.pods(self._namespace(action)), action, self._names, self._history)

    async def _each_pod(self, action: Raw) -> Any:
        chosen = await self._pick(action)
        for pod in chosen:
            with suppress(NotFound):
                await self._handle_pod(action, pod)
        return None if action["op"] == "bind" else {"pods": len(chosen)}

    async def _handle_pod(self, action: Raw, pod: Raw) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        match action["op"]:
            case "bind":
                await self._bind(pod, action.get("node"))
            case "delete_pod":
                await self._client.delete(PODS, name, namespace)
            case "label_pod":
                changes = {key: action[key] for key in ("labels", "annotations") if key in action}
                await self._client.patch(RAW_KINDS["Pod"], name, namespace, {"metadata": changes})
            case "finish_deletion":
                if "terminal" in action:
                    await self._write_status(pod, _ended(pod, action["terminal"], 0, format_time(self._clock.now())))
                await self._client.delete(PODS, name, namespace, grace_period_seconds=0)

    async def _bind(self, pod: Raw, node: str | None) -> None:
        if pod["spec"].get("nodeName"):
            return
        meta = pod["metadata"]
        await self._client.bind(meta["namespace"], meta["name"], meta["uid"], node or target_node(pod) or _DEFAULT_NODE)
        await self._pause()

    async def _write_status(self, pod: Raw, status: Raw) -> None:
        meta = pod["metadata"]
        patch = {"status": status}
        kind = RAW_KINDS["Pod"]
        await self._client.patch(
            kind, meta["name"], meta["namespace"], patch, patch_type=STRATEGIC, subresource="status"
        )

    async def _report_pods(self, action: Raw) -> Raw:
        chosen = await self._pick(action)
        now = format_time(self._clock.now())
        for pod in chosen:
            with suppress(NotFound):
                if action["op"] != "make_unready":
                    bind_to = action.get("node") if action["op"] in ("make_ready", "make_running") else None
                    await self._bind(pod, bind_to)
                await self._write_status(pod, _POD_STATUS[action["op"]](pod, action, now))
                if action["op"] == "make_ready":
                    self._history.ready_at[pod["metadata"]["uid"]] = self.step
                elif action["op"] != "make_running":
                    self._history.ready_at.pop(pod["metadata"]["uid"], None)
        return {"pods": len(chosen)}

    async def _kubelet(self, node: str, *, heartbeat: bool) -> None:
        """Renew a node's lease every second from now on, or no longer."""
        running = self._heartbeats.pop(node, None)
        if running is not None:
            running.set()
        if heartbeat:
            stop = self._heartbeats[node] = asyncio.Event()
            await self._renew(node)
            self._beside(self._beat(node, stop))

    async def _beat(self, node: str, stop: asyncio.Event) -> None:
        while not stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await stop.wait()
            if not stop.is_set():
                await self._renew(node)

    async def _renew(self, node: str) -> None:
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": format_micro_time(self._clock.now())}
        try:
            await self._client.patch(LEASES, node, "kube-node-lease", {"spec": spec})
        except NotFound:
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": node}, "spec": spec}
            with suppress(AlreadyExists):
                await self._client.create(LEASES, body, "kube-node-lease")


def _refusal(error: ApiError) -> Raw:
    return {"code": error.status.code or error.code, "message": error.status.message}


def _patch_of(action: Raw) -> tuple[str, Any, str, str]:
    """Kind, patch, patch type and subresource of an action that changes an object."""
    match action["op"]:
        case "scale":
            return action["kind"], {"spec": {"replicas": action["replicas"]}}, "merge", ""
        case "set_image":
            containers = [{"name": "c", "image": action["image"]}]
            return action["kind"], {"spec": {"template": {"spec": {"containers": containers}}}}, "strategic", ""
        case "pause" | "resume":
            return "Deployment", {"spec": {"paused": action["op"] == "pause"}}, "merge", ""
    return action["kind"], action["patch"], action.get("type", "merge"), action.get("subresource", "")


def _running(pod: Raw, action: Raw, now: str) -> Raw:
    ready = action["op"] == "make_ready"
    flag = "True" if ready else "False"
    state = {"running": {"startedAt": now}}
    statuses = [_container(item, state, ready=ready) for item in pod["spec"]["containers"]]
    conditions = [{"type": kind, "status": flag, "lastTransitionTime": now} for kind in ("Ready", "ContainersReady")]
    return {"phase": "Running", "conditions": conditions, "containerStatuses": statuses, "startTime": now}


def _unready(pod: Raw, action: Raw, now: str) -> Raw:
    conditions = [{"type": kind, "status": "False", "lastTransitionTime": now} for kind in ("Ready", "ContainersReady")]
    return {"conditions": conditions}


def _failed(pod: Raw, action: Raw, now: str) -> Raw:
    status = _ended(pod, "Failed", int(action.get("exitCode", 1)), now)
    if "condition" in action:
        mark = {"type": action["condition"], "status": "True", "reason": "Recorded", "lastTransitionTime": now}
        status["conditions"].append(mark)
    if "reason" in action:
        status["reason"] = action["reason"]
    return status


def _succeeded(pod: Raw, action: Raw, now: str) -> Raw:
    return _ended(pod, "Succeeded", 0, now)


def _ended(pod: Raw, phase: str, exit_code: int, now: str) -> Raw:
    code = exit_code or (1 if phase == "Failed" else 0)
    reason = "Error" if code else "Completed"
    state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}}
    statuses = [_container(item, state, ready=False) for item in pod["spec"]["containers"]]
    conditions = [{"type": "Ready", "status": "False", "lastTransitionTime": now}]
    return {"phase": phase, "conditions": conditions, "containerStatuses": statuses}


def _container(container: Raw, state: Raw, *, ready: bool) -> Raw:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": ready,
        "restartCount": 0,
        "state": state,
    }


_POD_STATUS: Mapping[str, Callable[[Raw, Raw, str], Raw]] = {
    "make_ready": _running,
    "make_running": _running,
    "make_unready": _unready,
    "fail_pod": _failed,
    "succeed_pod": _succeeded,
}
