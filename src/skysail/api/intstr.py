"""Integers as Kubernetes reads them, and fields that are a number or a percentage (`maxSurge: 25%`).

>>> scaled_value("25%", 10, round_up=True), scaled_value("25%", 10, round_up=False), scaled_value(3, 10, round_up=True)
(3, 2, 3)

Source: k8s.io/apimachinery/pkg/util/intstr, v1.36.
"""

import json
import re
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def parse_int64(text: str) -> int | None:
    """A decimal integer that fits in 64 bits, with an optional sign and nothing else; None for any other text."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def scaled_value(value: int | str | None, total: int, round_up: bool) -> int:
    """The absolute number a field stands for: itself, or its percentage of `total`.

    Args:
        value: A whole number, or a text such as `30%`.
        total: What 100 % is.
        round_up: Whether a fraction counts as one more.

    Raises:
        ValueError: The text is no whole percentage, or there is no value; the message is upstream's.
    """
    if value is None:
        raise ValueError("nil value for IntOrString")
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid value for IntOrString: invalid type: string is not a percentage")
    digits = value[:-1]
    percent = parse_int64(digits)
    if percent is None:
        why = "value out of range" if _INTEGER.fullmatch(digits) else "invalid syntax"
        quoted, text = json.dumps(value, ensure_ascii=False), json.dumps(digits, ensure_ascii=False)
        raise ValueError(f"invalid value for IntOrString: invalid value {quoted}: strconv.Atoi: parsing {text}: {why}")
    product = percent * total
    return -(-product // 100) if round_up else product // 100
