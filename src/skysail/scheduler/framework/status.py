"""Outcomes as values: what a plugin answers, and what the framework makes of it.

"Does not fit" is never an exception. A `Status` is immutable and hashable, so that thousands of nodes refused for the
same reason share one.

Source: k8s.io/kube-scheduler/framework `Code`, `Status`, v1.36.
"""

from dataclasses import dataclass, replace
from enum import IntEnum


class Code(IntEnum):
    """The seven answers, with upstream's numbers."""

    SUCCESS = 0
    ERROR = 1
    """Something broke; the pod is tried again without waiting for an event."""
    UNSCHEDULABLE = 2
    """Does not fit now; removing pods (preemption) may help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """Does not fit, and removing pods would not change that."""
    WAIT = 4
    """Permit only: hold the pod until somebody allows or rejects it."""
    SKIP = 5
    """PreFilter, PreScore: leave my Filter, Score out. Bind: somebody else should bind this pod."""
    PENDING = 6
    """A place was found, but something outside must happen first; the pod comes back without backoff."""

    @property
    def text(self) -> str:
        """Upstream's spelling, as `UnschedulableAndUnresolvable`."""
        return _TEXTS[self]

    @classmethod
    def from_text(cls, text: str) -> "Code":
        """The code of upstream's spelling.

        Raises:
            KeyError: No such code.
        """
        return _BY_TEXT[text]


_TEXTS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_BY_TEXT = {text: code for code, text in _TEXTS.items()}
_REJECTIONS = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


@dataclass(frozen=True, slots=True)
class Status:
    """One answer.

    Attributes:
        code: What it means.
        reasons: Why, in upstream's words where upstream has words; empty on success.
        plugin: Who said so; set by the framework when it is not a success.
    """

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @classmethod
    def error(cls, *reasons: str, plugin: str = "") -> "Status":
        """Something broke."""
        return cls(Code.ERROR, reasons, plugin)

    @classmethod
    def unschedulable(cls, *reasons: str, plugin: str = "") -> "Status":
        """Does not fit; preemption may help."""
        return cls(Code.UNSCHEDULABLE, reasons, plugin)

    @classmethod
    def unresolvable(cls, *reasons: str, plugin: str = "") -> "Status":
        """Does not fit, and preemption cannot help."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons, plugin)

    @property
    def is_success(self) -> bool:
        """Whether all is well."""
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """Whether the plugin does not want to take part."""
        return self.code is Code.SKIP

    @property
    def is_wait(self) -> bool:
        """Whether Permit holds the pod."""
        return self.code is Code.WAIT

    @property
    def is_error(self) -> bool:
        """Whether something broke."""
        return self.code is Code.ERROR

    @property
    def is_rejected(self) -> bool:
        """Whether this is a refusal (of either kind, or Pending), not an error."""
        return self.code in _REJECTIONS

    @property
    def message(self) -> str:
        """The reasons in one line."""
        return ", ".join(self.reasons)

    def with_plugin(self, plugin: str) -> "Status":
        """The same answer, signed."""
        return self if self.plugin == plugin else replace(self, plugin=plugin)


SUCCESS = Status()
"""All is well. Compare with `is_success`, not by identity: plugins may build their own."""
SKIP = Status(Code.SKIP)
"""This plugin has nothing to do for this pod."""
