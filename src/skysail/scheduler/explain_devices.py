"""Device allocations of a decision as data, in the form of the recorded ones."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from skysail.api.raw import Raw
from skysail.api.resource import AllocationResult, DeviceRequestAllocationResult, ResourceClaim
from skysail.scheduler.algorithm import Attempt
from skysail.scheduler.framework.containment import PluginFailed
from skysail.scheduler.framework.status import SUCCESS, Status
from skysail.scheduler.plugins.dynamic_resources import DynamicResources
from skysail.scheduler.plugins.dynamic_resources_state import STATE


def device_decisions(attempt: Attempt) -> Raw:
    """What every feasible node's devices would be."""
    plugin = attempt.framework.plugins.get(DynamicResources.name)
    if not isinstance(plugin, DynamicResources):
        return {}
    decision: Raw = {
        "allocation": {}, "allocation_node_selector": {}, "allocation_config": {}, "extended_resource_requests": {}
    }  # fmt: skip
    for name in sorted(attempt.table.names[int(row)] for row in attempt.feasible_rows()):
        found = plugin.found(attempt.state, name)
        if found is None:
            continue
        by_name: dict[str, AllocationResult] = {}
        for place, result in found.results.items():
            by_name.setdefault(found.claims[place].name, result)
        _put(decision["allocation"], name, {each: _devices(result) for each, result in by_name.items()})
        selectors = {each: _plain(result.node_selector) for each, result in by_name.items()}
        _put(decision["allocation_node_selector"], name, selectors)
        configured = {each: _plain(result.devices.config) for each, result in by_name.items() if result.devices.config}
        _put(decision["allocation_config"], name, configured)
        _put(decision["extended_resource_requests"], name, [_plain(each) for each in found.mappings])
    return {key: value for key, value in decision.items() if value}


def _put(entries: Raw, name: str, value: Any) -> None:
    if value:
        entries[name] = value


def _plain(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def _devices(result: AllocationResult) -> list[Raw]:
    return [_device(each) for each in result.devices.results]


def _device(result: DeviceRequestAllocationResult) -> Raw:
    found: Raw = {"request": result.request, "driver": result.driver, "pool": result.pool, "device": result.device}
    more = {
        "admin_access": result.admin_access, "share_id": result.share_id is not None,
        "consumed_capacity": dict(result.consumed_capacity), "tolerations": _plain(result.tolerations),
        "binding_conditions": list(result.binding_conditions),
        "binding_failure_conditions": list(result.binding_failure_conditions),
    }  # fmt: skip
    return found | {key: value for key, value in more.items() if value}


def device_changes(attempt: Attempt) -> Raw:
    """Claims that PostFilter let go, and deleted."""
    devices = attempt.state.get(STATE)
    if devices is None:
        return {}
    found = {"deallocated_claims": _names(devices.deallocated), "deleted_claims": _names(devices.deleted)}
    return {key: names for key, names in found.items() if names}


def _names(claims: Iterable[ResourceClaim]) -> list[str]:
    return [claim.name for claim in claims]


def statuses_by_node(attempt: Attempt) -> dict[str, Status]:
    """The first refusal or error of every node, asked one by one: for attempts that an error ended."""
    table, found = attempt.table, {}
    names = attempt.outcome.result.node_names
    for name, row in sorted(table.rows.items()):
        if names is None or name in names:
            found[name] = _status_of(attempt, row)
    return found


def _status_of(attempt: Attempt, row: int) -> Status:
    index = np.array([row], dtype=np.intp)
    for step in attempt.framework.filters:
        if step.name in attempt.state.skip_filter_plugins:
            continue
        try:
            codes = step.ask(attempt.state, attempt.pod_info.pod, attempt.table, index)
        except PluginFailed as failure:
            return failure.status()
        if codes.statuses and codes.codes[0]:
            return codes.statuses[int(codes.codes[0]) - 1]
    return SUCCESS
