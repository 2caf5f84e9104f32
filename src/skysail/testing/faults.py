"""What can go wrong between a component and its server, as a list of rules that a test writes and takes back.

    faults.fail(TooManyRequests, verb="list", resource="pods", retry_after=5)     # once, unless times= says otherwise
    faults.lose_answers(verb="create")            # done, but nobody hears of it
    faults.delay(2.0, resource="leases", times=FOR_EVER)
    faults.drop_watches(resource="pods")          # open ones break off now
    faults.expire_watches()                       # open ones get an ERROR event 410
    with faults.partition(): ...                  # nothing gets through, nothing is refused
    faults.crash_at(7)                            # the component dies at its seventh request

`FaultyServer` carries them out. Faults without a component in mind go to `cluster.faults`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from random import Random
from typing import Final

from skysail.api.errors import ApiError, Expired, InternalError, ServiceUnavailable, StatusDetails, TooManyRequests
from skysail.testing.calls import Call

FOR_EVER: Final = -1
"""As `times`: until taken back."""


class Crashed(BaseException):
    """A component was killed by a test. Not an `Exception`, so that no supervisor inside the component survives it."""


class Action(Enum):
    """What a rule does to a call."""

    FAIL = auto()
    LOSE_REQUEST = auto()
    LOSE_ANSWER = auto()
    DELAY = auto()
    LOSE_EVENT = auto()
    DUPLICATE_EVENT = auto()
    CRASH_BEFORE = auto()
    CRASH_AFTER = auto()


class Ending(Enum):
    """How an open watch is ended."""

    BROKEN = auto()
    CLEAN = auto()
    EXPIRED = auto()


@dataclass(eq=False)
class Rule:
    """One fault.

    Attributes:
        action: What happens.
        matches: To which calls.
        times: How often still; `FOR_EVER` for always.
        skip: How many matching calls pass unharmed first.
        error: For FAIL: the answer.
        seconds: For DELAY.
    """

    action: Action
    matches: Callable[[Call], bool]
    times: int = 1
    skip: int = 0
    error: ApiError | None = None
    seconds: float = 0.0

    def strikes(self, call: Call) -> bool:
        """Whether this call is hit; it counts as one of the times."""
        if self.times == 0 or not self.matches(call):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times > 0:
            self.times -= 1
        return True


@dataclass(frozen=True, slots=True)
class Chaos:
    """Faults by chance, for soak tests; each is a probability per call or per watch event, 0..1.

    Attributes:
        refuse: Answered 429, 500 or 503.
        lose_request: Lost on the way there.
        lose_answer: Lost on the way back.
        drop_watch: A watch that breaks off at an event.
        expire_watch: A watch that answers 410 when it is opened.
        delay: Delayed by up to `delay_seconds`.
        delay_seconds: See there.
    """

    refuse: float = 0.0
    lose_request: float = 0.0
    lose_answer: float = 0.0
    drop_watch: float = 0.0
    expire_watch: float = 0.0
    delay: float = 0.0
    delay_seconds: float = 5.0


@dataclass(eq=False)
class OpenWatch:
    """A watch that may be ended from outside.

    Attributes:
        call: What it watches.
        interrupt: Ends it.
        ending: How it is to end.
    """

    call: Call
    interrupt: Callable[[], None]
    ending: Ending = Ending.BROKEN


@dataclass(eq=False)
class Faults:
    """The faults of one connection, or of several that share them.

    Attributes:
        rng: Decides what chaos strikes.
        chaos: Faults by chance.
        rules: Those written by the test, first come first served.
        is_partitioned: Whether nothing gets through.
        on_heal: Called when a partition ends.
        open: The watches that are open now (dictionaries, because sets have no order that repeats).
        struck: How many faults have happened.
    """

    rng: Random = field(default_factory=lambda: Random(0))
    chaos: Chaos = Chaos()
    rules: list[Rule] = field(default_factory=list)
    is_partitioned: bool = False
    on_heal: dict[Callable[[], None], None] = field(default_factory=dict)
    open: dict[OpenWatch, None] = field(default_factory=dict)
    struck: int = 0

    # --- what a test says ---

    def fail(
        self,
        error: type[ApiError] | ApiError = InternalError,
        *,
        verb: str = "",
        resource: str = "",
        name: str = "",
        times: int = 1,
        retry_after: int = 0,
    ) -> Rule:
        """Answer matching calls with an error instead of passing them on."""
        if not isinstance(error, ApiError):
            details = StatusDetails(retry_after_seconds=retry_after) if retry_after else None
            error = error("injected by a test", details=details)
        return self._add(Action.FAIL, verb, resource, name, times, error=error)

    def lose_requests(self, *, verb: str = "", resource: str = "", name: str = "", times: int = 1) -> Rule:
        """The server never sees matching calls; the component sees a broken connection."""
        return self._add(Action.LOSE_REQUEST, verb, resource, name, times)

    def lose_answers(self, *, verb: str = "", resource: str = "", name: str = "", times: int = 1) -> Rule:
        """The server does what it is asked, but the component sees a broken connection."""
        return self._add(Action.LOSE_ANSWER, verb, resource, name, times)

    def delay(self, seconds: float, *, verb: str = "", resource: str = "", name: str = "", times: int = 1) -> Rule:
        """Matching calls reach the server later."""
        return self._add(Action.DELAY, verb, resource, name, times, seconds=seconds)

    def lose_events(self, *, resource: str = "", times: int = 1) -> Rule:
        """The next events of matching watches never arrive. No real server does this; robust code survives it."""
        return self._add(Action.LOSE_EVENT, "watch", resource, "", times)

    def duplicate_events(self, *, resource: str = "", times: int = 1) -> Rule:
        """The next events of matching watches arrive twice."""
        return self._add(Action.DUPLICATE_EVENT, "watch", resource, "", times)

    def crash_at(self, request: int, *, after: bool = False, verb: str = "", resource: str = "") -> Rule:
        """The component dies at its `request`-th matching call from now (1 is the next).

        Args:
            request: Which one.
            after: Whether the server still does what that call asks.
            verb: Count only these.
            resource: Count only these.
        """
        action = Action.CRASH_AFTER if after else Action.CRASH_BEFORE
        rule = self._add(action, verb, resource, "", 1)
        rule.skip = request - 1
        return rule

    def strike_when(self, action: Action, matches: Callable[[Call], bool], times: int = FOR_EVER) -> Rule:
        """A rule of one's own."""
        rule = Rule(action, matches, times)
        self.rules.append(rule)
        return rule

    def take_back(self, rule: Rule) -> None:
        """Remove a rule."""
        if rule in self.rules:
            self.rules.remove(rule)

    def drop_watches(self, *, resource: str = "") -> int:
        """Break open watches off; how many."""
        return self._end(Ending.BROKEN, resource)

    def end_watches(self, *, resource: str = "") -> int:
        """End open watches as a server does at their time-out; how many."""
        return self._end(Ending.CLEAN, resource)

    def expire_watches(self, *, resource: str = "") -> int:
        """End open watches with an ERROR event 410; how many."""
        return self._end(Ending.EXPIRED, resource)

    @contextmanager
    def partition(self) -> Iterator[None]:
        """While this lasts nothing gets through in either direction, and nothing is refused either."""
        self.start_partition()
        try:
            yield
        finally:
            self.heal()

    def start_partition(self) -> None:
        """From now on nothing gets through, until `heal`."""
        self.is_partitioned = True

    def heal(self) -> None:
        """End a partition; what waited goes on."""
        self.is_partitioned = False
        for wake in tuple(self.on_heal):
            wake()

    def clear(self) -> None:
        """Take everything back: rules, chaos and partition."""
        self.rules.clear()
        self.chaos = Chaos()
        self.heal()

    # --- what the server asks ---

    def strike(self, call: Call, *actions: Action) -> Rule | None:
        """The first of these faults that hits this call, if any."""
        for rule in self.rules:
            if rule.action in actions and rule.strikes(call):
                self.struck += 1
                return rule
        return None

    def by_chance(self, probability: float) -> bool:
        """Throw the dice."""
        if probability <= 0 or self.rng.random() >= probability:
            return False
        self.struck += 1
        return True

    def random_refusal(self) -> ApiError:
        """One of the errors a busy server gives."""
        kind = self.rng.choice((TooManyRequests, InternalError, ServiceUnavailable))
        seconds = self.rng.choice((0, 0, 1))
        return kind("injected by chance", details=StatusDetails(retry_after_seconds=seconds))

    def _add(
        self,
        action: Action,
        verb: str,
        resource: str,
        name: str,
        times: int,
        *,
        error: ApiError | None = None,
        seconds: float = 0.0,
    ) -> Rule:
        def matches(call: Call) -> bool:
            return (
                (not verb or call.verb == verb)
                and (not resource or call.resource == resource)
                and (not name or call.name == name)
            )

        rule = Rule(action, matches, times, error=error, seconds=seconds)
        self.rules.append(rule)
        return rule

    def _end(self, ending: Ending, resource: str) -> int:
        chosen = [each for each in self.open if not resource or each.call.resource == resource]
        for each in chosen:
            each.ending = ending
            each.interrupt()
        self.struck += len(chosen)
        return len(chosen)


EXPIRED_EVENT: Final = Expired("too old resource version: injected by a test")
"""What an expired watch is told."""
