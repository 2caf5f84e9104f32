"""Differences that are known and right: each with the function of kube-scheduler that makes it.

`explained.txt` holds at most five, one a line: a regular expression, ` | `, upstream's function, ` | `, a sentence.
"""

import re
from collections.abc import Iterable
from pathlib import Path

_FILE = Path(__file__).with_name("explained.txt")
_MOST = 5


def explanations() -> list[tuple[re.Pattern[str], str, str]]:
    """The file's lines."""
    rows = [line.split(" | ") for line in _FILE.read_text().splitlines() if line and not line.startswith("#")]
    if len(rows) > _MOST or any(len(row) != 3 for row in rows):
        raise ValueError(f"{_FILE}: at most {_MOST} lines of three parts")
    return [(re.compile(pattern), function, sentence) for pattern, function, sentence in rows]


def unexplained(found: Iterable[str]) -> tuple[list[str], int]:
    """The differences that no line explains, and how many were explained."""
    known = explanations()
    rest, count = [], 0
    for difference in found:
        if any(pattern.search(difference) for pattern, _, _ in known):
            count += 1
        else:
            rest.append(difference)
    return rest, count
