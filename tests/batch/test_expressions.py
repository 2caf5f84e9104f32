"""Expressions: what they mean for each kind of point, and what is refused."""

import numpy as np
import pytest

from skysail.api.errors import ConfigError
from skysail.batch.expressions import (
    Expression,
    collect,
    compute,
    compute_rows,
    decide,
    decide_rows,
    default_expression,
    evaluated,
    parse,
)
from skysail.batch.model.outcome import Outcome, OutcomeCode
from skysail.batch.points import OPERATORS, POINTS

PLUGINS = {"a", "b", "c"}
NO = Outcome(OutcomeCode.QUOTA_EXCEEDED, "full")


def read(text, point="jobValid"):
    return parse(text, POINTS[point], PLUGINS)


@pytest.mark.parametrize(
    ("text", "answers", "expected"),
    [
        ("and(a, b)", {"a": True, "b": True}, True),
        ("and(a, b)", {"a": True, "b": False}, False),
        ("and(a, b)", {"a": None, "b": True}, True),
        ("and(a, b)", {"a": None, "b": None}, None),
        ("or(a, b)", {"a": False, "b": True}, True),
        ("or(a, b)", {"a": False, "b": False}, False),
        ("or(a, b)", {"a": None, "b": False}, False),
        ("not(a)", {"a": False}, True),
        ("not(a)", {"a": None}, None),
        ("firstNotPass(a, b, c)", {"a": True, "b": False, "c": True}, False),
        ("firstNotPass(a, b, c)", {"a": True, "b": None, "c": True}, True),
        ("and(a, or(b, not(c)))", {"a": True, "b": False, "c": False}, True),
    ],
)
def test_yes_no_operators_decide_and_leave_abstentions_out(text, answers, expected):
    assert decide(read(text), answers.get) is expected


def test_a_refusal_keeps_its_reason():
    assert decide(read("and(a, b)"), {"a": True, "b": NO}.get) is NO
    assert decide(read("or(a, b)"), {"a": NO, "b": False}.get) is NO


def test_nobody_is_asked_whose_answer_cannot_matter():
    asked = []
    decide(read("and(a, b, c)"), lambda name: asked.append(name) or name == "a")
    assert asked == ["a", "b"]


@pytest.mark.parametrize(("operator", "expected"), [("sum", 9), ("min", 2), ("max", 7)])
def test_number_operators_compute(operator, expected):
    expression = read(f"{operator}(a, b, c)", "nodeOrder")
    assert compute(expression, {"a": 7, "b": 2}.get) == expected
    assert compute(expression, {}.get) is None


@pytest.mark.parametrize(("operator", "expected"), [("sum", [4, 6]), ("min", [1, 2]), ("max", [3, 4])])
def test_number_operators_compute_for_many_rows(operator, expected):
    arrays = {"a": np.array([1, 2]), "b": np.array([3, 4])}
    assert compute_rows(read(f"{operator}(a, b, c)", "nodeOrder"), arrays.get).tolist() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("and(a, b)", [True, False]), ("or(a, b)", [True, True]), ("not(b)", [False, True]), ("a", [True, True])],
)
def test_yes_no_operators_decide_for_many_rows(text, expected):
    masks = {"a": np.array([True, True]), "b": np.array([True, False])}
    assert decide_rows(read(text, "predicate"), masks.get).tolist() == expected


@pytest.mark.parametrize(
    ("operator", "expected"),
    [("intersect", [2, 3]), ("union", [1, 2, 3, 4]), ("joint", [1, 2, 3, 4])],
)
def test_set_operators_keep_an_order(operator, expected):
    lists = {"a": [1, 2, 3], "b": [3, 4, 2, 4]}
    expression = read(f"{operator}(a, b, c)", "reclaimable")
    assert collect(expression, lists.get) == expected
    assert collect(expression, {}.get) is None


def test_order_points_take_only_the_first_that_tells_apart():
    assert read("firstNotPass(a, firstNotPass(b, c))", "jobOrder").names == ("a", "b", "c")


@pytest.mark.parametrize("point", POINTS.values(), ids=lambda point: point.name)
def test_operators_of_other_kinds_are_refused(point):
    for kind, operators in OPERATORS.items():
        for operator in set(operators) - set(OPERATORS[point.kind]):
            with pytest.raises(ConfigError, match=f"position 1 .*no operator of a point of kind {point.kind.value}"):
                parse(f"{operator}(a)", point, PLUGINS)
        assert kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("and()", "position 1 of 'and\\(\\)': 'and' needs arguments"),
        ("and", "'and' needs arguments"),
        ("and(a, z)", "position 8 .*plugin 'z' is unknown or not enabled; enabled are: a, b, c"),
        ("and(a", "wanted, not 'the end'"),
        ("and(a b)", "wanted, not 'b'"),
        ("and(a,)", "a plugin or an operator is wanted, not '\\)'"),
        ("a b", "position 3 .*unexpected 'b'"),
        ("", "a plugin or an operator is wanted, not 'the end'"),
        ("and(a, §)", "position 8 .*'§' cannot be read"),
        ("not(a, b)", "'not' takes one argument, not 2"),
    ],
)
def test_faults_name_point_and_position(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        read(text)
    assert caught.value.path == "expressions.jobValid"


def test_the_default_is_the_points_operator_over_the_configured_plugins():
    assert str(default_expression(POINTS["reclaimable"], ["a", "b"])) == "intersect(a, b)"
    assert default_expression(POINTS["reclaimable"], []) is None


def test_an_evaluated_expression_shows_each_answer():
    expression = Expression("and", (Expression("a"), Expression("b"), Expression("c")))
    assert evaluated(expression, {"a": True, "b": NO}.get) == "and(a=yes, b=QuotaExceeded, c=abstains)"
