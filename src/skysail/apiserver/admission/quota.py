"""ResourceQuota: refuse what a namespace's quotas do not leave room for, and count what is let in.

The hard limits and the use so far stand in each quota's status, where the quota controller puts them; a quota without
status limits nothing yet.

Source: k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go CheckRequest, v1.36.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from skysail.api.quantity import Quantity, parse_quantity
from skysail.api.raw import Raw
from skysail.apiserver.admission import charges
from skysail.apiserver.admission.attributes import Attributes
from skysail.apiserver.contract import GroupResource, Registry

QUOTAS = GroupResource("", "resourcequotas")
_UPDATES_COUNT = frozenset({"services", "persistentvolumeclaims"})


@runtime_checkable
class _Writer(Protocol):
    def update(self, *args: object, **kwargs: object) -> Raw:
        """As `contract.Registry.update`."""
        ...


def enforce(a: Attributes) -> None:
    """Check a create (and a growing update) against every quota of the namespace, then charge them."""
    if not a.namespace or not _counts(a):
        return
    quotas = a.ctx.reader.list(QUOTAS, a.namespace)
    if not quotas:
        return
    resource = a.resource.group_resource
    usage = charges.of(resource, a.obj)
    if a.operation == "UPDATE" and a.old is not None:
        usage = _difference(usage, charges.of(resource, a.old))
    charged: list[tuple[str, charges.Usage]] = []
    for quota in quotas:
        used = _check(a, quota, usage)
        if used is not None:
            charged.append((quota["metadata"]["name"], used))
    if not a.ctx.dry_run and not _will_fail(a):
        for name, used in charged:
            _charge(a, name, used)


def _will_fail(a: Attributes) -> bool:
    """Whether a create will be refused for its name, after which nothing may have been charged."""
    name = a.obj["metadata"].get("name") or ""
    return a.operation == "CREATE" and a.ctx.reader.get(a.resource.group_resource, a.namespace, name) is not None


def _counts(a: Attributes) -> bool:
    if a.operation == "CREATE":
        return not a.ctx.subresource
    if a.resource.group:
        return False
    if a.resource.resource == "pods":
        return a.ctx.subresource == "resize"
    return a.resource.resource in _UPDATES_COUNT and not a.ctx.subresource


def _difference(new: charges.Usage, old: charges.Usage) -> charges.Usage:
    return {name: amount - old[name] if name in old else amount for name, amount in new.items()}


def _check(a: Attributes, quota: Raw, usage: charges.Usage) -> charges.Usage | None:
    """The quota's use afterwards, or None when it is not concerned."""
    name, status = quota["metadata"]["name"], quota.get("status") or {}
    hard = _parse(status.get("hard"))
    concerned = [key for key in hard if key in usage or _could_concern(a, key)]
    is_pod = a.resource.resource == "pods" and not a.resource.group
    if not concerned:
        return None
    scoped = (quota.get("spec") or {}).get("scopes") or (quota.get("spec") or {}).get("scopeSelector")
    if scoped and not (is_pod and charges.in_scope(quota["spec"], a.obj)):
        return None
    if is_pod:
        missing = charges.missing_amounts(a.obj, concerned)
        if missing:
            raise a.refuse(f"failed quota: {name}: {missing}")
    used = _parse(status.get("used"))
    unknown = [key for key in concerned if key not in used]
    if unknown:
        raise a.refuse(f"status unknown for quota: {name}, resources: {','.join(sorted(unknown))}")
    requested = {key: amount for key, amount in usage.items() if key in hard and amount.nano}
    if not requested:
        return None
    after = {**used, **{key: used[key] + amount for key, amount in requested.items() if key in used}}
    exceeded = [key for key in requested if after[key] > hard[key]]
    if exceeded:
        raise a.refuse(
            f"exceeded quota: {name}, requested: {_print(requested, exceeded)}, used: {_print(used, exceeded)}, "
            f"limited: {_print(hard, exceeded)}"
        )
    return after


def _could_concern(a: Attributes, key: str) -> bool:
    """Whether a quota's name is one that pods are counted under, though this pod names no such amount."""
    if a.resource.resource != "pods" or a.resource.group:
        return False
    plain = key.removeprefix("requests.").removeprefix("limits.")
    return plain in ("cpu", "memory", "ephemeral-storage", "pods") or key == "count/pods"


def _parse(amounts: Raw | None) -> dict[str, Quantity]:
    return {key: parse_quantity(str(text)) for key, text in (amounts or {}).items()}


def _print(amounts: Mapping[str, Quantity], keys: Iterable[str]) -> str:
    return ",".join(f"{key}={amounts[key]}" for key in sorted(keys) if key in amounts)


def _charge(a: Attributes, name: str, used: charges.Usage) -> None:
    if not isinstance(a.ctx.reader, _Writer):
        return
    writer: Registry = a.ctx.reader  # type: ignore[assignment]

    def mutate(quota: Raw) -> None:
        quota["status"]["used"] = {key: str(amount) for key, amount in used.items()}

    writer.update(QUOTAS, a.namespace, name, mutate, a.ctx, validate=False)
