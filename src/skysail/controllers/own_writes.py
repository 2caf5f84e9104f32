"""Whether a cache already shows what its own controller wrote.

For the controller whose decisions about one object depend on others it has changed: a write names only the version of
the object it changes, so a stale view of the others goes unnoticed. Until the cache has caught up, it does not decide.

Source: pkg/controller/util/consistency, v1.36, which the deployment controller there does not use.
"""

from collections.abc import Iterable

from skysail.api.meta import ApiObject
from skysail.informer.versions import version_number


class OwnWrites:
    """The newest version that was written for each owner, and for whom a write's answer got lost."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._doubtful: set[str] = set()

    def note(self, owner: ApiObject, *written: ApiObject) -> None:
        """These were written for the owner, or found to have been."""
        newest = max((version_number(each.metadata.resource_version) for each in written), default=0)
        self._newest[owner.metadata.uid] = max(newest, self._newest.get(owner.metadata.uid, 0))

    def doubt(self, owner: ApiObject) -> None:
        """Something may have been written for the owner; nobody said."""
        self._doubtful.add(owner.metadata.uid)

    def is_doubtful(self, owner: ApiObject) -> bool:
        """Whether to ask the server what it has of the owner's, and to say so with `resolve`."""
        return owner.metadata.uid in self._doubtful

    def resolve(self, owner: ApiObject, there: Iterable[ApiObject]) -> None:
        """The server says that it has these of the owner's."""
        self.note(owner, *there)
        self._doubtful.discard(owner.metadata.uid)

    def are_visible(self, owner: ApiObject, cached_version: str) -> bool:
        """Whether a cache of that version shows all that was written for the owner."""
        newest = self._newest.get(owner.metadata.uid, 0)
        if newest > version_number(cached_version):
            return False
        self._newest.pop(owner.metadata.uid, None)
        return True

    def forget(self, owner: ApiObject) -> None:
        """The owner is gone."""
        self._newest.pop(owner.metadata.uid, None)
        self._doubtful.discard(owner.metadata.uid)
