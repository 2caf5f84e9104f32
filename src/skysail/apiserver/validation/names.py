"""What names, keys, values, ports and addresses may look like.

Every check returns the complaints about a text, none when it is fine. The verdicts of good texts are remembered, as
the same few hundred names pass by again and again.

Source: k8s.io/apimachinery/pkg/util/validation and pkg/api/validate/content, v1.36.
"""

import ipaddress
import re
from collections.abc import Callable
from functools import lru_cache

Messages = tuple[str, ...]
NameCheck = Callable[[str], Messages]

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = LABEL + r"(\." + LABEL + ")*"
_LABEL_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_UNDERSCORE = _LABEL_UNDERSCORE + r"(\." + _LABEL_UNDERSCORE + ")*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_WILDCARD = r"\*\." + SUBDOMAIN
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_PERCENT = "[0-9]+%"
_HEADER = "[-A-Za-z0-9]+"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"

_label_re = re.compile(LABEL)
_subdomain_re = re.compile(SUBDOMAIN)
_subdomain_underscore_re = re.compile(_SUBDOMAIN_UNDERSCORE)
_label_1035_re = re.compile(_LABEL_1035)
_key_re = re.compile(_KEY)
_value_re = re.compile(_VALUE)
_config_key_re = re.compile(_CONFIG_KEY)
_wildcard_re = re.compile(_WILDCARD)
_http_path_re = re.compile(_HTTP_PATH)
_percent_re = re.compile(_PERCENT)
_header_re = re.compile(_HEADER)
_port_charset_re = re.compile("[-a-z0-9]+")
_letter_re = re.compile("[a-z]")
_c_identifier_re = re.compile(_C_IDENTIFIER)

_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_KEY_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)


def max_length(limit: int) -> str:
    """The complaint about a text that is too long."""
    return f"must be no more than {limit} characters"


def regex_error(words: str, pattern: str, *examples: str) -> str:
    """The complaint about a text that does not match, with examples that would."""
    if not examples:
        return f"{words} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"


def in_range(low: int, high: int) -> str:
    """The complaint about a number outside of a range."""
    return f"must be between {low} and {high}, inclusive"


@lru_cache(maxsize=4096)
def dns_subdomain(value: str) -> Messages:
    """Names of most objects: `web.example.com`."""
    errors = [max_length(253)] if len(value) > 253 else []
    if not _subdomain_re.fullmatch(value):
        errors.append(regex_error(_SUBDOMAIN_WORDS, SUBDOMAIN, "example.com"))
    return tuple(errors)


@lru_cache(maxsize=1024)
def dns_subdomain_underscore(value: str) -> Messages:
    """A DNS subdomain whose labels may hold underscores."""
    errors = [max_length(253)] if len(value) > 253 else []
    if not _subdomain_underscore_re.fullmatch(value):
        words = _SUBDOMAIN_WORDS.replace("'-' or '.'", "'_', '-' or '.'")
        errors.append(regex_error(words, _SUBDOMAIN_UNDERSCORE, "example.com"))
    return tuple(errors)


@lru_cache(maxsize=4096)
def dns_label(value: str) -> Messages:
    """Names of namespaces, containers, volumes: `web-1`."""
    errors = [max_length(63)] if len(value) > 63 else []
    if not _label_re.fullmatch(value):
        if _subdomain_re.fullmatch(value):
            errors.append("must not contain dots")
        else:
            errors.append(regex_error(_LABEL_WORDS, LABEL, "my-name", "123-abc"))
    return tuple(errors)


@lru_cache(maxsize=1024)
def dns_label_1035(value: str) -> Messages:
    """Labels that start with a letter."""
    errors = [max_length(63)] if len(value) > 63 else []
    if not _label_1035_re.fullmatch(value):
        words = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        )
        errors.append(regex_error(words, _LABEL_1035, "my-name", "abc-123"))
    return tuple(errors)


@lru_cache(maxsize=256)
def wildcard_subdomain(value: str) -> Messages:
    """`*.example.com`."""
    errors = [max_length(253)] if len(value) > 253 else []
    if not _wildcard_re.fullmatch(value):
        words = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
        )
        errors.append(regex_error(words, _WILDCARD, "*.example.com"))
    return tuple(errors)


@lru_cache(maxsize=4096)
def qualified_name(value: str) -> Messages:
    """Keys of labels, taints, finalizers: a name, or `example.com/name`."""
    prefix, slash, name = value.partition("/")
    if not slash:
        return _name_part(prefix)
    if "/" in name:
        hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        words = f"a valid label key {_KEY_WORDS}"
        return (regex_error(words, _KEY, "MyName", "my.name", "123-abc") + hint,)
    errors: list[str] = []
    if not prefix:
        errors.append("prefix part must be non-empty")
    else:
        errors.extend(f"prefix part {message}" for message in dns_subdomain(prefix))
    return (*errors, *_name_part(name))


