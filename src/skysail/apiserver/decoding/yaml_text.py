"""YAML text to JSON values, as the server reads it: YAML 1.1 resolved as Go's library does, then JSON's rules.

So `y`, `on` and `No` are booleans, `0777` and `0o17` are octal, `1e3` is a number, `12:30` is a string, a date is a
string, keys that are numbers or booleans become strings, and a merge key (`<<`) merges.

Source: sigs.k8s.io/yaml (a fork of go-yaml v2), as Kubernetes 1.36 uses it.
"""

import re
from typing import TYPE_CHECKING

import yaml

from skysail.apiserver.decoding.json_text import MAX_DEPTH, depth_of

if TYPE_CHECKING:
    _Loader = yaml.SafeLoader
else:
    _Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlSyntaxError(ValueError):
    """Text that is no YAML, in the words the server uses."""


_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)")
_BOOLEANS = {
    word: truth
    for truth, words in ((True, ("y", "yes", "true", "on")), (False, ("n", "no", "false", "off")))
    for base in words
    for word in (base, base.capitalize(), base.upper())
}
_TAG = "tag:yaml.org,2002:"


class _GoLoader(_Loader):
    """Safe loading with go-yaml's idea of what a plain scalar means."""

    duplicates: list[str]
    strict = False

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


def _resolve(tag: str, pattern: str, first: str) -> None:
    _GoLoader.add_implicit_resolver(_TAG + tag, re.compile(rf"^(?:{pattern})$"), list(first))


_resolve("bool", "|".join(_BOOLEANS), "yYnNtTfFoO")
_resolve("int", _INTEGER.pattern, "-+0123456789")
_resolve("float", _FLOAT.pattern + r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+0123456789.")
_resolve("merge", "<<", "<")
_resolve("null", "~|null|Null|NULL|", "~nN\0")
_GoLoader.yaml_implicit_resolvers.setdefault("", []).append((_TAG + "null", re.compile("^$")))


def _construct_integer(loader: yaml.Loader, node: yaml.ScalarNode) -> int | float:
    text = str(loader.construct_scalar(node)).replace("_", "")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-").lower()
    prefixes = {"0b": 2, "0o": 8, "0x": 16}
    base = prefixes.get(digits[:2], 8 if len(digits) > 1 and digits[0] == "0" else 10)
    value = sign * int(digits[2:] if digits[:2] in prefixes else digits, base)
    return value if -(1 << 63) <= value < 1 << 63 else float(value)


def _construct_boolean(loader: yaml.Loader, node: yaml.ScalarNode) -> bool:
    return _BOOLEANS[str(loader.construct_scalar(node))]


def _construct_float(loader: yaml.Loader, node: yaml.ScalarNode) -> float | int:
    text = str(loader.construct_scalar(node)).lower()
    if text.endswith((".inf", ".nan")):
        raise YamlSyntaxError(f"error converting YAML to JSON: json: unsupported value: {text}")
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _construct_text(loader: yaml.Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


def _construct_mapping(loader: "_GoLoader", node: yaml.MappingNode) -> dict[str, object]:
    loader.flatten_mapping(node)
    found: dict[str, object] = {}
    for key_node, value_node in node.value:
        key = _key_text(loader.construct_object(key_node, deep=True))
        if key in found:
            loader.duplicates.append(f'  line {key_node.start_mark.line + 1}: key "{key}" already set in map')
        found[key] = loader.construct_object(value_node, deep=True)
    return found


def _key_text(key: object) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        return "null"
    if not isinstance(key, str | int | float):
        raise YamlSyntaxError("error converting YAML to JSON: yaml: invalid map key")
    return str(key)


_GoLoader.add_constructor(_TAG + "int", _construct_integer)
_GoLoader.add_constructor(_TAG + "bool", _construct_boolean)
_GoLoader.add_constructor(_TAG + "float", _construct_float)
_GoLoader.add_constructor(_TAG + "map", _construct_mapping)
_GoLoader.add_constructor(_TAG + "timestamp", _construct_text)

_FEW_NODES, _MANY_NODES = 400_000, 4_000_000


def _refuse_bomb(root: yaml.Node) -> None:
    """Refuse a document of which most would be repetitions: nine lists of nine aliases stand for 387 million words.

    Source: go-yaml v2, decode.go `unmarshal` and `allowedAliasRatio`.
    """
    distinct, whole = _count(root)
    repeated = whole - distinct
    over = min(max(whole - _FEW_NODES, 0) / (_MANY_NODES - _FEW_NODES), 1)
    if repeated > 100 and whole > 1000 and repeated / whole > 0.99 - 0.89 * over:
        raise YamlSyntaxError("error converting YAML to JSON: yaml: document contains excessive aliasing")


def _count(root: yaml.Node) -> tuple[int, int]:
    """How many nodes a document holds, and how many it stands for when every alias is written out."""
    sizes: dict[int, int] = {}
    waiting: list[tuple[yaml.Node, bool]] = [(root, False)]
    while waiting:
        node, entered = waiting.pop()
        children = _children(node)
        if entered:
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
        elif id(node) not in sizes:
            sizes[id(node)] = 0  # an anchor inside itself ends here; the constructor refuses it
            waiting.append((node, True))
            waiting.extend((child, False) for child in children)
    return len(sizes), sizes[id(root)]


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _place(error: yaml.MarkedYAMLError) -> str:
    """The line as go-yaml gives it: where the context begins if not on the first line; the parser's are one too low."""
    shift = 1 if isinstance(error, yaml.scanner.ScannerError) else 0
    for mark in (error.context_mark, error.problem_mark):
        if mark is not None and mark.line:
            return f"line {mark.line + shift}: "
    return ""


def parse_yaml(text: bytes) -> tuple[object, str]:
    """The value of a YAML document, and what a strict reading says of keys that came twice ("" when none did).

    Raises:
        YamlSyntaxError: It is no YAML, or holds too many aliases to be a document of good faith.
    """
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlSyntaxError("error converting YAML to JSON: yaml: invalid leading UTF-8 octet") from error
    loader = _GoLoader(decoded)
    loader.duplicates = []
    try:
        # Like go-yaml, only the first document of a stream is read.
        value: object = None
        if (root := loader.get_node() if loader.check_node() else None) is not None:
            _refuse_bomb(root)
            value = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        raise YamlSyntaxError(f"error converting YAML to JSON: yaml: {_place(error)}{error.problem}") from error
    except YamlSyntaxError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise YamlSyntaxError(f"error converting YAML to JSON: yaml: {error}") from error
    finally:
        loader.dispose()
    if depth_of(value) > MAX_DEPTH:
        raise YamlSyntaxError("error converting YAML to JSON: yaml: exceeded max depth")
    problem = ""
    if loader.duplicates:
        lines = "\n".join(loader.duplicates)
        problem = f"error converting YAML to JSON: yaml: unmarshal errors:\n{lines}"
    return value, problem
