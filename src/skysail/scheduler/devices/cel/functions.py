"""Kubernetes' own CEL functions, as one table: what the type checker is told, and what runs.

Every function takes and gives plain Python values; Kubernetes' own are bytes (see `values`). A function that
raises ValueError makes the expression an error with that message.

Source: k8s.io/apiserver/pkg/cel/library, github.com/google/cel-go/ext (sets, lists), v1.36.
Differs: no `authorizer`, no `sortBy`, no comprehensions over two variables; regular expressions are Python's.
"""

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from skysail.api.quantity import parse_quantity
from skysail.scheduler.devices.cel.formats import FORMATS, violations
from skysail.scheduler.devices.cel.values import (
    NO_OVERLOAD,
    CelQuantity,
    Semver,
    carried,
    kind_of_value,
    parts_of,
    same,
)

QUANTITY, SEMVER, URL, IP, CIDR, FORMAT = (
    f"kubernetes.{name}" for name in ("Quantity", "Semver", "URL", "IP", "CIDR", "NamedFormat")
)
OPAQUE: Final = frozenset({QUANTITY, SEMVER, URL, IP, CIDR, FORMAT})
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True, slots=True)
class CelFunction:
    """One overload.

    Attributes:
        name: The function.
        overload: Its id.
        member: Whether it is called as `target.name(...)`.
        parameters: Types: `string`, `int`, `bool`, `double`, `dyn`, `list`, `list(string)`, or one of Kubernetes' own.
        returns: Likewise; `optional` for `optional_type(list(string))`, `map` for `map(string, list(string))`.
        run: The function.
    """

    name: str
    overload: str
    member: bool
    parameters: tuple[str, ...]
    returns: str
    run: Callable[..., Any]


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True


def _as_integer(value: bytes) -> int:
    integer = CelQuantity.of(value).integer
    if integer is None:
        raise ValueError("cannot convert value to integer")
    return integer


def _as_float(value: bytes) -> float:
    return CelQuantity.of(value).nano / 10**9


def _is_integer(value: bytes) -> bool:
    return CelQuantity.of(value).integer is not None


def _sign(value: bytes) -> int:
    nano = CelQuantity.of(value).nano
    return (nano > 0) - (nano < 0)


def _add(value: bytes, other: bytes | int) -> bytes:
    return _plus(value, other, 1)


def _sub(value: bytes, other: bytes | int) -> bytes:
    return _plus(value, other, -1)


def _plus(value: bytes, other: bytes | int, sign: int) -> bytes:
    if isinstance(other, int):
        return CelQuantity.of(value).plus(sign * other * 10**9, 0).carry()
    added = CelQuantity.of(other)
    return CelQuantity.of(value).plus(sign * added.nano, added.scale).carry()


def _ordered(value: object) -> "int | Semver":
    return Semver.of(value) if kind_of_value(value) == "semver" else CelQuantity.of(value).nano


def _compare(value: bytes, other: bytes) -> int:
    if kind_of_value(value) != kind_of_value(other):
        raise ValueError(NO_OVERLOAD)
    one, two = _ordered(value), _ordered(other)
    return (one > two) - (one < two)  # type: ignore[operator]


def _semver(text: str, normalize: bool = False) -> bytes:
    return Semver.parse(text, normalize).carry()


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        Semver.parse(text, normalize)
    except ValueError:
        return False
    return True


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = [match[0] for match in re.finditer(pattern, text)]
    return found if most < 0 else found[:most]


def _url(text: str) -> bytes:
    parts = urlsplit(text)
    if not (parts.scheme and parts.netloc) and not text.startswith("/"):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return carried("url", text)


def _is(check: Callable[[str], object]) -> Callable[[str], bool]:
    def answer(text: str) -> bool:
        try:
            check(text)
        except ValueError:
            return False
        return True

    return answer


def _url_part(part: Callable[[Any], Any]) -> Callable[[bytes], Any]:
    return lambda value: part(urlsplit(parts_of(value, "url")[0]))


def _ip(text: str) -> bytes:
    return carried("ip", str(_address(text)))


