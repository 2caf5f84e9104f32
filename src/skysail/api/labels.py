"""Label selectors: `app=web,tier in (front,back),!canary`, and the LabelSelector objects inside specs.

>>> Selector.parse("tier in (back, front), app=web").matches({"app": "web", "tier": "back"})
True
>>> str(Selector.parse("tier in (front,back) , app = web"))
'app=web,tier in (back,front)'

A selector is immutable, hashable and shared: parsing the same text, or an equal LabelSelector, gives the same object.

Source: k8s.io/apimachinery/pkg/labels and pkg/apis/meta/v1 `LabelSelectorAsSelector`, v1.36;
    the messages are upstream's.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from skysail.api.intstr import parse_int64
from skysail.api.labelparser import OPERATORS, parse_terms
from skysail.api.labelsyntax import label_key_errors, label_value_errors
from skysail.api.meta import LabelSelector, LabelSelectorRequirement

_EQUALITY: Final = frozenset({"=", "==", "in"})
_INEQUALITY: Final = frozenset({"!=", "notin"})
_COMPARISON: Final = frozenset({"gt", "lt"})
_SYMBOLS: Final = {"gt": ">", "lt": "<"}
_OBJECT_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


class SelectorError(ValueError):
    """A selector that breaks the rules.

    Attributes:
        errors: Each complaint by itself; the message joins them as upstream does.
    """

    def __init__(self, errors: Iterable[str]) -> None:
        self.errors = tuple(dict.fromkeys(errors))
        super().__init__(self.errors[0] if len(self.errors) == 1 else f"[{', '.join(self.errors)}]")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One test on one label. Make it with `requirement`, which checks.

    Attributes:
        key: The label.
        operator: One of `=`, `==`, `!=`, `in`, `notin`, `exists`, `!`, `gt`, `lt`.
        values: What it is compared with; empty for `exists` and `!`.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels pass the test. A missing label passes `!=`, `notin` and `!`."""
        value = labels.get(self.key)
        operator = self.operator
        if operator in _EQUALITY:
            return value is not None and value in self.values
        if operator in _INEQUALITY:
            return value is None or value not in self.values
        if operator == "exists":
            return value is not None
        if operator == "!":
            return value is None
        number, limit = parse_int64(value or ""), parse_int64(self.values[0])
        if number is None or limit is None:
            return False
        return number > limit if operator == "gt" else number < limit

    def __str__(self) -> str:
        if self.operator == "exists":
            return self.key
        if self.operator == "!":
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in ("in", "notin"):
            return f"{self.key} {self.operator} ({values})"
        return f"{self.key}{_SYMBOLS.get(self.operator, self.operator)}{values}"


def requirement(
    key: str, operator: str, values: tuple[str, ...] = (), *, path: str = "", unset: bool = False
) -> Requirement:
    """A checked requirement.

    Args:
        key: The label.
        operator: As in `Requirement.operator`.
        values: Exactly one for `=`, `==`, `!=`, `gt`, `lt`; at least one for `in`, `notin`; none for the others.
        path: Where it stands, for messages (`nodeSelectorTerms[0].matchExpressions[1]`).
        unset: Whether messages show a missing list of values as `null` instead of `[]`.

    Raises:
        SelectorError: With everything that is wrong.
    """
    prefix = f"{path}." if path else ""
    errors = []
    if wrong := label_key_errors(key):
        errors.append(f"{prefix}key: {invalid(key, '; '.join(wrong))}")
    errors += _value_errors(operator, values, prefix, None if unset and not values else values)
    for index, value in enumerate(values):
        if wrong := label_value_errors(value):
            errors.append(f"{prefix}values[{index}][{key}]: {invalid(value, '; '.join(wrong))}")
    if errors:
        raise SelectorError(errors)
    return Requirement(key, operator, values)


def _value_errors(operator: str, values: tuple[str, ...], prefix: str, shown: tuple[str, ...] | None) -> list[str]:
    """What is wrong with the operator, or with the number of values, or with a number among them."""
    errors, where = [], f"{prefix}values"
    if operator in ("in", "notin"):
        if not values:
            errors.append(f"{where}: {invalid(shown, _EMPTY_SET)}")
    elif operator in ("=", "==", "!="):
        if len(values) != 1:
            errors.append(f"{where}: {invalid(shown, 'exact-match compatibility requires one single value')}")
    elif operator in ("exists", "!"):
        if values:
            errors.append(f"{where}: {invalid(shown, 'values set must be empty for exists and does not exist')}")
    elif operator in _COMPARISON:
        if len(values) != 1:
            errors.append(f"{where}: {invalid(shown, _ONE_VALUE)}")
        for index, value in enumerate(values):
            if parse_int64(value) is None:
                errors.append(f"{where}[{index}]: {invalid(value, _NOT_AN_INTEGER)}")
    else:
        supported = ", ".join(f'"{each}"' for each in (*OPERATORS, "exists", "!"))
        errors.append(f"{prefix}operator: Unsupported value: {quoted(operator)}: supported values: {supported}")
    return errors


