"""Field selectors: `spec.nodeName=n1,status.phase!=Failed`.

>>> selector = FieldSelector.parse("spec.nodeName=n1,status.phase!=Failed")
>>> selector.matches({"spec.nodeName": "n1", "status.phase": "Running"}.get)
True

Source: k8s.io/apimachinery/pkg/fields, v1.36; the messages are upstream's.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

Operator = Literal["=", "!="]

_OPERATOR: Final = re.compile("!=|==|=")
_TERM_END: Final = re.compile(r"((?:\\.|[^\\,])*\\?)(?:,|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One test on one field.

    Attributes:
        path: The field, as `spec.nodeName`.
        operator: `=` or `!=`.
        value: What it is compared with.
    """

    path: str
    operator: Operator
    value: str

    def matches(self, get: Callable[[str], str | None]) -> bool:
        """Whether the field passes; a field `get` does not know counts as empty."""
        return ((get(self.path) or "") == self.value) == (self.operator == "=")

    def __str__(self) -> str:
        return f"{self.path}{self.operator}{escape_value(self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Tests that must all hold, in the order of their text."""

    requirements: tuple[FieldRequirement, ...] = ()

    @staticmethod
    def parse(text: str) -> "FieldSelector":
        """Read the text form.

        Raises:
            ValueError: A term has no operator, or a value has a wrong escape.
        """
        return _parse(text)

    def matches(self, get: Callable[[str], str | None]) -> bool:
        """Whether an object passes; `get` gives the value of a field by its path."""
        return all(each.matches(get) for each in self.requirements)

    @property
    def empty(self) -> bool:
        """Whether it lets every object through."""
        return not self.requirements

    def exact_value(self, path: str) -> str | None:
        """The one value this selector demands of a field, if it demands one."""
        return next((each.value for each in self.requirements if each.path == path and each.operator == "="), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def escape_value(value: str) -> str:
    r"""A literal value as it stands in a selector: `\`, `,` and `=` get a backslash."""
    return re.sub(r"([\\,=])", r"\\\1", value)


@lru_cache(maxsize=4_096)
def _parse(text: str) -> FieldSelector:
    requirements = []
    for term in sorted(_split(text)):
        operator = _OPERATOR.search(term)
        if operator is None:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{term}'")
        path, value = term[: operator.start()], _unescape(term[operator.end() :])
        if path or value:
            requirements.append(FieldRequirement(path, "!=" if operator.group() == "!=" else "=", value))
    return FieldSelector(tuple(requirements))


def _split(text: str) -> list[str]:
    """The terms between commas that are not escaped; empty ones are dropped."""
    return [term for term in _TERM_END.findall(text) if term]


def _unescape(value: str) -> str:
    result, escaped = [], False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise ValueError(f"invalid field selector: invalid escape sequence: \\{char}")
            result.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            result.append(char)
    if escaped:
        raise ValueError("invalid field selector: invalid escape sequence: \\")
    return "".join(result)
