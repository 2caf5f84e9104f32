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
