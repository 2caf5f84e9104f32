"""The shell of leader election: acquire the Lease, lead, renew, give it back.

`run` leads at most once: when the lease cannot be renewed in time, or what was being led ends, it returns or raises,
and the process should go. A leader that dies for whatever reason gives the lease back at once.

Source: k8s.io/client-go/tools/leaderelection/leaderelection.go, v1.36.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random

import msgspec

from skysail.api.coordination import LeaseSpec
from skysail.api.errors import ApiError, NotFound, SkysailError, Unreachable
from skysail.api.kinds import LEASES, Kind
from skysail.api.ports import Clock
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.controller.lease import JITTER_FACTOR, LeaderElection, LeaseRecord, LeaseView
from skysail.controller.recorder import EventRecorder, NoRecorder
from skysail.informer.supervisor import Failure, attempt

_log = logging.getLogger(__name__)

_WHOLE_LEASES: Kind[Raw] = Kind(LEASES.group, LEASES.version, LEASES.name, LEASES.plural, True, dict)
"""Leases as dictionaries: the whole object is written back, and what others put on it must not be lost. An update and
no patch, because that is what roles for leader election allow."""


class LeadershipLost(SkysailError):
    """The lease could not be renewed in time: stop acting at once."""


class LeaderElector:
    """One candidate.

    Args:
        client: Reads and writes the Lease.
        election: Names and times.
        identity: Who this is; unique among the candidates.
        clock: Measures time; must follow the event loop's.
        rng: Spreads the tries.
        on_new_leader: Told of every new leader, itself included.
        recorder: Writes an Event when leadership is won or ends.
    """

    def __init__(
        self,
        client: ApiClient,
        election: LeaderElection,
        identity: str,
        *,
        clock: Clock,
        rng: Random,
        on_new_leader: Callable[[str], None] | None = None,
        recorder: EventRecorder | None = None,
    ) -> None:
        self.election = election
        self.identity = identity
        self._client, self._clock, self._rng = client, clock, rng
        self._view = LeaseView(identity, int(election.lease_seconds))
        self._lease: Raw = {}
        self._on_new_leader = on_new_leader
        self._recorder: EventRecorder = recorder if recorder is not None else NoRecorder()
        self._reported = ""
        self._leading = False

    @property
    def is_leader(self) -> bool:
        """Whether this candidate leads at the moment."""
        return self._leading

    @property
    def leader(self) -> str:
        """Who leads, as last seen."""
        return self._view.record.holder

    def health(self, tolerance_seconds: float = 20.0) -> str:
        """Why this candidate is unhealthy; empty when it is not.

        A leader that has not renewed for so long, and still lives, is stuck.
        """
        silent = self._clock.monotonic() - self._view.observed_at
        if self._leading and silent > self.election.lease_seconds + tolerance_seconds:
            return f"failed election to renew leadership on lease {self.election.name}"
        return ""

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, lead while it can be renewed, give it back.

        Args:
            lead: What the leader does; cancelled when leadership is lost.

        Raises:
            LeadershipLost: The lease could not be renewed in time.
        """
        await self._acquire()
        self._leading = True
        self._record("became leader")
        try:
            lost, failure = await self._lead(lead)
        finally:
            self._leading = False
            self._record("stopped leading")
            if self.election.release_on_stop:
                await self._release()
        if lost is not None:
            raise lost
        if failure is not None:
            raise failure.error

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> tuple[LeadershipLost | None, Failure | None]:
        """Lead until that ends, or the lease is lost; with what it ended."""
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(self._renew_until_lost())
            leading = group.create_task(attempt(lead))
            await asyncio.wait({renewing, leading}, return_when=asyncio.FIRST_COMPLETED)
            renewing.cancel()
            leading.cancel()
        failure = None if leading.cancelled() else leading.result()
        return None if renewing.cancelled() else renewing.result(), failure

    async def _acquire(self) -> None:
        _log.info("waiting for leader lease", extra={"lease": self._lease_name(), "identity": self.identity})
        while not await self._try_acquire_or_renew():
            self._report_leader()
            jitter = 1.0 + JITTER_FACTOR * self._rng.random()
            await asyncio.sleep(self.election.retry_seconds * jitter)
        _log.info("became leader", extra={"lease": self._lease_name(), "identity": self.identity})
        self._report_leader()

    async def _renew_until_lost(self) -> LeadershipLost:
        while True:
            await asyncio.sleep(self.election.retry_seconds)
            try:
                async with asyncio.timeout(self.election.renew_deadline_seconds):
                    await self._renew_once()
            except TimeoutError:
                return LeadershipLost(f"lease {self._lease_name()} was not renewed in time")
            self._report_leader()

    async def _renew_once(self) -> None:
        renewed = await self._try_acquire_or_renew()
        while not renewed:
            await asyncio.sleep(self.election.retry_seconds)
            renewed = await self._try_acquire_or_renew()

    async def _try_acquire_or_renew(self) -> bool:
        view, now = self._view, self._clock.monotonic()
        try:
            if view.is_leader and view.is_valid(now) and await self._try_fast_renewal():
                return True
            try:
                record = await self._read()
            except NotFound:
                await self._create(view.first_claim(self._clock.now()))
                return True
            view.observe(record, self._clock.monotonic())
            if not view.may_take(self._clock.monotonic()):
                return False
            await self._update(view.claim(self._clock.now()))
        except (ApiError, Unreachable) as error:
            _log.debug("lease not written", extra={"lease": self._lease_name(), "error": str(error)})
            return False
        return True

    async def _try_fast_renewal(self) -> bool:
        """Renew without reading first, on the version last written."""
        try:
            await self._update(self._view.claim(self._clock.now()))
        except (ApiError, Unreachable) as error:
            _log.debug("lease not renewed at once, reading it", extra={"error": str(error)})
            return False
        return True

    async def _read(self) -> LeaseRecord:
        election = self.election
        self._lease = await self._client.get(_WHOLE_LEASES, election.name, election.namespace)
        return LeaseRecord.of(msgspec.convert(self._lease.get("spec") or {}, LeaseSpec))

    async def _create(self, record: LeaseRecord) -> None:
        metadata = {"name": self.election.name, "namespace": self.election.namespace}
        lease = {"metadata": metadata, "spec": record.as_raw()}
        self._written(await self._client.create(_WHOLE_LEASES, lease, self.election.namespace), record)

    async def _update(self, record: LeaseRecord) -> None:
        lease = self._lease | {"spec": record.as_raw()}
        self._written(await self._client.update(_WHOLE_LEASES, lease, self.election.namespace), record)

    def _written(self, lease: Raw, record: LeaseRecord) -> None:
        self._lease = lease
        self._view.wrote(record, self._clock.monotonic())

    async def _release(self) -> None:
        if not self._view.is_leader:
            return
        try:
            async with asyncio.timeout(self.election.renew_deadline_seconds):
                if (await self._read()).holder == self.identity:
                    await self._update(self._view.release(self._clock.now()))
        except (ApiError, Unreachable, TimeoutError) as error:
            _log.info("lease not given back", extra={"lease": self._lease_name(), "error": str(error)})

    def _record(self, what: str) -> None:
        lease = {"apiVersion": LEASES.api_version, "kind": LEASES.name} | self._lease
        self._recorder.event(lease, "Normal", "LeaderElection", f"{self.identity} {what}")

    def _report_leader(self) -> None:
        if self.leader and self.leader != self._reported:
            self._reported = self.leader
            if self._on_new_leader is not None:
                self._on_new_leader(self.leader)

    def _lease_name(self) -> str:
        return f"{self.election.namespace}/{self.election.name}"
