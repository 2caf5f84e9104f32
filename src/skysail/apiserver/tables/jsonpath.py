r"""The part of JSONPath that printer columns, selectable fields and scale paths of CRDs use.

    .spec.replicas    .metadata.labels.app\.kubernetes\.io/name    .status.conditions[?(@.type=="Ready")].status
    .spec.ports[*].port    .spec.hosts[0]    .metadata.annotations['example.com/x']

Source: client-go/util/jsonpath, v1.36 (it also knows ranges, unions and recursive descent).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

Value = object
Step = Callable[[Iterable[Value]], Iterator[Value]]

_NAME = re.compile(r"\.((?:[^.\[\]\\]|\\.)+)")
_QUOTED = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\")\]")
_INDEX = re.compile(r"\[(-?\d+)\]")
_ALL = re.compile(r"\[\*\]|\.\*")
_FILTER = re.compile(r"\[\?\(\s*@((?:\.[\w./\\-]+)+)\s*(==|!=)\s*(?:'([^']*)'|\"([^\"]*)\"|([\w.+-]+))\s*\)\]")


class PathError(ValueError):
    """A path that cannot be read; says what stands where it stops."""


@lru_cache(maxsize=1024)
def compile_path(path: str) -> tuple[Step, ...]:
    """The steps of a path.

    Raises:
        PathError: It is none.
    """
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    if text.startswith("$"):
        text = text[1:]
    steps: list[Step] = []
    at = 0
    while at < len(text):
        for pattern, make in _STEPS:
            match = pattern.match(text, at)
            if match:
                steps.append(make(match))
                at = match.end()
                break
        else:
            raise PathError(f"unrecognized character in action: {text[at:]!r}")
    return tuple(steps)


def find(path: str, value: Value) -> list[Value]:
    """Everything a path leads to, in order; nothing when it leads nowhere.

    Raises:
        PathError: It is no path.
    """
    found: Iterable[Value] = [value]
    for step in compile_path(path):
        found = step(found)
    return list(found)


def _member(name: str) -> Step:
    def step(values: Iterable[Value]) -> Iterator[Value]:
        return (value[name] for value in values if isinstance(value, dict) and name in value)

    return step


def _index(at: int) -> Step:
    def step(values: Iterable[Value]) -> Iterator[Value]:
        return (value[at] for value in values if isinstance(value, list) and -len(value) <= at < len(value))

    return step


def _all(values: Iterable[Value]) -> Iterator[Value]:
    for value in values:
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict):
            yield from value.values()


def _filter(match: re.Match[str]) -> Step:
    names = [_unescape(name) for name in re.findall(r"\.((?:[^.\\]|\\.)+)", match[1])]
    wanted = next(text for text in (match[3], match[4], match[5]) if text is not None)

    def passes(item: Value) -> bool:
        here = item
        for name in names:
            here = here.get(name) if isinstance(here, dict) else None
        same = here is not None and (str(here).lower() if isinstance(here, bool) else str(here)) == wanted
        return same == (match[2] == "==")

    def step(values: Iterable[Value]) -> Iterator[Value]:
        return (item for value in values if isinstance(value, list) for item in value if passes(item))

    return step


def _unescape(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


_STEPS: Sequence[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]]] = (
    (_ALL, lambda _: _all),
    (_NAME, lambda match: _member(_unescape(match[1]))),
    (_QUOTED, lambda match: _member(match[1] if match[1] is not None else match[2])),
    (_INDEX, lambda match: _index(int(match[1]))),
    (_FILTER, _filter),
)
