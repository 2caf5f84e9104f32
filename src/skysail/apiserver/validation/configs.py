"""ConfigMaps, Secrets and ServiceAccounts.

Source: pkg/apis/core/validation/validation.go, v1.36.
"""

import base64
import json
from collections.abc import Iterable, Mapping

from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, forbidden, invalid, required, too_long
from skysail.apiserver.validation.field import Errors, at, immutable, same
from skysail.apiserver.validation.metadata import look_again
from skysail.apiserver.validation.names import config_key, dns_subdomain

SIZE_LIMIT = 1024 * 1024
_LOCKED = "field is immutable when `immutable` is set"
_REDACTED = "<secret contents redacted>"
_ACCOUNT = "kubernetes.io/service-account.name"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


def config_map(obj: Raw) -> Errors:
    """Check a ConfigMap."""
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    errors: Errors = []
    for key in data:
        errors += at(f"data[{key}]", config_key(key), key)
        if key in binary:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in binary:
        errors += at(f"binaryData[{key}]", config_key(key), key)
    size = sum(_size(value or "") for value in data.values())
    if size + sum(_decoded_size(value or "") for value in binary.values()) > SIZE_LIMIT:
        errors.append(too_long("", SIZE_LIMIT))
    return errors


def config_map_update(new: Raw, old: Raw) -> Errors:
    """Check a changed ConfigMap, and that a locked one did not change."""
    errors = _locked(new, old, ("data", "binaryData"))
    return errors + look_again(new, dns_subdomain) + config_map(new)


def _locked(new: Raw, old: Raw, keys: Iterable[str]) -> Errors:
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [forbidden("immutable", _LOCKED)]
    return errors + [forbidden(key, _LOCKED) for key in keys if not same(new.get(key), old.get(key))]


def secret(obj: Raw) -> Errors:
    """Check a Secret: its keys, and what its type asks for."""
    data: Mapping[str, str] = obj.get("data") or {}
    errors: Errors = []
    for key in data:
        errors += at(f"data[{key}]", config_key(key), key)
    if sum(_decoded_size(value or "") for value in data.values()) > SIZE_LIMIT:
        errors.append(too_long("data", SIZE_LIMIT))
    match obj.get("type"):
        case "kubernetes.io/service-account-token":
            if not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT):
                errors.append(required(f"metadata.annotations[{_ACCOUNT}]"))
        case "kubernetes.io/dockercfg":
            errors += _json(data, ".dockercfg")
        case "kubernetes.io/dockerconfigjson":
            errors += _json(data, ".dockerconfigjson")
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                errors += _missing("username", "password")
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                errors += _missing("ssh-privatekey")
        case "kubernetes.io/tls":
            errors += _missing(*(key for key in ("tls.crt", "tls.key") if key not in data))
    return errors


def _missing(*keys: str) -> Errors:
    return [required(f"data[{key}]") for key in keys]


def _json(data: Mapping[str, str], key: str) -> Errors:
    if key not in data:
        return _missing(key)
    fault = _json_fault(base64.b64decode(data[key] or "").decode(errors="replace"))
    return [FieldError(f"data[{key}]", "Invalid", _REDACTED, fault)] if fault else []


def _json_fault(text: str) -> str:
    """Why a text is no JSON object, nearly in Go's words."""
    if not text.strip():
        return "unexpected end of JSON input"
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text):
            return "unexpected end of JSON input"
        return f"invalid character '{text[error.pos]}' looking for beginning of value"
    if isinstance(value, dict | None):
        return ""
    kinds = {list: "array", str: "string", bool: "bool"}
    return f"json: cannot unmarshal {kinds.get(type(value), 'number')} into Go value of type map[string]interface {{}}"


def secret_update(new: Raw, old: Raw) -> Errors:
    """Check a changed Secret: its type stays, and a locked one stays altogether."""
    errors = immutable(new.get("type") or "", old.get("type") or "", "type")
    return errors + _locked(new, old, ("data",)) + look_again(new, dns_subdomain) + secret(new)


def service_account_update(new: Raw, old: Raw) -> Errors:
    """ServiceAccounts have nothing but metadata to check."""
    return look_again(new, dns_subdomain)