def _address(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise ValueError(f'IP Address "{text}" parse error during conversion from string: {error}') from error
    if "%" in text or (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped):
        raise ValueError(f'IP Address "{text}" parse error during conversion from string')
    return address


def _ip_of(value: object) -> Address:
    return _address(value) if isinstance(value, str) else ipaddress.ip_address(parts_of(value, "ip")[0])


def _ip_test(test: Callable[[Address], object]) -> Callable[[bytes], bool]:
    return lambda value: bool(test(_ip_of(value)))


def _cidr(text: str) -> bytes:
    return carried("cidr", str(_network(text)))


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_interface(text if "/" in text else "")
    except ValueError as error:
        raise ValueError(f"network address parse error during conversion from string: {error}") from error


def _cidr_of(value: object) -> Network:
    return _network(value) if isinstance(value, str) else ipaddress.ip_interface(parts_of(value, "cidr")[0])


def _contains_ip(value: bytes, other: object) -> bool:
    return _ip_of(other) in _cidr_of(value).network


def _contains_cidr(value: bytes, other: object) -> bool:
    outer, inner = _cidr_of(value).network, _cidr_of(other).network
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _format(name: str) -> Callable[[], bytes]:
    return lambda: carried("format", name)


def _violations(value: bytes, text: str) -> list[str]:
    return violations(parts_of(value, "format")[0], text)


def _contains_all(items: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(any(same(one, each) for one in items) for each in other)


def _index_of(items: Sequence[Any], item: Any) -> int:
    return next((place for place, each in enumerate(items) if each == item), -1)


def _last_index_of(items: Sequence[Any], item: Any) -> int:
    return next((place for place in reversed(range(len(items))) if items[place] == item), -1)


def _extreme(pick: Callable[[Sequence[Any]], Any], name: str) -> Callable[[Sequence[Any]], Any]:
    def answer(items: Sequence[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        return pick(items)

    return answer


def _slice(items: Sequence[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(items):
        raise ValueError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _distinct(items: Sequence[Any]) -> list[Any]:
    return [item for place, item in enumerate(items) if item not in items[:place]]


def _flatten(items: Sequence[Any], depth: int = 1) -> list[Any]:
    flat: list[Any] = []
    for item in items:
        flat += _flatten(item, depth - 1) if isinstance(item, list) and depth > 0 else [item]
    return flat


def _link_local_multicast(address: Address) -> bool:
    wide = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    return address in ipaddress.ip_network(wide)


def _global_unicast(address: Address) -> bool:
    special = (address.is_unspecified, address.is_loopback, address.is_multicast, address.is_link_local)
    return not any(special) and str(address) != "255.255.255.255"


def _rows() -> "tuple[CelFunction, ...]":
    f, one = CelFunction, "string"
    rows = [
        f("quantity", "string_to_quantity", False, (one,), QUANTITY, lambda text: CelQuantity.parse(text).carry()),
        f("isQuantity", "is_quantity_string", False, (one,), "bool", _is_quantity),
        f("sign", "quantity_sign", False, (QUANTITY,), "int", _sign),
        f("asApproximateFloat", "quantity_get_float", True, (QUANTITY,), "double", _as_float),
        f("asInteger", "quantity_get_int", True, (QUANTITY,), "int", _as_integer),
        f("isInteger", "quantity_is_integer", True, (QUANTITY,), "bool", _is_integer),
        f("add", "quantity_add", True, (QUANTITY, QUANTITY), QUANTITY, _add),
        f("add", "quantity_add_int", True, (QUANTITY, "int"), QUANTITY, _add),
        f("sub", "quantity_sub", True, (QUANTITY, QUANTITY), QUANTITY, _sub),
        f("sub", "quantity_sub_int", True, (QUANTITY, "int"), QUANTITY, _sub),
        f("semver", "string_to_semver", False, (one,), SEMVER, _semver),
        f("semver", "string_bool_to_semver", False, (one, "bool"), SEMVER, _semver),
        f("isSemver", "is_semver_string", False, (one,), "bool", _is_semver),
        f("isSemver", "is_semver_string_bool", False, (one, "bool"), "bool", _is_semver),
        f("major", "semver_major", True, (SEMVER,), "int", lambda v: Semver.of(v).major),
        f("minor", "semver_minor", True, (SEMVER,), "int", lambda v: Semver.of(v).minor),
        f("patch", "semver_patch", True, (SEMVER,), "int", lambda v: Semver.of(v).patch),
        f("find", "string_find_string", True, (one, one), one, _find),
        f("findAll", "string_find_all_string", True, (one, one), "list(string)", _find_all),
        f("findAll", "string_find_all_string_int", True, (one, one, "int"), "list(string)", _find_all),
        f("url", "string_to_url", False, (one,), URL, _url),
        f("isURL", "is_url_string", False, (one,), "bool", _is(_url)),
        f("getScheme", "url_get_scheme", True, (URL,), one, _url_part(lambda u: u.scheme)),
        f("getHost", "url_get_host", True, (URL,), one, _url_part(lambda u: u.netloc.rpartition("@")[2])),
        f("getHostname", "url_get_hostname", True, (URL,), one, _url_part(lambda u: u.hostname or "")),
        f("getPort", "url_get_port", True, (URL,), one, _url_part(lambda u: str(u.port or ""))),
        f("getEscapedPath", "url_get_escaped_path", True, (URL,), one, _url_part(lambda u: u.path)),
        f("getQuery", "url_get_query", True, (URL,), "map", _url_part(lambda u: parse_qs(u.query, True))),
        f("ip", "string_to_ip", False, (one,), IP, _ip),
        f("isIP", "is_ip", False, (one,), "bool", _is(_ip)),
        f("ip.isCanonical", "ip_is_canonical", False, (one,), "bool", lambda text: str(_address(text)) == text),
        f("family", "ip_family", True, (IP,), "int", lambda v: _ip_of(v).version),
        f("isUnspecified", "ip_is_unspecified", True, (IP,), "bool", _ip_test(lambda a: a.is_unspecified)),
        f("isLoopback", "ip_is_loopback", True, (IP,), "bool", _ip_test(lambda a: a.is_loopback)),
        f("isLinkLocalMulticast", "ip_is_link_local_multicast", True, (IP,), "bool", _ip_test(_link_local_multicast)),
        f("isLinkLocalUnicast", "ip_is_link_local_unicast", True, (IP,), "bool", _ip_test(lambda a: a.is_link_local)),
        f("isGlobalUnicast", "ip_is_global_unicast", True, (IP,), "bool", _ip_test(_global_unicast)),
        f("cidr", "string_to_cidr", False, (one,), CIDR, _cidr),
        f("isCIDR", "is_cidr", False, (one,), "bool", _is(_cidr)),
        f("containsIP", "cidr_contains_ip_string", True, (CIDR, one), "bool", _contains_ip),
        f("containsIP", "cidr_contains_ip_ip", True, (CIDR, IP), "bool", _contains_ip),
        f("containsCIDR", "cidr_contains_cidr_string", True, (CIDR, one), "bool", _contains_cidr),
        f("containsCIDR", "cidr_contains_cidr", True, (CIDR, CIDR), "bool", _contains_cidr),
        f("ip", "cidr_ip", True, (CIDR,), IP, lambda v: carried("ip", str(_cidr_of(v).ip))),
        f("prefixLength", "cidr_prefix_length", True, (CIDR,), "int", lambda v: _cidr_of(v).network.prefixlen),
        f("masked", "cidr_masked", True, (CIDR,), CIDR, lambda v: carried("cidr", str(_cidr_of(v).network))),
        f("validate", "format-validate", True, (FORMAT, one), "optional", _violations),
        f("isSorted", "list_is_sorted", True, ("list",), "bool", lambda items: list(items) == sorted(items)),
        f("sum", "list_sum", True, ("list",), "dyn", sum),
        f("max", "list_max", True, ("list",), "dyn", _extreme(max, "max")),
        f("min", "list_min", True, ("list",), "dyn", _extreme(min, "min")),
        f("indexOf", "list_a_index_of_int", True, ("list", "dyn"), "int", _index_of),
        f("lastIndexOf", "list_a_last_index_of_int", True, ("list", "dyn"), "int", _last_index_of),
        f("slice", "list_slice", True, ("list", "int", "int"), "list", _slice),
        f("flatten", "list_flatten", True, ("list",), "list", _flatten),
        f("flatten", "list_flatten_int", True, ("list", "int"), "list", _flatten),
        f("distinct", "list_distinct", True, ("list",), "list", _distinct),
        f("sort", "list_sort", True, ("list",), "list", sorted),
        f("reverse", "list_reverse", True, ("list",), "list", lambda items: list(items)[::-1]),
        f("lists.range", "lists_range", False, ("int",), "list", lambda n: list(range(n))),
        f("sets.contains", "list_sets_contains_list", False, ("list", "list"), "bool", _contains_all),
        f("sets.equivalent", "list_sets_equivalent_list", False, ("list", "list"), "bool",
          lambda a, b: _contains_all(a, b) and _contains_all(b, a)),
        f("sets.intersects", "list_sets_intersects_list", False, ("list", "list"), "bool",
          lambda a, b: any(same(one, each) for one in a for each in b)),
    ]  # fmt: skip
    for kind in (QUANTITY, SEMVER):
        stem = kind.partition(".")[2].lower()
        rows += [
            f("isGreaterThan", f"{stem}_is_greater_than", True, (kind, kind), "bool", lambda a, b: _compare(a, b) > 0),
            f("isLessThan", f"{stem}_is_less_than", True, (kind, kind), "bool", lambda a, b: _compare(a, b) < 0),
            f("compareTo", f"{stem}_compare_to", True, (kind, kind), "int", _compare),
        ]
    rows += [f(f"format.{name}", f"format.{name}", False, (), FORMAT, _format(name)) for name in FORMATS]
    return tuple(rows)


FUNCTIONS: Final = _rows()