def _name_part(name: str) -> Messages:
    errors: list[str] = []
    if not name:
        errors.append("name part must be non-empty")
    elif len(name) > 63:
        errors.append(f"name part {max_length(63)}")
    if not _key_re.fullmatch(name):
        errors.append(f"name part {regex_error(_KEY_WORDS, _KEY, 'MyName', 'my.name', '123-abc')}")
    return tuple(errors)


@lru_cache(maxsize=4096)
def label_value(value: str) -> Messages:
    """Values of labels; may be empty."""
    errors = [max_length(63)] if len(value) > 63 else []
    if not _value_re.fullmatch(value):
        words = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        errors.append(regex_error(words, _VALUE, "MyValue", "my_value", "12345"))
    return tuple(errors)


@lru_cache(maxsize=1024)
def config_key(value: str) -> Messages:
    """Keys of ConfigMaps and Secrets: a file name without directories."""
    errors = [max_length(253)] if len(value) > 253 else []
    if not _config_key_re.fullmatch(value):
        words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        errors.append(regex_error(words, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if value in (".", ".."):
        errors.append(f"must not be '{value}'")
    elif value.startswith(".."):
        errors.append("must not start with '..'")
    return tuple(errors)


def env_name(value: str) -> Messages:
    """Names of environment variables: printable ASCII without `=`."""
    errors = [] if value else ["environment variable name must be non-empty"]
    if any(not " " <= char <= "~" or char == "=" for char in value):
        errors.append(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    return tuple(errors)


@lru_cache(maxsize=512)
def port_name(value: str) -> Messages:
    """Names of container ports."""
    errors = [max_length(15)] if len(value) > 15 else []
    if not _port_charset_re.fullmatch(value):
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _letter_re.search(value):
        errors.append("must contain at least one letter (a-z)")
    if "--" in value:
        errors.append("must not contain consecutive hyphens")
    if value and (value[0] == "-" or value[-1] == "-"):
        errors.append("must not begin or end with a hyphen")
    return tuple(errors)


def port_number(value: int) -> Messages:
    """TCP and UDP ports."""
    return () if 1 <= value <= 65535 else (in_range(1, 65535),)


def path_segment(value: str) -> Messages:
    """The least a name must satisfy: it has to fit into a URL."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return path_segment_prefix(value)


def path_segment_prefix(value: str) -> Messages:
    """As `path_segment`, of a prefix that something will follow."""
    return tuple(f"may not contain '{char}'" for char in "/%" if char in value)


def c_identifier(value: str) -> Messages:
    """An identifier of the C language."""
    if _c_identifier_re.fullmatch(value):
        return ()
    words = (
        "a valid C identifier must start with alphabetic character or '_', "
        "followed by a string of alphanumeric characters or '_'"
    )
    return (regex_error(words, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName"),)


def http_header(value: str) -> Messages:
    """Names of HTTP headers."""
    if _header_re.fullmatch(value):
        return ()
    return (
        regex_error("a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"),
    )


def percent(value: str) -> Messages:
    """`25%`."""
    if _percent_re.fullmatch(value):
        return ()
    words = "a valid percent string must be a numeric string followed by an ending '%'"
    return (regex_error(words, _PERCENT, "1%", "93%"),)


def http_path(value: str) -> bool:
    """Whether a text can be the path after a domain, as in `example.com/path`."""
    return _http_path_re.fullmatch(value) is not None


def ip_address(value: str) -> Messages:
    """An IPv4 or IPv6 address, strictly: no leading zeros, no IPv4 inside of IPv6."""
    address = parse_ip(value)
    if address is None:
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    if address.version == 4 and str(address) != value and ":" not in value:
        return ("must not have leading 0s",)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return ("must not be an IPv4-mapped IPv6 address",)
    return ()


def parse_ip(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address a text means, leading zeros forgiven, or None."""
    try:
        return ipaddress.ip_address(value)
    except ValueError:
        parts = value.split(".")
        if len(parts) == 4 and all(part.isascii() and part.isdigit() and int(part) < 256 for part in parts):
            return ipaddress.IPv4Address(".".join(str(int(part)) for part in parts))
        return None


def cidr(value: str) -> Messages:
    """An address range such as `10.9.8.0/24`, strictly: no bits below the prefix."""
    wrong = ("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",)
    address, slash, length = value.partition("/")
    parsed = parse_ip(address)
    if not slash or parsed is None or not length.isdigit() or int(length) > parsed.max_prefixlen:
        return wrong
    if (parsed.version == 4 and str(parsed) != address) or str(int(length)) != length:
        return ("must not have leading 0s in IP or prefix length",)
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return ("must not have an IPv4-mapped IPv6 address",)
    if ipaddress.ip_network(f"{parsed}/{length}", strict=False).network_address != parsed:
        return ("must not have bits set beyond the prefix length",)
    return ()


def prefix_of(check: NameCheck, prefix: str) -> Messages:
    """Check a `generateName`: a trailing dash is fine, as something follows it."""
    if len(prefix) > 1 and prefix.endswith("-"):
        prefix = prefix[:-2] + "a"
    return check(prefix)
