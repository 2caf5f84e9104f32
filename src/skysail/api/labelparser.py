"""The grammar of label selectors, as text: from `a=b, c in (d,e), !f` to (key, operator, values) triples.

    selector    = [ requirement { "," requirement } ]
    requirement = key | "!" key | key ("=" | "==" | "!=" | "<" | ">") [ value ] | key ("in" | "notin") "(" values ")"
    values      = [ value ] { "," [ value ] }

`in` and `notin` are words like any other except where an operator stands, so `in in (in)` is a selector.

Source: k8s.io/apimachinery/pkg/labels `Parser`, v1.36; the messages are upstream's.
"""

import json
import re
from typing import Final

from skysail.api.labelsyntax import label_key_errors

OPERATORS: Final = ("in", "notin", "=", "==", "!=", "gt", "lt")
"""The operators with values, in the order messages list them."""

Term = tuple[str, str, tuple[str, ...]]

_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+)")
_BINARY: Final = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}
_SPECIAL: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">", ""})


def parse_terms(text: str) -> list[Term]:
    """Split a selector's text into its terms, in the order written.

    Raises:
        ValueError: The text breaks the grammar, or a key is no valid label key.
    """
    return _Parser(text).selector()


class _Parser:
    """Recursive descent over a list of tokens; the empty token stands for the end."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), ""]
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def selector(self) -> list[Term]:
        terms: list[Term] = []
        if not self._peek():
            return terms
        if not self._starts_requirement():
            raise ValueError(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                terms.append(self._requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            token = self._next()
            if not token:
                return terms
            if token != ",":
                raise ValueError(f"found '{token}', expected: ',' or 'end of string'")
            if not self._starts_requirement():
                raise ValueError(f"found '{self._peek()}', expected: identifier after ','")

    def _starts_requirement(self) -> bool:
        return self._peek() == "!" or self._peek() not in _SPECIAL

    def _requirement(self) -> Term:
        token = self._next()
        absent = token == "!"
        key = self._next() if absent else token
        if key in _SPECIAL:
            raise ValueError(f"found '{key}', expected: identifier")
        if wrong := label_key_errors(key):
            shown = json.dumps(key, ensure_ascii=False)
            raise ValueError(f"<nil>: Invalid value: {shown}: {'; '.join(wrong)}")
        if absent or self._peek() in ("", ","):
            return key, "!" if absent else "exists", ()
        symbol = self._next()
        operator = _BINARY.get(symbol)
        if operator is None:
            raise ValueError(f"found '{symbol}', expected: {', '.join(OPERATORS)}")
        values = self._value_set() if operator in ("in", "notin") else {self._value()}
        return key, operator, tuple(sorted(values))

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        token = self._next()
        if token in _SPECIAL:
            raise ValueError(f"found '{token}', expected: identifier")
        return token

    def _value_set(self) -> set[str]:
        token = self._next()
        if token != "(":
            raise ValueError(f"found '{token}' expected: '('")
        if self._peek() == ")":
            self._next()
            return {""}
        if self._peek() != "," and self._peek() in _SPECIAL:
            raise ValueError(f"found '{self._peek()}', expected: ',', ')' or identifier")
        values = self._values()
        self._next()  # the closing parenthesis, which ended the list
        return values

    def _values(self) -> set[str]:
        values: set[str] = set()
        while True:
            token = self._next()
            if token not in _SPECIAL:
                values.add(token)
                if self._peek() == ")":
                    return values
                if self._peek() != ",":
                    raise ValueError(f"found '{self._peek()}', expected: ',' or ')'")
            elif token == ",":
                if not values or self._peek() in (",", ")"):
                    values.add("")
                if self._peek() == ")":
                    return values
            else:
                raise ValueError(f"found '{token}', expected: ',', or identifier")
