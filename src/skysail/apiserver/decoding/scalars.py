"""Scalars with a spelling of their own: times, quantities, bytes. Read as Go reads them, written as the server writes.

Each function takes what stood in the document and gives the canonical text, or raises `ScalarError` in Go's words.

Source: Go's `time.Parse`; apimachinery/pkg/apis/meta/v1/{time,micro_time}.go, v1.36.
"""

import base64
import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from skysail.api.quantity import Quantity

SECONDS_LAYOUT = "2006-01-02T15:04:05Z07:00"
MICROS_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"

_CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.A)
_CHUNKS = (
    ("2006", re.compile(r"\d{4}", re.A)), ("-", None), ("01", re.compile(r"\d\d", re.A)), ("-", None),
    ("02", re.compile(r"\d\d", re.A)), ("T", None), ("15", re.compile(r"\d\d?", re.A)), (":", None),
    ("04", re.compile(r"\d\d", re.A)), (":", None), ("05", re.compile(r"\d\d", re.A)),
)  # fmt: skip
_NAMES = {"01": "month", "02": "day", "15": "hour", "04": "minute", "05": "second"}
_FRACTION = re.compile(r"[.,]\d+", re.A)
_MICROS = re.compile(r"\.\d{6}", re.A)
_ZONE = re.compile(r"Z|([+-])(\d\d):(\d\d)", re.A)


class ScalarError(ValueError):
    """A text that is no such scalar; the message is Go's."""


@lru_cache(maxsize=8192)
def canonical_quantity(text: str) -> str:
    """`0.1` -> `100m`, `1024Ki` -> `1Mi`.

    Raises:
        ScalarError: It is no quantity.
    """
    try:
        return str(Quantity.parse(text.strip()))
    except ValueError as error:
        raise ScalarError(str(error)) from error


@lru_cache(maxsize=8192)
def canonical_time(text: str) -> str:
    """RFC 3339 in UTC and whole seconds: `2020-01-01T02:00:00.5+02:00` -> `2020-01-01T00:00:00Z`.

    Raises:
        ScalarError: It is no RFC 3339 time.
    """
    if _CANONICAL.fullmatch(text):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            return text
    return _parse(text, SECONDS_LAYOUT, micros=False).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


@lru_cache(maxsize=8192)
def canonical_micro_time(text: str) -> str:
    """RFC 3339 in UTC with exactly six digits of fraction, which must stand there.

    Raises:
        ScalarError: It is no such time.
    """
    return _parse(text, MICROS_LAYOUT, micros=True).strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def _parse(text: str, layout: str, *, micros: bool) -> datetime:
    def fail(rest: str, chunk: str) -> ScalarError:
        return ScalarError(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{chunk}"')

    rest, fields = text, []
    for chunk, pattern in _CHUNKS:
        if pattern is None:
            if not rest.startswith(chunk):
                raise fail(rest, chunk)
            rest = rest[1:]
            continue
        match = pattern.match(rest)
        if match is None:
            raise fail(rest, chunk)
        fields.append(int(match[0]))
        rest = rest[match.end() :]
    match = (_MICROS if micros else _FRACTION).match(rest)
    if match is None and micros:
        raise fail(rest, ".000000")
    fraction = int(match[0][1:7].ljust(6, "0")) if match else 0
    rest = rest[match.end() :] if match else rest
    zone = _ZONE.match(rest)
    if zone is None:
        raise fail(rest, "Z07:00")
    if rest[zone.end() :]:
        raise ScalarError(f'parsing time "{text}": extra text: "{rest[zone.end() :]}"')
    return _moment(text, fields, fraction, zone)


def _moment(text: str, fields: list[int], fraction: int, zone: re.Match[str]) -> datetime:
    limits = {"month": (1, 12), "hour": (0, 23), "minute": (0, 59), "second": (0, 59)}
    for name, value in zip(("month", "day", "hour", "minute", "second"), fields[1:], strict=True):
        low, high = limits.get(name, (1, 31))
        if not low <= value <= high:
            raise ScalarError(f'parsing time "{text}": {name} out of range')
    offset = timedelta(0)
    if zone[1]:
        offset = timedelta(hours=int(zone[2]), minutes=int(zone[3])) * (-1 if zone[1] == "-" else 1)
    try:
        return datetime(*fields, fraction, tzinfo=timezone(offset)).astimezone(UTC)  # type: ignore[arg-type,misc]
    except (ValueError, OverflowError):
        raise ScalarError(f'parsing time "{text}": day out of range') from None


def canonical_bytes(text: str) -> str:
    """Standard base64, re-encoded; line breaks inside are ignored.

    Raises:
        ScalarError: It is none.
    """
    stripped = text.replace("\n", "").replace("\r", "")
    try:
        return base64.b64encode(base64.b64decode(stripped, validate=True)).decode()
    except ValueError:
        raise ScalarError(f"illegal base64 data at input byte {_first_bad_byte(stripped)}") from None


def _first_bad_byte(text: str) -> int:
    match = re.match(r"[A-Za-z0-9+/]*", text)
    at = match.end() if match else 0
    if at < len(text) and text[at] == "=" and at % 4 >= 2 and set(text[at:]) == {"="}:
        return at + 1 if len(text) % 4 else at
    return at if at < len(text) else at - at % 4
