"""CertificateSigningRequests.

Source: pkg/apis/certificates/validation/validation.go, v1.36.
Differs: of the request only the PEM wrapping is looked at, not the signature within; of a certificate likewise.
"""

import base64
import binascii
import re
from collections.abc import Collection

from skysail.api.raw import Raw
from skysail.apiserver.contract import duplicate, forbidden, invalid, not_supported, quote, required, too_long
from skysail.apiserver.validation.field import Errors
from skysail.apiserver.validation.metadata import look_again
from skysail.apiserver.validation.names import NameCheck, dns_label, dns_subdomain, path_segment

_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_LEGACY = "kubernetes.io/legacy-unknown"
_DECISIONS, _FINAL = ("Approved", "Denied"), ("Approved", "Denied", "Failed")
_SHORTEST = 600
_LONGEST_HOST, _LONGEST_SIGNER = 253, 571
_pem_re = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\s.*?-----END \1-----", re.S)


def _blocks(text: str) -> list[str]:
    """The types of the PEM blocks in a base64 text."""
    try:
        decoded = base64.b64decode(text, validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        return []
    return _pem_re.findall(decoded)


def signing_request(obj: Raw) -> Errors:
    """Check a new request."""
    return _request(obj, tolerated={})


def _request(obj: Raw, tolerated: Raw) -> Errors:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    request, usages, signer = spec.get("request") or "", spec.get("usages") or (), spec.get("signerName") or ""
    errors: Errors = []
    if _blocks(request)[:1] != ["CERTIFICATE REQUEST"]:
        errors.append(invalid("spec.request", request or None, "PEM block type must be CERTIFICATE REQUEST"))
    if not usages:
        errors.append(required("spec.usages"))
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            errors.append(not_supported(f"spec.usages[{index}]", usage, _USAGES))
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            errors.append(duplicate(f"spec.usages[{index}]", usage))
    if signer == _LEGACY:
        errors.append(invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version"))
    else:
        errors += signer_name(signer, "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, detail))
    errors += _conditions(status.get("conditions") or ())
    certificate = status.get("certificate") or ""
    return errors + (_certificate(certificate) if certificate != (tolerated.get("certificate") or "") else [])


def signer_name(name: str, path: str) -> Errors:
    """Check a name like `example.com/signer`."""
    if not name:
        return [required(path)]
    if name.count("/") != 1:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, detail)]
    host, _, rest = name.partition("/")
    errors = [too_long(path, _LONGEST_HOST)] if len(host) > _LONGEST_HOST else []
    errors += _labels(host, dns_label, path)
    if "." not in host:
        errors.append(invalid(path, host, "should be a domain with at least two segments separated by dots"))
    errors += _labels(rest, dns_subdomain, path)
    if len(name) > _LONGEST_SIGNER:
        errors.append(too_long(path, _LONGEST_SIGNER))
    return errors


def _labels(text: str, check: NameCheck, path: str) -> Errors:
    """The faults of the first label that has any."""
    for label in text.split("."):
        if check(label):
            return [invalid(path, text, f"validating label {quote(label)}: {message}") for message in check(label)]
    return []


def _conditions(items: Collection[Raw]) -> Errors:
    path = "status.conditions"
    errors: Errors = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        kind, state = item.get("type") or "", item.get("status") or ""
        allowed = ("True",) if kind in _FINAL else ("False", "True", "Unknown")
        if not kind:
            errors.append(required(f"{path}[{index}].type"))
        if state not in allowed:
            here = f"{path}[{index}].status"
            errors.append(not_supported(here, state, allowed) if state else required(here))
        other = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if other in seen:
            errors.append(invalid(path, kind, "Approved and Denied conditions are mutually exclusive"))
        if kind in seen:
            errors.append(duplicate(f"{path}[{index}].type", kind))
        seen.add(kind)
    return errors


def _certificate(text: str) -> Errors:
    path, shown = "status.certificate", "<certificate data>"
    blocks = _blocks(text)
    if text and not blocks:
        return [invalid(path, shown, "must contain at least one CERTIFICATE PEM block")]
    return [
        invalid(path, shown, f"only CERTIFICATE PEM blocks are allowed, found {quote(kind)}")
        for kind in blocks
        if kind != "CERTIFICATE"
    ][:1]


def signing_request_update(new: Raw, old: Raw) -> Errors:
    """Check a change through the main endpoint."""
    return _update(new, old, certificate=False, decisions=False)


def signing_request_status_update(new: Raw, old: Raw) -> Errors:
    """Check what a signer reports: it may add the certificate."""
    return _update(new, old, certificate=True, decisions=False)


def signing_request_approval_update(new: Raw, old: Raw) -> Errors:
    """Check a decision: it may be made, not taken back."""
    return _update(new, old, certificate=False, decisions=True)


def _update(new: Raw, old: Raw, *, certificate: bool, decisions: bool) -> Errors:
    status, before = new.get("status") or {}, old.get("status") or {}
    errors = look_again(new, path_segment) + _request(new, before)
    path = "status.conditions"
    for kind in _FINAL:
        if len(_of_type(status, kind)) < len(_of_type(before, kind)):
            errors.append(forbidden(path, f"updates may not remove a condition of type {quote(kind)}"))
    for kind in () if decisions else _DECISIONS:
        wanted, known = _of_type(status, kind), _of_type(before, kind)
        if len(wanted) > len(known):
            errors.append(forbidden(path, f"updates may not add a condition of type {quote(kind)}"))
        elif len(wanted) == len(known) and wanted != known:
            errors.append(forbidden(path, f"updates may not modify a condition of type {quote(kind)}"))
    if (status.get("certificate") or "") != (before.get("certificate") or ""):
        if not certificate:
            errors.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif before.get("certificate"):
            errors.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return errors


def _of_type(status: Raw, kind: str) -> list[Raw]:
    return [item for item in status.get("conditions") or () if item.get("type") == kind]
