"""How the answers of several plugins become one: `and(gang, firstNotPass(quota, priority))`.

    expr := plugin-name | op(expr, ...)

Nested as deep as one likes. A plugin that abstains is left out; when all abstain the point's neutral answer holds.
Which operators a point takes, and what is neutral there, stands in `points`.

>>> from skysail.batch.points import POINTS
>>> parse("and(gang, or(quota, priority))", POINTS["jobValid"], {"gang", "quota", "priority"}).names
('gang', 'quota', 'priority')
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from skysail.api.errors import ConfigError
from skysail.batch.model.outcome import Outcome
from skysail.batch.points import OPERATORS, Point

Verdict: TypeAlias = bool | Outcome
"""Yes, no, or no with the reason."""
RowMask: TypeAlias = npt.NDArray[np.bool_]
RowScores: TypeAlias = npt.NDArray[np.int64]
H = TypeVar("H", bound=Hashable)

_TOKEN: Final = re.compile(r"\s*(?:([A-Za-z][A-Za-z0-9_./-]*)|([(),]))")


@dataclass(frozen=True, slots=True)
class Expression:
    """A plugin's name, or an operator over expressions.

    Attributes:
        word: The plugin, or the operator.
        arguments: Empty for a plugin.
        position: Where the word stands in the text, from 1.
    """

    word: str
    arguments: "tuple[Expression, ...]" = ()
    position: int = field(default=1, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The plugins named, in order, each once."""
        return tuple(dict.fromkeys(self._names()))

    def _names(self) -> Iterator[str]:
        if not self.arguments:
            yield self.word
        for argument in self.arguments:
            yield from argument._names()

    def __str__(self) -> str:
        return f"{self.word}({', '.join(map(str, self.arguments))})" if self.arguments else self.word


def default_expression(point: Point, plugins: Iterable[str]) -> Expression | None:
    """The point's default operator over plugins in configured order; None when there are none."""
    names = tuple(Expression(name) for name in plugins)
    return Expression(point.default, names) if names else None


# -- reading -------------------------------------------------------------------------------------------------------


def parse(text: str, point: Point, plugins: Collection[str]) -> Expression:
    """Read an expression for a point.

    Args:
        text: As configured.
        point: Decides which operators there are.
        plugins: Those that are enabled.

    Raises:
        ConfigError: It cannot be read, an operator is not one of this point, a plugin is unknown or disabled, or an
            argument list is empty; names the point and the position.
    """
    return _Reader(text, point, plugins).read()


class _Reader:
    def __init__(self, text: str, point: Point, plugins: Collection[str]) -> None:
        self._text, self._point, self._plugins = text, point, plugins
        self._at = 0

    def read(self) -> Expression:
        found = self._expression()
        if self._text[self._at :].strip():
            raise self._error(f"unexpected {self._text[self._at :].strip()!r}", self._position())
        return found

    def _expression(self) -> Expression:
        position = self._position()
        word = self._next()
        if word is None or word in "(),":
            raise self._error(f"a plugin or an operator is wanted, not {word or 'the end'!r}", position)
        if self._peek() != "(":
            if word not in self._plugins:
                raise self._error(self._unknown(word), position)
            return Expression(word, (), position)
        if word not in OPERATORS[self._point.kind]:
            allowed = ", ".join(OPERATORS[self._point.kind])
            raise self._error(
                f"{word!r} is no operator of a point of kind {self._point.kind.value}; those are: {allowed}", position
            )
        return Expression(word, self._arguments(word, position), position)

    def _arguments(self, operator: str, position: int) -> tuple[Expression, ...]:
        self._next()
        if self._peek() == ")":
            raise self._error(f"{operator!r} needs arguments", position)
        found = [self._expression()]
        while (sign := self._next()) == ",":
            found.append(self._expression())
        if sign != ")":
            raise self._error(f"')' or ',' is wanted, not {sign or 'the end'!r}", self._position())
        if operator == "not" and len(found) != 1:
            raise self._error(f"'not' takes one argument, not {len(found)}", position)
        return tuple(found)

    def _unknown(self, word: str) -> str:
        if word in OPERATORS[self._point.kind]:
            return f"{word!r} needs arguments"
        enabled = ", ".join(sorted(self._plugins)) or "none"
        return f"plugin {word!r} is unknown or not enabled; enabled are: {enabled}"

    def _peek(self) -> str | None:
        found = _TOKEN.match(self._text, self._at)
        return (found.group(1) or found.group(2)) if found else None

    def _next(self) -> str | None:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            if self._text[self._at :].strip():
                raise self._error(f"{self._text[self._at :].strip()[0]!r} cannot be read", self._position())
            return None
        self._at = found.end()
        return found.group(1) or found.group(2)

    def _position(self) -> int:
        rest = self._text[self._at :]
        return self._at + len(rest) - len(rest.lstrip()) + 1

    def _error(self, message: str, position: int) -> ConfigError:
        return ConfigError(
            f"at position {position} of {self._text!r}: {message}", path=f"expressions.{self._point.name}"
        )


