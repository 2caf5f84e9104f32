"""From YAML or JSON to structs, naming each fault by its path.

msgspec says what is wrong but not in which element of a list, so this walks the wanted type and the given value side by
side: a field no struct has, a key given twice, a value of the wrong type are all found, each with its own path.
"""

from collections.abc import Mapping
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from skysail.api.errors import ConfigError
from skysail.api.raw import Raw
from skysail.scheduler.config.problems import Problems
from skysail.scheduler.config.strict_yaml import load_yaml
from skysail.scheduler.config.types import API_VERSION, KIND, KubeSchedulerConfiguration

T = TypeVar("T")


def decode_configuration(text: str | bytes, file: str = "") -> KubeSchedulerConfiguration:
    """Read a configuration file strictly; values are not checked yet (`validation.validate`).

    Raises:
        ConfigError: It is no YAML, another kind, or has a field or type that is wrong.
    """
    document = load_yaml(text, file)
    if not isinstance(document, dict):
        raise ConfigError(f"a mapping with kind: {KIND} is wanted", file=file)
    return from_document(document, file)


def from_document(document: Raw, file: str = "") -> KubeSchedulerConfiguration:
    """The same, from a decoded document.

    Raises:
        ConfigError: See `decode_configuration`.
    """
    for field, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(field) != wanted:
            raise ConfigError(f"{document.get(field)!r} is not supported: {wanted} is wanted", file=file, path=field)
    problems = Problems()
    config = decode_value(KubeSchedulerConfiguration, document, "", problems)
    problems.raise_if_any(file)
    assert config is not None
    return config


def decode_value(wanted: type[T], value: object, path: str, problems: Problems) -> T | None:
    """Decode one value; None and entries in `problems` when it does not fit."""
    value = _without_nulls(value)
    before = len(problems.found)
    _walk(wanted, value, path, problems)
    if len(problems.found) > before:
        return None
    return msgspec.convert(value, type=wanted, strict=True)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _walk(wanted: Any, value: object, path: str, problems: Problems) -> None:
    wanted = _without_none(wanted)
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        _walk_struct(wanted, value, path, problems)
    elif get_origin(wanted) is tuple and isinstance(value, list):
        for index, item in enumerate(value):
            _walk(get_args(wanted)[0], item, f"{path}[{index}]", problems)
    else:
        try:
            msgspec.convert(value, type=wanted, strict=True)
        except msgspec.ValidationError as error:
            problems.add(path, str(error).split(" - at ")[0].replace("`", ""))


def _walk_struct(wanted: type[msgspec.Struct], value: object, path: str, problems: Problems) -> None:
    if not isinstance(value, Mapping):
        problems.add(path, f"Expected object, got {type(value).__name__}")
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(wanted)}
    for name, item in value.items():
        below = f"{path}.{name}" if path else str(name)
        if name not in fields:
            problems.add(below, f"unknown field; accepted here: {', '.join(fields)}")
        else:
            _walk(fields[name].type, item, below, problems)


def _without_none(wanted: Any) -> Any:
    if get_origin(wanted) in (Union, UnionType):
        others = [choice for choice in get_args(wanted) if choice is not type(None)]
        if len(others) == 1:
            return others[0]
    return wanted
