"""The rows of who may do what, and of what is checked at the door.

Source: pkg/printers/internalversion/printers.go, v1.36.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from skysail.api.raw import Raw
from skysail.apiserver.tables.cells import NONE, UNSET, age, human_duration, listed, part

Row = Sequence[object]


def role_binding_cells(obj: Raw, now: datetime) -> Row:
    """Name, Role, Age; Users, Groups, ServiceAccounts."""
    role = part(obj, "roleRef")
    subjects: Sequence[Raw] = obj.get("subjects") or ()
    accounts = [f"{s.get('namespace', '')}/{s['name']}" for s in subjects if s.get("kind") == "ServiceAccount"]
    named = (", ".join(s["name"] for s in subjects if s.get("kind") == kind) for kind in ("User", "Group"))
    return [
        obj["metadata"]["name"], f"{role.get('kind', '')}/{role.get('name', '')}", age(obj, now), *named,
        ", ".join(accounts),
    ]  # fmt: skip


def webhooks_cells(obj: Raw, now: datetime) -> Row:
    """Name, Webhooks, Age."""
    return [obj["metadata"]["name"], len(obj.get("webhooks") or ()), age(obj, now)]


def admission_policy_cells(obj: Raw, now: datetime) -> Row:
    """Name, Validations or Mutations, ParamKind, Age."""
    spec = part(obj, "spec")
    rules = spec.get("validations") or spec.get("mutations") or ()
    kind = spec.get("paramKind")
    param = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    return [obj["metadata"]["name"], len(rules), param, age(obj, now)]


def policy_binding_cells(obj: Raw, now: datetime) -> Row:
    """Name, PolicyName, ParamRef, Age."""
    spec = part(obj, "spec")
    ref = part(spec, "paramRef")
    param = f"{ref.get('namespace') or '*'}/{ref['name']}" if ref.get("name") else UNSET
    return [obj["metadata"]["name"], spec.get("policyName", ""), param, age(obj, now)]


def signing_request_cells(obj: Raw, now: datetime) -> Row:
    """Name, Age, SignerName, Requestor, RequestedDuration, Condition."""
    spec, status = part(obj, "spec"), part(obj, "status")
    types = {found.get("type") for found in status.get("conditions") or ()}
    words = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    words += ["Failed"] if "Failed" in types else []
    words += ["Issued"] if status.get("certificate") else []
    seconds = spec.get("expirationSeconds")
    return [
        obj["metadata"]["name"], age(obj, now), spec.get("signerName") or NONE, spec.get("username", ""),
        NONE if seconds is None else human_duration(timedelta(seconds=seconds)), ",".join(words),
    ]  # fmt: skip


def trust_bundle_cells(obj: Raw, _: datetime) -> Row:
    """Name, SignerName."""
    return [obj["metadata"]["name"], part(obj, "spec").get("signerName") or NONE]


def flow_schema_cells(obj: Raw, now: datetime) -> Row:
    """Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL."""
    spec = part(obj, "spec")
    dangling = next(
        (c.get("status", "") for c in part(obj, "status").get("conditions") or () if c.get("type") == "Dangling"), "?"
    )
    return [
        obj["metadata"]["name"], part(spec, "priorityLevelConfiguration").get("name", ""),
        spec.get("matchingPrecedence", 0), part(spec, "distinguisherMethod").get("type") or NONE, age(obj, now),
        dangling,
    ]  # fmt: skip


def priority_level_cells(obj: Raw, now: datetime) -> Row:
    """Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age."""
    limited = part(obj, "spec").get("limited")
    shares: object = NONE if limited is None else limited.get("nominalConcurrencyShares", 0)
    queuing = part(obj, "spec", "limited", "limitResponse").get("queuing")
    sizes = (NONE,) * 3 if queuing is None else [
        queuing.get(name, 0) for name in ("queues", "handSize", "queueLengthLimit")
    ]  # fmt: skip
    return [obj["metadata"]["name"], part(obj, "spec").get("type", ""), shares, *sizes, age(obj, now)]


def storage_version_cells(obj: Raw, now: datetime) -> Row:
    """Name, CommonEncodingVersion, StorageVersions, Age."""
    status = part(obj, "status")
    versions = [
        f"{v.get('apiServerID', '')}={v.get('encodingVersion', '')}" for v in status.get("storageVersions") or ()
    ]
    return [obj["metadata"]["name"], status.get("commonEncodingVersion") or UNSET, listed(versions), age(obj, now)]
