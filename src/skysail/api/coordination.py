"""Leases."""

from skysail.api.meta import ApiObject, Struct


class LeaseSpec(Struct, frozen=True, gc=False):
    """Who holds it, since when, for how long (MicroTime fields in wire form)."""

    acquire_time: str | None = None
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    preferred_holder: str | None = None
    renew_time: str | None = None
    strategy: str | None = None


class Lease(ApiObject, frozen=True, gc=False):
    """A claim to lead, or a sign of life."""

    spec: LeaseSpec = LeaseSpec()
