"""How thinking code asks the outside without waiting itself.

A conversation is a generator: it yields the calls it wants made (all of a batch at once, if the caller likes) and is
sent the replies in their order; what it returns is its result. A shell holds it over the network
(`skysail.scheduler.extenders.talking`), `skysail explain` plays the other side from a script, and code that asks
nobody is simply run to its end.

    >>> def thinking():
    ...     (reply,) = yield (Call("x", "filter", "http://x.test/filter", {}),)
    ...     return reply.status
    >>> hold(thinking(), lambda call: Reply(200))
    200
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        callee: Who is asked: the extender's `urlPrefix`.
        verb: What for: `filter`, `prioritize`, `preempt` or `bind`, whatever the configuration calls it.
        url: Where to.
        body: What to send: dictionaries and lists whose leaves may be `Pod`s and `Node`s. Whoever sends it puts the
            whole objects in their place, because a Struct knows only some fields.
        timeout_seconds: How long to wait for the reply.
    """

    callee: str
    verb: str
    url: str
    body: Mapping[str, object]
    timeout_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Attributes:
        status: The HTTP status; 0 when nothing came.
        body: The answer.
        error: Why nothing came.
        seconds: How long it took.
    """

    status: int = 0
    body: bytes = b""
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ExtenderCall:
    """What one call to an extender came to, for the record of the attempt.

    Attributes:
        extender: Its `urlPrefix`.
        verb: What it was asked.
        seconds: How long it took.
        error: What was wrong; empty when nothing was.
    """

    extender: str
    verb: str
    seconds: float
    error: str = ""


class ExtenderFailed(Exception):
    """An extender that may not be ignored failed; the message is upstream's where upstream has one."""


Conversation: TypeAlias = Generator[Sequence[Call], Sequence[Reply], T]


def hold(conversation: Conversation[T], answer: Callable[[Call], Reply]) -> T:
    """Hold a conversation to its end, each call answered at once.

    Args:
        conversation: The thinking side.
        answer: The other side.
    """
    try:
        calls = next(conversation)
        while True:
            calls = conversation.send([answer(call) for call in calls])
    except StopIteration as end:
        result: T = end.value
        return result


def alone(conversation: Conversation[T]) -> T:
    """Run a conversation where there is nobody to ask: every call fails."""
    return hold(conversation, lambda call: Reply(error=f"{call.callee} cannot be asked here"))
