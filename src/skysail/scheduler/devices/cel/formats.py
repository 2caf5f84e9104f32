"""The named formats of CEL's `format` library.

Source: k8s.io/apiserver/pkg/cel/library/format.go, v1.36.
Differs: the messages of violations are ours; whether there is one is upstream's.
"""

import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Final
from urllib.parse import urlsplit

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_DATE_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")


def _matches(pattern: re.Pattern[str], most: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= most and pattern.fullmatch(text) is not None


def _prefix(pattern: re.Pattern[str], most: int) -> Callable[[str], bool]:
    """A prefix of a generated name: its last dash stands for what is added."""
    return lambda text: _matches(pattern, most)(f"{text[:-1]}a" if text.endswith("-") and len(text) > 1 else text)


def _qualified_name(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and not _matches(_SUBDOMAIN, 253)(prefix):
        return False
    return _matches(_NAME, 63)(name)


def _uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _date_time(text: str) -> bool:
    if not _DATE_TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text.upper().replace("Z", "+00:00"))
    except ValueError:
        return False
    return True


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "dns1123Label": _matches(_LABEL, 63),
    "dns1123Subdomain": _matches(_SUBDOMAIN, 253),
    "dns1035Label": _matches(_LABEL_1035, 63),
    "dns1123LabelPrefix": _prefix(_LABEL, 63),
    "dns1123SubdomainPrefix": _prefix(_SUBDOMAIN, 253),
    "dns1035LabelPrefix": _prefix(_LABEL_1035, 63),
    "qualifiedName": _qualified_name,
    "labelValue": lambda text: not text or _matches(_NAME, 63)(text),
    "uri": _uri,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "byte": lambda text: _BASE64.fullmatch(text) is not None,
    "date": _date,
    "datetime": _date_time,
}


def violations(name: str, text: str) -> list[str]:
    """Why the text does not have the format; empty when it does."""
    return [] if FORMATS[name](text) else [f"does not match the format {name}"]
