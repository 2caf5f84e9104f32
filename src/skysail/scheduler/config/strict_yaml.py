"""YAML as Kubernetes reads its configuration files: one document, no key twice, no surprises.

    accepted    anchors, aliases, merge keys (`<<`); a key given in place beats a merged one; an empty document behind
    refused     a key given twice; a second document; a document that contains itself, is nested too deep, or whose
                aliases make it many times longer than it is written
    as text     dates and times of day, which YAML 1.1 would turn into something else

Source: sigs.k8s.io/yaml (its fork of goyaml.v2: resolve.go, decode.go), as vendored in v1.36.
Differs: a second document is refused, not passed over; overriding a merged key is allowed.
"""

import re
from typing import Final

import yaml

from skysail.api.errors import ConfigError

_DEEPEST: Final = 200
_MOST_NODES: Final = 1_000_000
_MOST_GROWTH: Final = 10
"""A document with aliases may hold so many nodes, or so many times the nodes that it is written with."""
_MERGE: Final = "tag:yaml.org,2002:merge"
_NUMBERS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_TIME_OF_DAY: Final = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")


def load_yaml(text: str | bytes, file: str = "") -> object:
    """Parse YAML 1.1 (so JSON, too).

    Raises:
        ConfigError: It cannot be parsed, or is refused for one of the reasons above.

    >>> load_yaml("{a: &it {b: 1}, c: {<<: *it, d: 2026-01-31}}")
    {'a': {'b': 1}, 'c': {'b': 1, 'd': '2026-01-31'}}
    """
    try:
        return _load(_Loader(text))
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"cannot be read as YAML: {' '.join(str(error).split())}", file=file) from error


def _load(loader: "_Loader") -> object:
    documents = []
    while (node := loader.get_node() if loader.check_node() else None) is not None:
        walk = _Walk()
        size = walk.size(node)
        if size > max(_MOST_NODES, _MOST_GROWTH * len(walk.sizes)):
            raise ValueError(f"its aliases make {size} values of {len(walk.sizes)}")
        documents.append(loader.construct_document(node))
    if any(document is not None for document in documents[1:]):
        raise ValueError("a single document is wanted, another one follows")
    return documents[0] if documents else None


class _Walk:
    """Visits each node once: counts, and finds keys given twice.

    Attributes:
        sizes: How many nodes each node stands for, itself and all aliases below it counted.
    """

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self._within: set[int] = set()

    def size(self, node: yaml.Node) -> int:
        """Of one node."""
        known = self.sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in self._within:
            raise yaml.MarkedYAMLError(problem="a value contains itself", problem_mark=node.start_mark)
        if len(self._within) >= _DEEPEST:
            raise yaml.MarkedYAMLError(problem="nested too deep", problem_mark=node.start_mark)
        self._within.add(id(node))
        self.sizes[id(node)] = size = 1 + sum(self.size(child) for child in _children(node))
        self._within.discard(id(node))
        return size


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if not isinstance(node, yaml.MappingNode):
        return []
    seen: set[object] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key is no scalar", problem_mark=key.start_mark)
        if key.tag != _MERGE and key.value in seen:
            raise yaml.MarkedYAMLError(problem=f"key {key.value!r} is given twice", problem_mark=key.start_mark)
        seen.add(key.value)
    return [child for pair in node.value for child in pair]


class _Loader(yaml.CSafeLoader):
    """Reads dates and times of day as the text they are."""

    def text(self, node: yaml.ScalarNode) -> str:
        return str(self.construct_scalar(node))

    def number_or_time(self, node: yaml.ScalarNode) -> object:
        if _TIME_OF_DAY.fullmatch(self.text(node)):
            return self.text(node)
        return self.construct_yaml_int(node) if node.tag == _NUMBERS[0] else self.construct_yaml_float(node)


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.text)
for _tag in _NUMBERS:
    _Loader.add_constructor(_tag, _Loader.number_or_time)
