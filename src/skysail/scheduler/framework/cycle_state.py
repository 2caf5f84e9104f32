"""What plugins remember during one scheduling attempt.

Written by PreFilter and PreScore (and later points), only read by Filter and Score. A value that AddPod / RemovePod
change has a `clone()` method; every other value is shared between a state and its clones.

Source: k8s.io/kubernetes/pkg/scheduler/framework `CycleState`, v1.36.
"""

from typing import Generic, Protocol, TypeVar, runtime_checkable

from skysail.scheduler.cache.pod_info import PodInfo

T = TypeVar("T")


@runtime_checkable
class Clonable(Protocol):
    """A value that a what-if must be able to change without touching the original."""

    def clone(self) -> "Clonable":
        """A copy that may be changed on its own."""
        ...


class StateKey(Generic[T]):
    """The typed name of a value: `FIT = StateKey[FitState]("PreFilterNodeResourcesFit")`, made once per module."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


class CycleState:
    """One attempt's memory.

    Attributes:
        pod_info: The pod under test with everything derived from it (requests, affinity terms); what `Pod` alone
            would make every plugin compute again.
        skip_filter_plugins: Plugins whose PreFilter answered Skip.
        skip_score_plugins: Plugins whose PreScore answered Skip.
    """

    __slots__ = ("_values", "pod_info", "skip_filter_plugins", "skip_score_plugins")

    def __init__(self, pod_info: PodInfo) -> None:
        self.pod_info = pod_info
        self._values: dict[str, object] = {}
        self.skip_filter_plugins: frozenset[str] = frozenset()
        self.skip_score_plugins: frozenset[str] = frozenset()

    def write(self, key: StateKey[T], value: T) -> None:
        """Remember a value under its key."""
        self._values[key.name] = value

    def read(self, key: StateKey[T]) -> T:
        """The value written before.

        Raises:
            KeyError: Nothing was written; the message names the key.
        """
        return self._values[key.name]  # type: ignore[return-value]

    def get(self, key: StateKey[T]) -> T | None:
        """The value written before, or None."""
        return self._values.get(key.name)  # type: ignore[return-value]

    def delete(self, key: StateKey[T]) -> None:
        """Forget a value; nothing happens when there is none."""
        self._values.pop(key.name, None)

    def clone(self) -> "CycleState":
        """A state for a what-if: values with a `clone()` are copied, all others are shared."""
        copy = CycleState(self.pod_info)
        copy.skip_filter_plugins = self.skip_filter_plugins
        copy.skip_score_plugins = self.skip_score_plugins
        copy._values = {
            name: value.clone() if isinstance(value, Clonable) else value for name, value in self._values.items()
        }
        return copy

    def adopt(self, other: "CycleState") -> None:
        """Take over every value of another state; own values of the same name are lost."""
        self._values.update(other._values)

    def fork(self, pod_info: PodInfo) -> "CycleState":
        """A state for another pod of the same signature that shares every value written so far."""
        copy = CycleState(pod_info)
        copy.skip_filter_plugins = self.skip_filter_plugins
        copy.skip_score_plugins = self.skip_score_plugins
        copy._values = dict(self._values)
        return copy
