"""Device selectors: does this device satisfy this CEL expression?

Source: k8s.io/dynamic-resource-allocation/cel, v1.36.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from skysail.api.resource import Device, DeviceAttribute
from skysail.scheduler.devices.cel.environment import (
    CelCompileError,
    CelProgram,
    CelRuntimeError,
    compile_expression,
)
from skysail.scheduler.devices.cel.values import Semver, quantity_of

_ACCEPTED: Final = frozenset({"bool", "dyn"})
_UNCONVERTIBLE: Final = {
    "INT": ("int", "unsupported type conversion from 'int' to bool"),
    "STRING": ("string", "unsupported native conversion from string to 'bool'"),
}
_KEPT: Final = 256
Variables = Mapping[str, Any]


def compile_selector(expression: str) -> CelProgram:
    """Compile a selector.

    Raises:
        CelCompileError: It does not compile, or cannot be true or false.
        CelMissing: There is no CEL library.
    """
    program = compile_expression(expression)
    if program.result_type.name not in _ACCEPTED:
        raise CelCompileError(f"must evaluate to bool or the unknown type, not {program.result_type.name}")
    return program


class Selectors:
    """Compiled selectors, and devices in the form in which expressions see them.

    Both are remembered: selectors by their text, devices by identity while the owner keeps them.
    """

    def __init__(self) -> None:
        self._programs: OrderedDict[str, CelProgram] = OrderedDict()

    def program(self, expression: str) -> CelProgram:
        """A compiled selector.

        Raises:
            CelCompileError: It does not compile, or cannot be true or false.
            CelMissing: There is no CEL library.
        """
        program = self._programs.get(expression)
        if program is None:
            program = self._programs[expression] = compile_selector(expression)
            if len(self._programs) > _KEPT:
                self._programs.popitem(last=False)
        else:
            self._programs.move_to_end(expression)
        return program


def device_variables(driver: str, device: Device) -> Variables:
    """A device as expressions see it.

    Raises:
        CelRuntimeError: An attribute has no value that can be read.
    """
    attributes: dict[str, dict[str, Any]] = {}
    for name, attribute in device.attributes.items():
        domain, identifier = _qualified(name, driver)
        attributes.setdefault(domain, {})[identifier] = _attribute(name, attribute)
    capacity: dict[str, dict[str, bytes]] = {}
    for name, amount in device.capacity.items():
        domain, identifier = _qualified(name, driver)
        capacity.setdefault(domain, {})[identifier] = quantity_of(amount.value)
    return {
        "device": {
            "driver": driver,
            "allowMultipleAllocations": bool(device.allow_multiple_allocations),
            "attributes": attributes,
            "capacity": capacity,
        }
    }


def matches(program: CelProgram, variables: Variables) -> bool:
    """Whether the device satisfies the selector.

    Raises:
        CelRuntimeError: The expression failed, or gave neither true nor false.
    """
    value = program.run(variables)
    if isinstance(value, bool):
        return value
    name, problem = _UNCONVERTIBLE["INT" if isinstance(value, int) else "STRING"]
    raise CelRuntimeError(f"CEL result of type {name} could not be converted to bool: {problem}")


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _attribute(name: str, attribute: DeviceAttribute) -> object:
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string_value is not None:
        return attribute.string_value
    if attribute.version_value is not None:
        try:
            return Semver.parse(attribute.version_value).carry()
        except ValueError as error:
            raise CelRuntimeError(f"attribute {name}: parse semantic version: {error}") from error
    raise CelRuntimeError(f"attribute {name}: unsupported attribute value")
