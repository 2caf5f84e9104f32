"""IP addresses in Services and endpoints.

Source: pkg/apis/core/validation/validation.go ValidateEndpointIP, v1.36.
"""

from collections.abc import Collection

from skysail.apiserver.contract import invalid, required
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.names import dns_label, dns_subdomain, ip_address, parse_ip


def service_address(value: str, path: str, known: Collection[str | None] = ()) -> Errors:
    """Check an address; one that was there before is taken as it is."""
    return [] if value in known else at(path, ip_address(value), value)


def canonical_address(value: str, path: str) -> Errors:
    """Check an address in its one true spelling."""
    errors = at(path, ip_address(value), value)
    address = parse_ip(value)
    if not errors and str(address) != value:
        errors.append(invalid(path, value, f'must be in canonical form ("{address}")'))
    return errors


def special_address(value: str, path: str) -> Errors:
    """Check that an address is none of a host of its own."""
    address = parse_ip(value)
    if address is None:
        return [invalid(path, value, "must be a valid IP address")]
    errors: Errors = []
    if address.is_unspecified:
        errors.append(invalid(path, value, f"may not be unspecified ({value})"))
    if address.is_loopback:
        errors.append(invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        errors.append(invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    packed = address.packed
    if packed[:3] == b"\xe0\x00\x00" or (address.version == 6 and packed[0] == 0xFF and packed[1] & 0x0F == 2):
        errors.append(invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"))
    return errors


def domain(value: str, path: str) -> Errors:
    """Check a domain name of two labels or more."""
    if not value:
        return [required(path)]
    name = value.removesuffix(".")
    messages = dns_subdomain(name)
    if messages:
        return [invalid(path, name, ",".join(messages))]
    if "." not in name:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in name.split("."):
        if dns_label(label):
            return [invalid(path, label, ",".join(dns_label(label)))]
    return []
