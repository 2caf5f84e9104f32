"""What a label key and a label value may look like, and what is said when one does not.

Source: k8s.io/apimachinery/pkg/api/validate/content and pkg/util/validation, v1.36; the sentences are the API server's.
"""

import re
from functools import lru_cache
from typing import Final

_NAME_FORMAT: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORMAT: Final = f"({_NAME_FORMAT})?"
_DNS_LABEL_FORMAT: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORMAT: Final = rf"{_DNS_LABEL_FORMAT}(\.{_DNS_LABEL_FORMAT})*"
_NAME: Final = re.compile(_NAME_FORMAT)
_VALUE: Final = re.compile(_VALUE_FORMAT)
_SUBDOMAIN: Final = re.compile(_SUBDOMAIN_FORMAT)

_MAX_NAME: Final = 63
_MAX_SUBDOMAIN: Final = 253
_CHARACTERS: Final = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_WRONG_NAME: Final = (
    f"must {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_FORMAT}')"
)
_TOO_MANY_PARTS: Final = (
    f"a valid label key {_WRONG_NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_WRONG_VALUE: Final = (
    f"a valid label must be an empty string or {_CHARACTERS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE_FORMAT}')"
)
_WRONG_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_FORMAT}')"
)


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


@lru_cache(maxsize=8_192)
def label_key_errors(key: str) -> tuple[str, ...]:
    """Everything wrong with a label key (`[prefix/]name`); empty when it is valid."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (_TOO_MANY_PARTS,)
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors += [f"prefix part {error}" for error in subdomain_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif _length(name) > _MAX_NAME:
        errors.append(f"name part {_too_long(_MAX_NAME)}")
    if not _NAME.fullmatch(name):
        errors.append(f"name part {_WRONG_NAME}")
    return tuple(errors)


@lru_cache(maxsize=8_192)
def label_value_errors(value: str) -> tuple[str, ...]:
    """Everything wrong with a label value; empty when it is valid."""
    errors = []
    if _length(value) > _MAX_NAME:
        errors.append(_too_long(_MAX_NAME))
    if not _VALUE.fullmatch(value):
        errors.append(_WRONG_VALUE)
    return tuple(errors)


def subdomain_errors(name: str) -> tuple[str, ...]:
    """Everything wrong with a DNS subdomain (the name of most objects); empty when it is valid."""
    errors = []
    if _length(name) > _MAX_SUBDOMAIN:
        errors.append(_too_long(_MAX_SUBDOMAIN))
    if not _SUBDOMAIN.fullmatch(name):
        errors.append(_WRONG_SUBDOMAIN)
    return tuple(errors)
