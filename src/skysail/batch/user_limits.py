"""Limits of users and groups within a queue: accounts beside the queue's own, charged with it, all or nothing.

An account stands in the ledger like a queue of that capability and nothing else, so the one check that is the charge
serves it, too, and it equals a rebuild like the rest. It has no entitlement and no jobs of its own.
"""

from collections.abc import Iterator
from typing import Final

from skysail.batch.model.queue import Queue
from skysail.batch.model.resources import ANY
from skysail.batch.model.specs import Figures, QueueSpec, UserLimit

User = tuple[str, tuple[str, ...]]
"""A name and the groups it is in."""
NOBODY: Final[User] = ("", ())


def limits_of(queue: QueueSpec, user: User) -> Iterator[tuple[str, UserLimit]]:
    """Which limits of a queue hold for a user, each with the name of its account."""
    name, groups = user
    named = [limit for limit in queue.limits if limit.user and limit.user == name]
    for limit in named or [limit for limit in queue.limits if limit.user == "*"]:
        yield f"{queue.name} (user {name or 'unknown'})", limit
    mine = [limit for limit in queue.limits if limit.group and limit.group in groups]
    for limit in mine or [limit for limit in queue.limits if limit.group == "*"]:
        yield f"{queue.name} (group {limit.group})", limit


def accounts_of(path: tuple[Queue, ...], user: User) -> tuple[Queue, ...]:
    """The accounts that use by this user is charged to, beside the queues of a path, leaf to root."""
    found: dict[str, Queue] = {}
    for queue in path:
        for name, limit in limits_of(queue.spec, user):
            figures = {(ANY, resource): Figures(capability=amount) for resource, amount in limit.amounts.items()}
            if figures:
                found.setdefault(name, Queue(QueueSpec(name, figures=figures)))
    return tuple(found.values())