# -- evaluating ----------------------------------------------------------------------------------------------------


def passes(verdict: Verdict | None) -> bool:
    """Whether it is a yes."""
    return verdict is True or (not isinstance(verdict, Outcome) and bool(verdict))


def decide(expression: Expression, ask: Callable[[str], Verdict | None]) -> Verdict | None:
    """Combine yes/no answers: plugins are asked in order and only as long as their answer can matter.

    Returns:
        The deciding answer itself, so that an Outcome keeps its reason; None when all abstain.
    """
    if not expression.arguments:
        return ask(expression.word)
    if expression.word == "not":
        answer = decide(expression.arguments[0], ask)
        return None if answer is None else not passes(answer)
    stops_at = expression.word == "or"
    last: Verdict | None = None
    for argument in expression.arguments:
        answer = decide(argument, ask)
        if answer is None:
            continue
        if passes(answer) is stops_at:
            return answer
        last = answer if last is None or expression.word != "or" else last
    return last


def decide_rows(expression: Expression, ask: Callable[[str], RowMask | None]) -> RowMask | None:
    """The same for many rows at once."""
    if not expression.arguments:
        return ask(expression.word)
    masks = [mask for mask in (decide_rows(each, ask) for each in expression.arguments) if mask is not None]
    if not masks:
        return None
    if expression.word == "not":
        return ~masks[0]
    combine = np.logical_or if expression.word == "or" else np.logical_and
    found = masks[0]
    for mask in masks[1:]:
        found = combine(found, mask)
    return found


def compute(expression: Expression, ask: Callable[[str], int | None]) -> int | None:
    """Combine numbers; None when all abstain."""
    if not expression.arguments:
        return ask(expression.word)
    numbers = [number for number in (compute(each, ask) for each in expression.arguments) if number is not None]
    return _NUMBERS[expression.word](numbers) if numbers else None


def compute_rows(expression: Expression, ask: Callable[[str], RowScores | None]) -> RowScores | None:
    """The same for many rows at once."""
    if not expression.arguments:
        return ask(expression.word)
    arrays = [array for array in (compute_rows(each, ask) for each in expression.arguments) if array is not None]
    if not arrays:
        return None
    combine = {"sum": np.add, "min": np.minimum, "max": np.maximum}[expression.word]
    found = arrays[0]
    for array in arrays[1:]:
        found = combine(found, array)
    return found


_NUMBERS: Final[dict[str, Callable[[Sequence[int]], int]]] = {"sum": sum, "min": min, "max": max}


def collect(expression: Expression, ask: Callable[[str], Sequence[H] | None]) -> list[H] | None:
    """Combine sets, kept in the order of the first list that mentions each; None when all abstain.

    `joint` promises that order (the lists one after another); `union` and `intersect` only the set.
    """
    if not expression.arguments:
        answer = ask(expression.word)
        return None if answer is None else list(dict.fromkeys(answer))
    lists = [found for found in (collect(each, ask) for each in expression.arguments) if found is not None]
    if not lists:
        return None
    if expression.word == "intersect":
        common = set(lists[0]).intersection(*lists[1:])
        return [each for each in lists[0] if each in common]
    return list(dict.fromkeys(each for found in lists for each in found))


def evaluated(expression: Expression, answers: Callable[[str], object]) -> str:
    """The expression with each plugin's answer, for people: `and(gang=yes, quota=QuotaExceeded)`."""
    if expression.arguments:
        return f"{expression.word}({', '.join(evaluated(each, answers) for each in expression.arguments)})"
    answer = answers(expression.word)
    if isinstance(answer, Outcome):
        said: object = answer.code.value
    elif isinstance(answer, bool):
        said = "yes" if answer else "no"
    else:
        said = "abstains" if answer is None else answer
    return f"{expression.word}={said}"