_EMPTY_SET: Final = "for 'in', 'notin' operators, values set can't be empty"
_ONE_VALUE: Final = "for 'Gt', 'Lt' operators, exactly one value is required"
_NOT_AN_INTEGER: Final = "for 'Gt', 'Lt' operators, the value must be an integer"


def quoted(value: object) -> str:
    """A value as the API server shows it in messages: compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def invalid(value: object, why: str) -> str:
    """`Invalid value: "x": why`."""
    return f"Invalid value: {quoted(value)}: {why}"


class Selector:
    """Requirements that must all hold, ordered by key.

    Attributes:
        requirements: The tests.
        selectable: False only for the selector that matches nothing at all (an absent LabelSelector).
    """

    __slots__ = ("_exact", "_rest", "_text", "requirements", "selectable")

    def __init__(self, requirements: Iterable[Requirement] = (), *, selectable: bool = True) -> None:
        ordered = tuple(sorted(requirements, key=lambda each: each.key))
        self.requirements: Final = ordered
        self.selectable: Final = selectable
        self._exact = tuple(
            (each.key, each.values[0]) for each in ordered if each.operator in _EQUALITY and len(each.values) == 1
        )
        self._rest = tuple(each for each in ordered if each.operator not in _EQUALITY or len(each.values) != 1)
        self._text = ",".join(map(str, ordered))

    @staticmethod
    def parse(text: str) -> "Selector":
        """Read the text form.

        Raises:
            ValueError: The text breaks the grammar, or a key or value is no valid label.
        """
        return _parse(text)

    @staticmethod
    def from_label_selector(selector: LabelSelector | None) -> "Selector":
        """The selector an object holds: None matches nothing, an empty one everything.

        Raises:
            ValueError: An operator is unknown, or a key or value is no valid label.
        """
        if selector is None:
            return NOTHING
        if not selector.match_labels and not selector.match_expressions:
            return EVERYTHING
        return _from_parts(tuple(sorted(selector.match_labels.items())), selector.match_expressions)

    @staticmethod
    def from_set(labels: Mapping[str, str]) -> "Selector":
        """The selector for exactly these labels, unchecked; no labels match everything."""
        return Selector(Requirement(key, "=", (value,)) for key, value in labels.items()) if labels else EVERYTHING

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels satisfy every requirement."""
        for key, value in self._exact:
            if labels.get(key) != value:
                return False
        for each in self._rest:
            if not each.matches(labels):
                return False
        return self.selectable

    @property
    def empty(self) -> bool:
        """Whether it lets every object through."""
        return self.selectable and not self.requirements

    def exact_value(self, key: str) -> str | None:
        """The one value this selector demands of a label, if it demands one."""
        first = next((each for each in self.requirements if each.key == key), None)
        return first.values[0] if first and first.operator in _EQUALITY and len(first.values) == 1 else None

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Selector({self._text!r})" if self.selectable else "NOTHING"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.requirements == other.requirements and self.selectable == other.selectable

    def __hash__(self) -> int:
        return hash((self.requirements, self.selectable))


EVERYTHING: Final = Selector()
"""Matches every set of labels."""
NOTHING: Final = Selector(selectable=False)
"""Matches no set of labels."""


def format_label_selector(selector: LabelSelector | None) -> str:
    """The selector for people: `<none>` when it says nothing, `<error>` when it cannot be read."""
    try:
        return str(Selector.from_label_selector(selector)) or "<none>"
    except ValueError:
        return "<error>"


@lru_cache(maxsize=4_096)
def _parse(text: str) -> Selector:
    terms = parse_terms(text)
    requirements = []
    for key, operator, values in terms:
        try:
            requirements.append(requirement(key, operator, values))
        except SelectorError as error:
            raise ValueError(f"unable to parse requirement: {error}") from None
    return Selector(requirements) if requirements else EVERYTHING


@lru_cache(maxsize=16_384)
def _from_parts(labels: tuple[tuple[str, str], ...], expressions: tuple[LabelSelectorRequirement, ...]) -> Selector:
    requirements = [requirement(key, "=", (value,)) for key, value in labels]
    for expression in expressions:
        operator = _OBJECT_OPERATORS.get(expression.operator)
        if operator is None:
            raise ValueError(f"{quoted(expression.operator)} is not a valid label selector operator")
        requirements.append(requirement(expression.key, operator, expression.values, unset=True))
    return Selector(requirements)
