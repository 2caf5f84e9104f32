"""Environment variables of containers.

Source: pkg/apis/core/validation/validation.go ValidateEnv, ValidateEnvFrom, v1.36.
"""

from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import invalid, required
from skysail.apiserver.validation.downward import ENV_FIELDS, field_selector, resource_selector
from skysail.apiserver.validation.field import Errors, at
from skysail.apiserver.validation.names import config_key, dns_label, dns_subdomain, env_name, prefix_of
from skysail.apiserver.validation.paths import no_backsteps

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_TOO_MANY = "may not have more than one field specified at a time"


def env(variables: Sequence[Raw], path: str) -> Errors:
    """Check `env`."""
    errors: Errors = []
    for index, variable in enumerate(variables):
        here, name = f"{path}[{index}]", variable.get("name") or ""
        errors += at(f"{here}.name", env_name(name), name) if name else [required(f"{here}.name")]
        if variable.get("valueFrom") is not None:
            errors += _value_from(variable, f"{here}.valueFrom")
    return errors


def _value_from(variable: Raw, path: str) -> Errors:
    errors: Errors = []
    source = variable["valueFrom"]
    count = sum(1 for key in _SOURCES if source.get(key) is not None)
    if source.get("fieldRef") is not None:
        errors += field_selector(source["fieldRef"], ENV_FIELDS, f"{path}.fieldRef")
    if source.get("resourceFieldRef") is not None:
        errors += resource_selector(source["resourceFieldRef"], f"{path}.resourceFieldRef", in_file=False)
    for key in ("configMapKeyRef", "secretKeyRef"):
        if source.get(key) is not None:
            errors += _key(source[key], f"{path}.{key}")
    if source.get("fileKeyRef") is not None:
        errors += _file_key(source["fileKeyRef"], f"{path}.fileKeyRef")
    if count == 0:
        names = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        errors.append(invalid(path, "", f"must specify one of: {names}"))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", _TOO_MANY))
    return errors


def _key(reference: Raw, path: str) -> Errors:
    name, key = reference.get("name") or "", reference.get("key") or ""
    errors = at(f"{path}.name", dns_subdomain(name), name)
    return errors + (at(f"{path}.key", config_key(key), key) if key else [required(f"{path}.key")])


def _file_key(reference: Raw, path: str) -> Errors:
    key, volume, file = (reference.get(name) or "" for name in ("key", "volumeName", "path"))
    errors = at(f"{path}.key", env_name(key), key) if key else [required(f"{path}.key")]
    errors += at(f"{path}.volumeName", dns_label(volume), volume) if volume else [required(f"{path}.volumeName")]
    return errors + (no_backsteps(file, f"{path}.path") if file else [required(f"{path}.path")])


def env_from(sources: Sequence[Raw], path: str) -> Errors:
    """Check `envFrom`."""
    errors: Errors = []
    for index, source in enumerate(sources):
        here, prefix = f"{path}[{index}]", source.get("prefix") or ""
        if prefix:
            errors += at(f"{here}.prefix", env_name(prefix), prefix)
        kinds = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in kinds:
            name = source[key].get("name") or ""
            messages = prefix_of(dns_subdomain, name)
            errors += at(f"{here}.{key}.name", messages, name) if name else [required(f"{here}.{key}.name")]
        if not kinds:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(kinds) > 1:
            errors.append(invalid(path, "", _TOO_MANY))
    return errors
