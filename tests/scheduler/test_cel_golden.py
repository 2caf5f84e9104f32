"""CEL as Kubernetes 1.36.2 recorded it: its own functions, and device selectors."""

import json
from pathlib import Path

import msgspec
import pytest

from skysail.api.resource import Device
from skysail.scheduler.devices.cel.cost import estimated_cost
from skysail.scheduler.devices.cel.environment import CelCompileError, CelRuntimeError, compile_expression
from skysail.scheduler.devices.selectors import compile_selector, device_variables, matches

FUNCTIONS = Path(__file__).parents[1] / "golden/scheduler/functions"
EXPRESSIONS = json.loads((FUNCTIONS / "cel_expression.json").read_text())
SELECTORS = json.loads((FUNCTIONS / "cel_device_selector.json").read_text())
pytest.importorskip("cel_expr_python")


def outcome(expression: str):
    try:
        program = compile_expression(expression)
    except CelCompileError:
        return "compile_error"
    try:
        value = program.run({})
    except CelRuntimeError as error:
        return {"type": program.result_type.name, "error": str(error)}
    return {"type": program.result_type.name, "value": value}


def test_functions_answer_as_recorded():
    differing = {}
    for vector in EXPRESSIONS:
        expected = vector["output"]
        if "compile_error" in expected:
            expected = "compile_error"
        elif expected["type"] == "double":
            expected = {**expected, "value": pytest.approx(float(expected["value"]), rel=1e-15)}
        found = outcome(vector["input"])
        if found != expected:
            differing[vector["input"]] = (found, expected)
    assert differing == {}


def answers(expression: str, devices):
    program = compile_selector(expression)
    for raw in devices:
        device = msgspec.convert(
            {
                "attributes": raw.get("Attributes", {}),
                "capacity": raw.get("Capacity", {}),
                "allowMultipleAllocations": raw.get("AllowMultipleAllocations"),
            },
            Device,
        )
        try:
            yield matches(program, device_variables(raw["Driver"], device))
        except CelRuntimeError as error:
            yield {"error": str(error)}


def test_selectors_match_the_recorded_devices():
    for vector in SELECTORS:
        expression, expected = vector["input"]["Expression"], vector["output"]
        if "compile_error" in expected:
            with pytest.raises(CelCompileError):
                compile_selector(expression)
            continue
        assert list(answers(expression, vector["input"]["Devices"])) == expected["matches"], expression


def test_the_worst_case_of_a_selector_costs_what_was_recorded():
    differing = {}
    for vector in SELECTORS:
        expression, expected = vector["input"]["Expression"], vector["output"].get("estimated_max_cost")
        if expected is not None and estimated_cost(compile_selector(expression).tree) != expected:
            differing[expression] = expected
    assert differing == {}
