"""Which children are a controller's: adopting orphans that match its selector, releasing those that no longer do.

| the child                      | matches            | does not match     |
| ------------------------------ | ------------------ | ------------------ |
| is controlled by somebody else | left alone         | left alone         |
| is controlled by us            | ours               | released           |
| is an orphan                   | adopted            | left alone         |

While its owner is being deleted nothing is adopted or released; a child that is being deleted, or lives in another
namespace, is not adopted. Before the first adoption the owner is read again from the store, not the cache: it may
be gone, or a namesake.

Source: kubernetes/pkg/controller/controller_ref_manager.go, v1.36.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from skysail.api.errors import Conflict, Invalid, NotFound
from skysail.api.kinds import Kind
from skysail.api.labels import Selector
from skysail.api.meta import ApiObject
from skysail.client.api_client import ApiClient
from skysail.client.bodies import MERGE, STRATEGIC
from skysail.controller.owners import adopt_patch, controller_reference, knows_strategic_merge, release_patch
from skysail.informer.keys import controller_of
from skysail.informer.supervisor import Failure, attempt

T = TypeVar("T", bound=ApiObject)


class ControllerRefManager(Generic[T]):
    """Claims the children of one owner. Make one for each reconcile: the check before adoption is made once.

    Args:
        client: Reads the owner, patches children.
        owner: The controlling object, as cached.
        owner_kind: Its kind.
        kind: The children's kind.
        selector: Which children it wants.
        can_adopt: Raises if nothing may be adopted; by default the owner is read again and must be the same and alive.
        finalizers: Added with an adoption, removed with a release.
    """

    def __init__(
        self,
        client: ApiClient,
        owner: ApiObject,
        owner_kind: Kind[Any],
        kind: Kind[T],
        selector: Selector,
        *,
        can_adopt: Callable[[], Awaitable[None]] | None = None,
        finalizers: Sequence[str] = (),
    ) -> None:
        self._client, self._owner, self._owner_kind = client, owner, owner_kind
        self._kind, self._selector, self._finalizers = kind, selector, finalizers
        self._can_adopt = can_adopt or self._read_owner_again
        self._may_adopt: Failure | bool | None = False
        style = STRATEGIC if knows_strategic_merge(kind) else MERGE
        self._patch_type = style

    async def claim(self, children: Iterable[T], accept: Callable[[T], bool] | None = None) -> tuple[T, ...]:
        """Reconcile the ownership of these children; those that are the owner's afterwards.

        Args:
            children: All that might be the owner's, in its namespace.
            accept: A further condition beside the selector.

        Raises:
            ApiError: Some adoption or release failed; all were tried.
        """
        claimed: list[T] = []
        errors: list[Exception] = []
        for child in children:
            outcome: Failure | bool | None = self._standing(child, accept)
            if outcome is None:
                outcome = await attempt(lambda c=child: self._settle(c))  # type: ignore[misc]
            if isinstance(outcome, Failure):
                errors.append(outcome.error)
            elif outcome:
                claimed.append(child)
        if errors:
            for other in errors[1:]:
                errors[0].add_note(f"and: {other}")
            raise errors[0]
        return tuple(claimed)

    async def claim_one(self, child: T, accept: Callable[[T], bool] | None = None) -> bool:
        """Reconcile the ownership of one child; whether it is the owner's afterwards.

        Raises:
            ApiError: The adoption or release failed.
        """
        standing = self._standing(child, accept)
        return await self._settle(child) if standing is None else standing

    def _standing(self, child: T, accept: Callable[[T], bool] | None) -> bool | None:
        """Whether the child is the owner's; None when it must be adopted or released first."""
        owner = self._owner.metadata
        matches = self._selector.matches(child.metadata.labels) and (accept is None or accept(child))
        reference = controller_of(child)
        if reference is not None:
            if reference.uid == owner.uid and not matches and owner.deletion_timestamp is None:
                return None
            return reference.uid == owner.uid and matches
        if not matches or owner.deletion_timestamp is not None or child.metadata.deletion_timestamp is not None:
            return False
        return False if owner.namespace and owner.namespace != child.metadata.namespace else None

    async def _settle(self, child: T) -> bool:
        if controller_of(child) is None:
            return await self._adopt(child)
        await self._release(child)
        return False

    async def _adopt(self, child: T) -> bool:
        await self._check_adoption()
        reference = controller_reference(self._owner, self._owner_kind)
        try:
            await self._patch(child, adopt_patch(child, self._kind, reference, self._finalizers))
        except NotFound:
            return False
        return True

    async def _release(self, child: T) -> None:
        try:
            await self._patch(child, release_patch(child, self._kind, self._owner.metadata.uid, self._finalizers))
        except (NotFound, Invalid):
            return

    async def _patch(self, child: T, patch: dict[str, Any]) -> None:
        meta = child.metadata
        await self._client.patch(self._kind, meta.name, meta.namespace, patch, patch_type=self._patch_type)

    async def _check_adoption(self) -> None:
        if self._may_adopt is False:
            outcome = await attempt(self._can_adopt)
            self._may_adopt = outcome
        if isinstance(self._may_adopt, Failure):
            raise self._may_adopt.error

    async def _read_owner_again(self) -> None:
        cached = self._owner.metadata
        fresh = (await self._client.get(self._owner_kind, cached.name, cached.namespace)).metadata
        what = f"{self._owner_kind.name} {self._owner.key}"
        if fresh.uid != cached.uid:
            raise Conflict(f"original {what} is gone: got uid {fresh.uid}, wanted {cached.uid}")
        if fresh.deletion_timestamp is not None:
            raise Conflict(f"{what} has just been deleted at {fresh.deletion_timestamp}")
