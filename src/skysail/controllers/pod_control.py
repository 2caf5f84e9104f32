"""Making and deleting pods in the name of their owner, waiting to see them, and telling people about it.

A controller acts on a cache that is behind. So what it asked for is expected to show up, and until it has, the
controller neither makes nor deletes more (`may_act`). A creation whose answer got lost may have happened or not; then
the controller first compares its cache with the server, so that no pod is made twice for one need.

Source: pkg/controller/controller_utils.go `RealPodControl`, v1.36. Differs: kube-controller-manager takes a lost answer
for a failure, and so makes a pod too many, which it deletes again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from skysail.api.core import Pod
from skysail.api.errors import ApiError, NotFound, Unreachable
from skysail.api.kinds import PODS
from skysail.api.labels import Selector
from skysail.api.meta import ApiObject
from skysail.api.ports import Clock
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.controller.expectations import UIDTrackingExpectations
from skysail.controller.recorder import EventRecorder
from skysail.controller.slow_start import slow_start_batch
from skysail.controllers.pods import is_controlled_by

_SERVER_FAILED = 500

PodError = ApiError | Unreachable


def is_doubtful(error: PodError) -> bool:
    """Whether the server may have done what was asked although it did not say so."""
    return not isinstance(error, ApiError) or error.status.code >= _SERVER_FAILED


class PodControl:
    """Creates and deletes pods; every success and every failure becomes an Event on the owner.

    Args:
        client: Writes.
        recorder: Tells.
        clock: Measures how long is waited for what was asked for.
    """

    def __init__(self, client: ApiClient, recorder: EventRecorder, clock: Clock) -> None:
        self._client, self._recorder = client, recorder
        self._expectations: UIDTrackingExpectations[str] = UIDTrackingExpectations(clock)
        self._doubtful: set[str] = set()

    # What the cache shows

    def is_awaited(self, owner: ApiObject) -> bool:
        """Whether something that was asked for has still to show up."""
        return not self._expectations.satisfied(owner.metadata.uid)

    def saw_created(self, owner: ApiObject) -> None:
        """The cache shows a new pod of the owner."""
        self._expectations.creation_observed(owner.metadata.uid)

    def saw_deleted(self, owner: ApiObject, pod: Pod) -> None:
        """The cache shows that a pod of the owner goes, or is gone."""
        self._expectations.deletion_of_observed(owner.metadata.uid, pod.uid)

    def forget(self, owner: ApiObject) -> None:
        """The owner is gone."""
        self._expectations.forget(owner.metadata.uid)
        self._doubtful.discard(owner.metadata.uid)

    async def may_act(self, owner: ApiObject, selector: Selector, known: Callable[[], Iterable[Pod]]) -> bool:
        """Whether the cache shows everything that was done for the owner.

        Args:
            owner: Whose pods.
            selector: Which pods to ask the server for, should an answer have got lost.
            known: The owner's pods as cached; asked after the server was.
        """
        uid = owner.metadata.uid
        if not self._expectations.satisfied(uid):
            return False
        if uid not in self._doubtful:
            return True
        there = await self._client.list_all(PODS, owner.metadata.namespace, label_selector=str(selector))
        cached = {pod.uid for pod in known()}
        if any(is_controlled_by(pod, owner) and pod.uid not in cached for pod in there.items):
            return False
        self._doubtful.discard(uid)
        return True

    # What is done

    def expect(self, owner: ApiObject, *, creations: int = 0, deletions: Iterable[Pod] = ()) -> None:
        """From now on wait for so many new pods and for the end of these; failures are taken off again."""
        self._expectations.expect_deletions_of(owner.metadata.uid, [pod.uid for pod in deletions])
        self._expectations.raise_expected(owner.metadata.uid, creations=creations)

    async def create_all(self, owner: ApiObject, count: int, body: Callable[[int], Raw]) -> tuple[int, PodError | None]:
        """Make pods, slowly at first; the first failure ends it.

        Args:
            owner: Whose pods.
            count: How many; so many must be expected.
            body: The pod of a number, from 0.

        Returns:
            How many were made, and the first failure.
        """
        outcome = await slow_start_batch(count, lambda number: self._create(owner, body(number)))
        self._expectations.lower_expected(owner.metadata.uid, creations=count - outcome.successes)
        for error in outcome.errors:
            if not isinstance(error, PodError):
                raise error
            return outcome.successes, error
        return outcome.successes, None

    async def delete_all(
        self, owner: ApiObject, pods: Sequence[Pod], before: Callable[[Pod], Awaitable[None]] | None = None
    ) -> list[PodError]:
        """Delete pods, all at once; the failures.

        Args:
            owner: Whose pods.
            pods: Which.
            before: Done with each pod before.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._delete(owner, pod, before)) for pod in pods]
        return [error for task in tasks if (error := task.result()) is not None]

    async def _create(self, owner: ApiObject, body: Raw) -> None:
        try:
            pod = await self._client.create(PODS, body, owner.metadata.namespace)
        except (ApiError, Unreachable) as error:
            if isinstance(error, ApiError) and error.is_namespace_terminating:
                return  # it stays expected: nobody tries again, and no pod that is not there counts as made for long
            if is_doubtful(error):
                self._doubtful.add(owner.metadata.uid)
            self._recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {_words(error)}")
            raise
        self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {pod.name}")

    async def _delete(
        self, owner: ApiObject, pod: Pod, before: Callable[[Pod], Awaitable[None]] | None
    ) -> PodError | None:
        try:
            if before is not None:
                await before(pod)
            await self._client.delete(PODS, pod.name, pod.namespace)
        except NotFound:
            self.saw_deleted(owner, pod)
            return None
        except (ApiError, Unreachable) as error:
            self.saw_deleted(owner, pod)
            self._recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {_words(error)}")
            return error
        self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")
        return None


def _words(error: PodError) -> str:
    return error.status.message if isinstance(error, ApiError) else str(error)
