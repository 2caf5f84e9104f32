"""The waiting half of DynamicResources: writes allocations and reservations, waits for devices, undoes what failed.

    for each claim of the pod that is not reserved for it:
        create it (extended resources only) ─▶ add the finalizer ─▶ write allocation and reservation
    wait until devices with binding conditions are prepared

What is undone (after a failure, or to make an unschedulable pod schedulable) is written by a task of its own, so that
nobody waits for it; whoever wakes up then sees the claim's change in the watch.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (PreBind, bindClaim), v1.36.
Differs: when an answer is lost, devices stay promised until it is known what became of the write, and a reservation is
    taken back only if the pod was not bound after all. Looks at prepared devices at once and then after ever longer
    pauses up to 5 s, not every 5 s.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from skysail.api.core import Pod
from skysail.api.errors import (
    ApiError,
    Conflict,
    Forbidden,
    InternalError,
    NotFound,
    RequestTimeout,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
    Unreachable,
)
from skysail.api.kinds import PODS, RESOURCE_CLAIMS
from skysail.api.meta import format_time
from skysail.api.raw import Raw
from skysail.api.resource import CLAIM_FINALIZER, AllocationResult, ResourceClaim
from skysail.scheduler.framework.handle import Handle, ObjectWriter
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.plugins.device_account import DeviceAccount
from skysail.scheduler.plugins.dynamic_resources_state import DeviceState
from skysail.scheduler.plugins.extended_resources import SPECIAL_NAME
from skysail.scheduler.plugins.pod_claims import (
    BindingFailed,
    has_binding_conditions,
    is_overdue,
    is_ready,
    is_reserved_for,
)

_log = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
_CONFLICT_PAUSE_SECONDS: Final = 0.01
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 5.0
_SHOWN_WITHIN_SECONDS: Final = 120.0
_LONGEST_INSISTENCE_SECONDS: Final = 30.0
_TRANSIENT: Final = (
    Unreachable, InternalError, ServiceUnavailable, ServerTimeout, RequestTimeout, TooManyRequests, Conflict
)  # fmt: skip
_UNKNOWN: Final = (Unreachable, InternalError, ServerTimeout, RequestTimeout)
"""Errors after which a write may have gone through all the same."""


Write = Callable[[ObjectWriter], Awaitable[None]]
"""Something that is written later."""


class ClaimWriteFailed(Exception):
    """A claim could not be written; the message says why."""


class ClaimWriter:
    """Writes claims and waits for devices.

    Args:
        handle: The writer and the clock.
        account: Is told what was written.
        timeout_seconds: How long devices may take to be prepared.
    """

    def __init__(self, handle: Handle, account: DeviceAccount, *, timeout_seconds: float) -> None:
        self._handle, self._account, self._timeout = handle, account, timeout_seconds
        self._undo: list[tuple[Write, Callable[[], None]]] = []
        self._wake: asyncio.Event | None = None
        self._unreserving: dict[tuple[str, str], asyncio.Event] = {}

    # -- before the pod is bound ------------------------------------------------------------------------------------

    async def bind(self, pod: Pod, node_name: str, state: DeviceState) -> Status:
        """Write everything, then wait for the devices; an error when that fails or takes too long."""
        writer = self._handle.writer
        if writer is None:
            return SUCCESS
        try:
            await self._wait_undone(pod, state)
            for place, claim in enumerate(list(state.claims)):
                if not is_reserved_for(claim, pod) and not self._needs_nothing(state, place):
                    await self._bind_claim(writer, pod, node_name, state, place)
            if self._account.features.binding_conditions and any(map(has_binding_conditions, state.claims)):
                await self._wait_ready(state)
        except (ClaimWriteFailed, BindingFailed) as error:
            return Status.error(str(error))
        return SUCCESS

    async def _wait_undone(self, pod: Pod, state: DeviceState) -> None:
        """Wait until reservations of an earlier attempt are taken back: they are no longer good for anything."""
        for place, claim in enumerate(list(state.claims)):
            undone = self._unreserving.get((pod.uid, claim.uid))
            if undone is not None:
                await undone.wait()
                state.claims[place] = self._account.claim(claim.namespace, claim.name) or claim

    @staticmethod
    def _needs_nothing(state: DeviceState, place: int) -> bool:
        """Whether this is the claim for extended resources, and the node offers them all by itself."""
        return place == state.own and place not in state.reserved and not state.claims[place].spec.devices.requests

    async def _bind_claim(self, writer: ObjectWriter, pod: Pod, node_name: str, state: DeviceState, place: int) -> None:
        claim, allocation = state.claims[place], state.reserved.get(place)
        promised = state.special_uid if place == state.own else claim.uid
        try:
            if claim.name == SPECIAL_NAME:
                claim = state.claims[place] = await self._create(writer, node_name, state, place)
            claim = state.claims[place] = await self._reserve(writer, pod, claim, allocation)
            if place == state.own:
                await self._tell_pod(writer, pod, claim, node_name, state)
                await self._wait_shown(claim)
            else:
                self._account.wrote(claim)
        except _UNKNOWN as error:
            self._learn_later(promised, claim, pod)
            raise ClaimWriteFailed(str(error)) from error
        except ApiError as error:
            self._account.end_promise(promised)
            raise ClaimWriteFailed(str(error)) from error
        except ClaimWriteFailed:
            self._account.end_promise(promised)
            raise
        self._account.end_promise(promised)

    async def _create(self, writer: ObjectWriter, node_name: str, state: DeviceState, place: int) -> ResourceClaim:
        found = state.nodes.get(node_name)
        if found is None or place not in found.claims:
            raise ClaimWriteFailed(f"extended resource claim not found for node {node_name}")
        body = _raw(found.claims[place])
        body["metadata"].pop("name", None)
        body["metadata"].pop("uid", None)
        body.pop("status", None)
        body |= {"apiVersion": RESOURCE_CLAIMS.api_version, "kind": RESOURCE_CLAIMS.name}
        try:
            return await writer.create(RESOURCE_CLAIMS, body, state.claims[place].namespace)
        except (ApiError, Unreachable) as error:
            key = state.claims[place].key
            raise ClaimWriteFailed(f"create claim for extended resources {key}: {error}") from error

    async def _reserve(
        self, writer: ObjectWriter, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> ResourceClaim:
        """Write allocation and reservation; somebody else's change in between is read and respected."""
        for attempt in range(_ATTEMPTS):
            try:
                return await self._reserve_once(writer, pod, claim, allocation)
            except Conflict:
                if attempt + 1 == _ATTEMPTS:
                    raise
                await asyncio.sleep(_CONFLICT_PAUSE_SECONDS)
                claim = await writer.get(RESOURCE_CLAIMS, claim.name, claim.namespace)
        raise ClaimWriteFailed(f"claim {claim.key} keeps changing")

    async def _reserve_once(
        self, writer: ObjectWriter, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> ResourceClaim:
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimWriteFailed(f"claim {claim.key} got deleted in the meantime")
        written: Raw = {}
        if allocation is not None:
            if claim.status.allocation is not None:
                raise ClaimWriteFailed(f"claim {claim.key} got allocated elsewhere in the meantime")
            claim = await _with_finalizer(writer, claim)
            written = _raw(allocation)
        elif claim.status.allocation is None:
            raise ClaimWriteFailed(f"claim {claim.key} got deallocated elsewhere in the meantime")
        present = claim.status.allocation
        if self._account.features.binding_conditions and (present is None or present.allocation_timestamp is None):
            written["allocationTimestamp"] = format_time(self._handle.clock.now())
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status: Raw = {"reservedFor": [*_raw(claim.status).get("reservedFor", []), consumer]}
        if written:
            status["allocation"] = written
        return await _patch_status(writer, claim, status)

    async def _tell_pod(
        self, writer: ObjectWriter, pod: Pod, claim: ResourceClaim, node_name: str, state: DeviceState
    ) -> None:
        found = state.nodes.get(node_name)
        mappings = found.mappings if found is not None else ()
        if not mappings:
            problem = "nil or empty request mappings, no update of pod"
            raise ClaimWriteFailed(f"{problem} {pod.key} ExtendedResourceClaimStatus")
        told = {"requestMappings": [_raw(each) for each in mappings], "resourceClaimName": claim.name}
        patch = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": told}}
        await writer.patch(PODS, pod.name, pod.namespace, patch, subresource="status")

    async def _wait_shown(self, claim: ResourceClaim) -> None:
        """Wait until the watch knows the new claim: its devices stay promised until then."""
        deadline, pause = self._handle.clock.monotonic() + _SHOWN_WITHIN_SECONDS, _FIRST_PAUSE_SECONDS
        while not self._account.wrote(claim) and self._handle.clock.monotonic() < deadline:
            await asyncio.sleep(pause)
            pause = min(pause * 2, 1.0)

    async def _wait_ready(self, state: DeviceState) -> None:
        clock, pause = self._handle.clock, _FIRST_PAUSE_SECONDS
        deadline = clock.monotonic() + self._timeout
        while not self._are_ready(state):
            if clock.monotonic() >= deadline:
                raise ClaimWriteFailed("device binding timeout: context deadline exceeded")
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _are_ready(self, state: DeviceState) -> bool:
        for place, claim in enumerate(state.claims):
            if claim.name == SPECIAL_NAME:
                continue
            current = self._account.claim(claim.namespace, claim.name)
            if current is None:
                raise ClaimWriteFailed(f'could not find ResourceClaim "{claim.key}"')
            state.claims[place] = current
            if is_ready(current):
                continue
            if is_overdue(current, self._handle.clock.now().timestamp(), self._timeout):
                raise ClaimWriteFailed(f"device binding timeout: claim={current.name}")
            return False
        return True

    # -- undoing ----------------------------------------------------------------------------------------------------

    def unreserve(self, pod: Pod, claim: ResourceClaim) -> None:
        """Take the pod's reservation back, some time soon."""
        if self._handle.writer is None:
            return
        key, undone = (pod.uid, claim.uid), asyncio.Event()
        self._unreserving[key] = undone

        async def write(writer: ObjectWriter) -> None:
            now = await writer.get(PODS, pod.name, pod.namespace)
            if now.uid != pod.uid or not now.spec.node_name:  # else it was bound after all: only the answer was lost
                await self._take_back(writer, pod, claim)

        def done() -> None:
            undone.set()
            if self._unreserving.get(key) is undone:
                del self._unreserving[key]

        self._later(write, done)

    async def _take_back(self, writer: ObjectWriter, pod: Pod, claim: ResourceClaim) -> None:
        current = await writer.get(RESOURCE_CLAIMS, claim.name, claim.namespace)
        left = [_raw(each) for each in current.status.reserved_for if each.uid != pod.uid]
        if current.uid == claim.uid and len(left) < len(current.status.reserved_for):
            self._account.wrote(await _patch_status(writer, current, {"reservedFor": left or None}))

    def _learn_later(self, promised: str, claim: ResourceClaim, pod: Pod) -> None:
        """Hold devices until it is known whether a write went through whose answer was lost."""

        async def learn(writer: ObjectWriter) -> None:
            with contextlib.suppress(NotFound, Forbidden):
                self._account.wrote(await writer.get(RESOURCE_CLAIMS, claim.name, claim.namespace))
            self._account.end_promise(promised)
            self._handle.activate([pod])

        if claim.name == SPECIAL_NAME or self._handle.writer is None:
            self._account.end_promise(promised)
        else:
            self._later(learn)

    def deallocate(self, claim: ResourceClaim) -> None:
        """Give a claim's devices back, some time soon."""

        async def write(writer: ObjectWriter) -> None:
            nothing: Raw = {"allocation": None, "reservedFor": None, "devices": None}
            with contextlib.suppress(Conflict):  # somebody else uses it by now: the next attempt decides anew
                self._account.wrote(await _patch_status(writer, claim, nothing))

        self._later(write)

    def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim that a scheduler made, some time soon."""

        async def write(writer: ObjectWriter) -> None:
            left = [each for each in claim.metadata.finalizers if each != CLAIM_FINALIZER]
            patch = {"metadata": {"uid": claim.uid, "finalizers": left or None}}
            await writer.patch(RESOURCE_CLAIMS, claim.name, claim.namespace, patch)
            await writer.delete(RESOURCE_CLAIMS, claim.name, claim.namespace, uid=claim.uid)

        self._later(write)

    def _later(self, write: Write, done: Callable[[], None] = lambda: None) -> None:
        if self._handle.writer is None:
            return
        self._undo.append((write, done))
        if self._wake is not None:
            self._wake.set()

    async def run(self) -> None:
        """Write what is to be undone, until cancelled."""
        self._wake = asyncio.Event()
        writer = self._handle.writer
        async with asyncio.TaskGroup() as writes:
            while True:
                while self._undo and writer is not None:
                    writes.create_task(_insist(writer, *self._undo.pop(0)))
                self._wake.clear()
                await self._wake.wait()


async def _insist(writer: ObjectWriter, write: Write, done: Callable[[], None]) -> None:
    """Try until it works, or cannot work; `done` is told when it is over."""
    try:
        await _try_until_done(writer, write)
    finally:
        done()


async def _try_until_done(writer: ObjectWriter, write: Write) -> None:
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            await write(writer)
        except NotFound:
            return
        except _TRANSIENT as error:
            _log.info("claim could not be given back yet", extra={"error": str(error)})
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_INSISTENCE_SECONDS)
        except ApiError as error:
            _log.warning("claim cannot be given back", extra={"error": str(error)})
            return
        else:
            return


async def _with_finalizer(writer: ObjectWriter, claim: ResourceClaim) -> ResourceClaim:
    if CLAIM_FINALIZER in claim.metadata.finalizers:
        return claim
    finalizers = [*claim.metadata.finalizers, CLAIM_FINALIZER]
    metadata = {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version, "finalizers": finalizers}
    return await writer.patch(RESOURCE_CLAIMS, claim.name, claim.namespace, {"metadata": metadata})


async def _patch_status(writer: ObjectWriter, claim: ResourceClaim, status: Raw) -> ResourceClaim:
    metadata = {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version}
    patch = {"metadata": metadata, "status": status}
    return await writer.patch(RESOURCE_CLAIMS, claim.name, claim.namespace, patch, subresource="status")


def _raw(struct: msgspec.Struct) -> Raw:
    """A Struct as written."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(struct))
    return found
