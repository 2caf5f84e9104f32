"""The last attempts, each with all that was found out: what `/debug/attempts` and `skysail why` read.

A record holds references, not text: reasons are spelled out only when somebody asks. What every node got is not held at
all, only the place in the snapshot's history from which it is worked out again (`skysail.scheduler.replay`).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from skysail.api.core import Pod
from skysail.api.raw import Raw
from skysail.scheduler.algorithm import SearchLimit
from skysail.scheduler.framework.conversation import ExtenderCall
from skysail.scheduler.framework.diagnosis import Diagnosis
from skysail.scheduler.framework.evaluation import PreFilterOutcome
from skysail.scheduler.framework.score_cards import Scoring
from skysail.scheduler.preemption.default_preemption import PreemptionOutcome
from skysail.scheduler.telling import told_card, told_pre_filter, told_preemption

_KEPT: Final = 1_000


@dataclass(slots=True)
class Attempt:
    """One attempt to schedule a pod.

    Attributes:
        number: Its place among all attempts of this process; appears in log lines.
        pod: The pod, as the attempt saw it.
        profile: Who tried.
        tries: The how manieth attempt for this pod it was.
        at: When it began.
        result: `scheduled`, `waiting`, `binding`, `unschedulable` or `error`; what is known so far.
        node: Where to, once decided.
        message: Why not, in upstream's words.
        seconds: How long deciding took.
        evaluated: How many nodes were looked at.
        feasible: How many were found feasible.
        diagnosis: Refusals by node, when it failed for lack of a fitting node.
        total: The chosen node's weighted score; 0 when it was the only one.
        ties: How many nodes shared that score: the dice chose among them.
        extender_calls: What extenders were asked, how long each took, what went wrong.
        outcome: What PreFilter decided, its narrowing of the search included.
        skipped: The plugins whose Filter it left out.
        scoring: How the chosen node's total and the runner-up's came about; None when there was nothing to choose.
        seen: Where in the snapshot's history it looked; -1 when it did not get so far.
        limit: How far it was to look; None is everywhere.
    """

    number: int
    pod: Pod
    profile: str
    tries: int
    at: datetime
    result: str = ""
    node: str = ""
    message: str = ""
    seconds: float = 0.0
    evaluated: int = 0
    feasible: int = 0
    diagnosis: Diagnosis | None = None
    total: int = 0
    ties: int = 0
    extender_calls: Sequence[ExtenderCall] = ()
    outcome: PreFilterOutcome | None = None
    skipped: frozenset[str] = frozenset()
    scoring: Scoring | None = None
    seen: int = -1
    limit: SearchLimit | None = None

    def as_raw(self, *, nodes: bool = False) -> Raw:
        """For JSON; with `nodes`, every node's refusal and all that led to the choice."""
        raw: Raw = {
            "attempt": self.number,
            "pod": self.pod.key,
            "uid": self.pod.uid,
            "profile": self.profile,
            "tries": self.tries,
            "at": self.at.isoformat(),
            "result": self.result,
            "node": self.node,
            "message": self.message,
            "seconds": round(self.seconds, 6),
            "evaluated_nodes": self.evaluated,
            "feasible_nodes": self.feasible,
            "total": self.total,
            "ties": self.ties,
        }
        if self.extender_calls:
            raw["extenders"] = [
                {"extender": call.extender, "verb": call.verb, "seconds": round(call.seconds, 6), "error": call.error}
                for call in self.extender_calls
            ]
        if self.diagnosis is not None:
            raw["unschedulable_plugins"] = sorted(self.diagnosis.unschedulable_plugins)
            raw["pending_plugins"] = sorted(self.diagnosis.pending_plugins)
        return raw | self._found() if nodes else raw

    def _found(self) -> Raw:
        found: Raw = {}
        if self.outcome is not None:
            found["prefilter"] = told_pre_filter(self.outcome, self.skipped)
        if self.scoring is not None:
            found["dice"] = self.scoring.dice
            found["skipped_score_plugins"] = sorted(self.scoring.skipped)
            found["candidates"] = [told_card(card) for card in self.scoring.cards()]
        if self.diagnosis is not None:
            refusals = {**self.diagnosis.node_statuses, **self.diagnosis.extender_statuses}
            found["nodes"] = {
                name: {"plugin": status.plugin, "code": status.code.text, "reasons": list(status.reasons)}
                for name, status in refusals.items()
            }
            if isinstance(self.diagnosis.preemption, PreemptionOutcome):
                found["preemption"] = told_preemption(self.diagnosis.preemption)
        return found


class AttemptRing:
    """The last so many attempts.

    Args:
        kept: How many.
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._ring: deque[Attempt] = deque(maxlen=kept)
        self._number = 0

    def __len__(self) -> int:
        return len(self._ring)

    def __iter__(self) -> Iterator[Attempt]:
        """Newest first."""
        return iter(list(reversed(self._ring)))

    def begin(self, pod: Pod, profile: str, tries: int, at: datetime) -> Attempt:
        """A new record, filled in as the attempt goes on."""
        self._number += 1
        attempt = Attempt(self._number, pod, profile, tries, at)
        self._ring.append(attempt)
        return attempt

    def last(self, namespace: str, name: str) -> Attempt | None:
        """The newest attempt for a pod."""
        return next((each for each in self if (each.pod.namespace, each.pod.name) == (namespace, name)), None)
