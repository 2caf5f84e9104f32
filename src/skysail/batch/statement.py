"""A transaction over the session: everything a decision changes, until it is committed or taken back.

    with session.statement() as statement:
        mark = statement.checkpoint()
        refusal = statement.allocate(job, tasks, node)
        if ...: statement.rollback(mark)
        statement.commit()

A statement has exactly one end. `commit` plays the operations forward; `discard` undoes them in reverse; leaving the
block without a commit, or by an exception, discards. Checkpoints nest. After any end the ledger equals a rebuild.
"""

from collections.abc import Callable, Sequence
from types import TracebackType

from skysail.api.errors import InvariantBroken
from skysail.batch.ledger import Refusal
from skysail.batch.model.claim import Claim
from skysail.batch.model.job import Job, Task
from skysail.batch.model.slot import Slot
from skysail.batch.operations import (
    Allocate,
    AllocateQuota,
    AllocateTaskToQuota,
    Evict,
    Operation,
    Pipeline,
    Scope,
)


class Statement:
    """One transaction.

    Args:
        scope: What it works on.
        is_enough: Whether what a job keeps after a failed commit still is its minimum.
    """

    def __init__(self, scope: Scope, is_enough: Callable[[Job], bool]) -> None:
        self._scope, self._is_enough = scope, is_enough
        self._operations: list[Operation] = []
        self._ended = False
        self.failures: list[tuple[Operation, str]] = []
        """Operations whose commit failed, and why."""

    def __enter__(self) -> "Statement":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._ended:
            self.discard()

    def __len__(self) -> int:
        return len(self._operations)

    @property
    def operations(self) -> Sequence[Operation]:
        """What was done and not rolled back, in order."""
        return tuple(self._operations)

    # -- operations ------------------------------------------------------------------------------------------------

    def allocate(self, job: Job, tasks: Sequence[Task], node: str) -> Refusal | None:
        """Put equal tasks of a job on a node; the ledger may refuse, then nothing happened."""
        return self._do(Allocate(job, tuple(tasks), node))

    def pipeline(self, job: Job, tasks: Sequence[Task], node: str) -> Refusal | None:
        """Promise a node whose room is still to be freed."""
        return self._do(Pipeline(job, tuple(tasks), node))

    def evict(self, job: Job, tasks: Sequence[Task], reason: str = "reclaim") -> Refusal | None:
        """Let running tasks of a job go."""
        return self._do(Evict(job, tuple(tasks), reason))

    def allocate_quota(self, slot: Slot, node: str) -> Refusal | None:
        """Bind a slot to a node."""
        return self._do(AllocateQuota(slot, node))

    def allocate_task_to_quota(self, task: Task, slot: Slot) -> Refusal | None:
        """Put a task into a slot that has a node."""
        return self._do(AllocateTaskToQuota(task, slot))

    def _do(self, operation: Operation) -> Refusal | None:
        self._expect_open()
        refusal = operation.apply(self._scope)
        if refusal is None:
            self._operations.append(operation)
        return refusal

    # -- ends ------------------------------------------------------------------------------------------------------

    def checkpoint(self) -> int:
        """A mark to roll back to."""
        self._expect_open()
        return len(self._operations)

    def rollback(self, to: int) -> None:
        """Undo what was done since a mark, in reverse.

        Raises:
            InvariantBroken: The mark was rolled back itself.
        """
        self._expect_open()
        if to > len(self._operations):
            raise InvariantBroken(f"checkpoint {to} lies behind the {len(self._operations)} operations there are")
        undone = self._operations[to:]
        del self._operations[to:]
        _undo_all(undone, self._scope)

    def discard(self) -> None:
        """Undo everything, in reverse."""
        self.rollback(0)
        self._ended = True

    def commit(self, claim: Claim | None = None) -> bool:
        """Make it last, in order.

        An operation that fails is undone, with all that depended on it; when its job then has less than its minimum,
        all of that job in this statement is undone.

        Args:
            claim: The promise that evictions are for; needed when there are any.

        Returns:
            Whether every operation was committed; `failures` names the others.
        """
        self._expect_open()
        self._ended = True
        operations, self._operations = self._operations, []
        done: list[Operation] = []
        try:
            for operation in operations:
                self._commit_one(operation, claim, done)
        except BaseException:
            for operation in reversed(done):
                operation.uncommit(self._scope)
            try:
                _undo_all(operations, self._scope)
            finally:
                self._mend(operations)
            raise
        if self.failures:
            self._take_back(operations, done)
        return not self.failures

    def _commit_one(self, operation: Operation, claim: Claim | None, done: list[Operation]) -> None:
        if self._depends_on_failure(operation):
            self.failures.append((operation, "what it depends on failed"))
            return
        try:
            operation.commit(self._scope, claim)
        except ValueError as error:
            self.failures.append((operation, str(error)))
        else:
            done.append(operation)

    def _depends_on_failure(self, operation: Operation) -> bool:
        """Whether it needs the slot of a failed operation."""
        if not isinstance(operation, AllocateTaskToQuota):
            return False
        return any(isinstance(failed, AllocateQuota) and failed.slot is operation.slot for failed, _ in self.failures)

    def _take_back(self, operations: Sequence[Operation], done: list[Operation]) -> None:
        failed = {id(operation) for operation, _ in self.failures}
        for operation in reversed(operations):
            if id(operation) in failed:
                operation.undo(self._scope)
        short = [job for job in _jobs(operations) if not self._is_enough(job)]
        evicting = any(isinstance(operation, Evict) for operation in operations)
        for operation in reversed(done):
            if evicting or _job_of(operation) in short:
                operation.uncommit(self._scope)
                operation.undo(self._scope)
        self._mend(operations)

    def _mend(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            operation.mend(self._scope)
        self._scope.nodes.refresh()

    def _expect_open(self) -> None:
        if self._ended:
            raise InvariantBroken("this statement has ended")


def _undo_all(operations: Sequence[Operation], scope: Scope) -> None:
    """Undo in reverse; a fault in one (a plugin's handler, say) does not keep the others from being undone."""
    fault: BaseException | None = None
    for operation in reversed(operations):
        try:
            operation.undo(scope)
        except Exception as error:  # noqa: BLE001 - raised again below
            fault = fault or error
    if fault is not None:
        raise fault


def _job_of(operation: Operation) -> Job | None:
    if isinstance(operation, AllocateTaskToQuota):
        return operation.task.job
    return operation.job if isinstance(operation, (Allocate, Evict)) else None


def _jobs(operations: Sequence[Operation]) -> list[Job]:
    return list({job.key: job for job in map(_job_of, operations) if job is not None}.values())
