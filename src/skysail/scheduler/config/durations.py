"""Go durations: `300ms`, `1m30s`, `-1.5h`.

Source: time.ParseDuration.
"""

import re
from typing import Final

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")


def parse_duration(text: str) -> float:
    """Seconds.

    Raises:
        ValueError: The text is no duration; the message is Go's.

    >>> parse_duration("1m30s"), parse_duration("0"), parse_duration("-.5h")
    (90.0, 0.0, -1800.0)
    """
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return 0.0
    parts = _PART.findall(body)
    if not parts or "".join(number + unit for number, unit in parts) != body:
        raise ValueError(f'time: invalid duration "{text}"')
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return -seconds if text.startswith("-") else seconds


def format_duration(seconds: float) -> str:
    """As Go prints it: `1.5s`, `2m0s`, `1h0m5s`, `300ms`.

    >>> format_duration(10), format_duration(90), format_duration(0.3), format_duration(0)
    ('10s', '1m30s', '300ms', '0s')
    """
    nanos = round(seconds * 1e9)
    if nanos == 0:
        return "0s"
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if nanos < size * 1_000:
            return f"{sign}{_trimmed(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60_000_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_trimmed(rest, 1_000_000_000)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _trimmed(value: int, size: int) -> str:
    whole, part = divmod(value, size)
    digits = str(part).zfill(len(str(size)) - 1).rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)
