"""How extenders' answers are read: as Go's decoder reads them, and then checked.

Keys may come in any letter case, a `null` is an absent value, unknown keys are passed over, and only the first JSON
value of a body counts: public extenders rely on all of it. What does not have the shape of an answer is refused with a
sentence that names the extender.

Source: encoding/json as used by pkg/scheduler/extender.go `send`, v1.36.
Differs: an answer to prioritize that is wrapped into an object is refused by name; upstream's error names nobody.
Scores outside 0..10 count as they are, as upstream has it, but are told by name.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from skysail.api.meta import Struct
from skysail.api.node import Node

MAX_EXTENDER_PRIORITY = 10


class AnswerError(Exception):
    """An answer that cannot be used; the message is for people."""


class NodeItems(Struct, frozen=True):
    """A NodeList of which only the items are looked at, each as it came."""

    items: tuple[Any, ...] = ()


class FilterAnswer(Struct, frozen=True):
    """`ExtenderFilterResult`."""

    nodes: NodeItems | None = msgspec.field(default=None, name="Nodes")
    node_names: tuple[str, ...] | None = msgspec.field(default=None, name="NodeNames")
    failed_nodes: Mapping[str, str] = msgspec.field(default_factory=dict, name="FailedNodes")
    unresolvable_nodes: Mapping[str, str] = msgspec.field(default_factory=dict, name="FailedAndUnresolvableNodes")
    error: str = msgspec.field(default="", name="Error")


class HostPriority(Struct, frozen=True):
    """One node's score."""

    host: str = msgspec.field(default="", name="Host")
    score: int = msgspec.field(default=0, name="Score")


class MetaPod(Struct, frozen=True):
    """A victim by uid."""

    uid: str = msgspec.field(default="", name="UID")


class MetaVictims(Struct, frozen=True):
    """The victims on one node."""

    pods: tuple[MetaPod, ...] = msgspec.field(default=(), name="Pods")
    violations: int = msgspec.field(default=0, name="NumPDBViolations")


class PreemptionAnswer(Struct, frozen=True):
    """`ExtenderPreemptionResult`."""

    victims: Mapping[str, MetaVictims | None] = msgspec.field(default_factory=dict, name="NodeNameToMetaVictims")


class BindingAnswer(Struct, frozen=True):
    """`ExtenderBindingResult`."""

    error: str = msgspec.field(default="", name="Error")


def read_filter(callee: str, body: bytes) -> FilterAnswer:
    """The answer to filter.

    Raises:
        AnswerError: It is none, or says that something went wrong.
    """
    answer: FilterAnswer = _read(callee, body, FilterAnswer)
    if answer.error:
        raise AnswerError(answer.error)
    return answer


def read_preemption(callee: str, body: bytes) -> PreemptionAnswer:
    """The answer to preempt.

    Raises:
        AnswerError: It is none.
    """
    answer: PreemptionAnswer = _read(callee, body, PreemptionAnswer)
    return answer


def read_binding(callee: str, body: bytes) -> BindingAnswer:
    """The answer to bind.

    Raises:
        AnswerError: It is none, or says that something went wrong.
    """
    answer: BindingAnswer = _read(callee, body, BindingAnswer)
    if answer.error:
        raise AnswerError(answer.error)
    return answer


def read_priorities(callee: str, body: bytes) -> tuple[HostPriority, ...]:
    """The answer to prioritize.

    Raises:
        AnswerError: It is no list.
    """
    value = _first_value(body)
    if isinstance(value, dict):
        keys = ", ".join(sorted(value)) or "nothing"
        raise AnswerError(f'extender "{callee}" answered prioritize with an object ({keys}), a bare list is wanted')
    found: tuple[HostPriority, ...] = _converted(callee, value or [], tuple[HostPriority, ...])
    return found


def out_of_range(callee: str, scores: Iterable[HostPriority]) -> str:
    """What to say of the first score outside 0..10; empty when there is none."""
    for each in scores:
        if not 0 <= each.score <= MAX_EXTENDER_PRIORITY:
            bounds = f"between 0 and {MAX_EXTENDER_PRIORITY}"
            return f'extender "{callee}" scored node "{each.host}" {each.score}, which is not {bounds}'
    return ""


def read_node(callee: str, raw: object) -> Node:
    """A node as an extender sent it back.

    Raises:
        AnswerError: It is no node.
    """
    node: Node = _converted(callee, raw, Node)
    return node


def _read(callee: str, body: bytes, struct: type[Any]) -> Any:
    value = _first_value(body)
    return struct() if value is None else _converted(callee, value, struct)


def _converted(callee: str, value: object, wanted: Any) -> Any:
    try:
        return msgspec.convert(with_field_names(value, wanted), wanted)
    except msgspec.ValidationError as error:
        raise AnswerError(f'extender "{callee}" gave an answer that cannot be read: {error}') from error


def _first_value(body: bytes) -> object:
    """The first JSON value of a body; errors in the words of Go's decoder."""
    text = body.decode(errors="replace").lstrip(" \t\r\n")
    if not text:
        raise AnswerError("EOF")
    try:
        value: object = json.JSONDecoder().raw_decode(text)[0]
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()):
            raise AnswerError("unexpected EOF") from error
        raise AnswerError(f"invalid character '{text[error.pos]}' looking for beginning of value") from error
    return value


def with_field_names(value: object, wanted: Any) -> object:
    """A parsed value with the keys of its Structs spelled as these spell them, and without the `null`s in Structs.

    Args:
        value: As parsed.
        wanted: The type it shall become; keys of mappings stay as they are.
    """
    origin, arguments = get_origin(wanted), [each for each in get_args(wanted) if each is not type(None)]
    if isinstance(value, list) and arguments and origin is tuple:
        return [with_field_names(each, arguments[0]) for each in value]
    if not isinstance(value, dict):
        return value
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return _with_names_of(value, wanted)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: with_field_names(each, arguments[1]) for key, each in value.items()}
    structs = [each for each in arguments if isinstance(each, type) and issubclass(each, msgspec.Struct)]
    return with_field_names(value, structs[0]) if structs else value


def _with_names_of(value: Mapping[str, object], struct: type[msgspec.Struct]) -> dict[str, object]:
    exact, folded = _fields(struct)
    found: dict[str, object] = {}
    for key, each in value.items():
        name = key if key in exact else folded.get(key.casefold(), "")
        if name and each is not None:
            found[name] = with_field_names(each, exact[name])
    return found


@lru_cache(maxsize=256)
def _fields(struct: type[msgspec.Struct]) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Types by wire name, and wire names by their folded form."""
    hints = get_type_hints(struct)
    exact = {field.encode_name: hints[field.name] for field in msgspec.structs.fields(struct)}
    return exact, {name.casefold(): name for name in exact}
