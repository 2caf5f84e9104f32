"""Which of several kinds are followed: those the server serves, from when it comes to serve them until it ceases to.

Of several versions of a kind the first in its table that is served counts. At the start each is asked for by a list;
from then on the server's CustomResourceDefinitions tell, where they may be watched: Kueue, Volcano or KAI installed
later, or taken away, need no restart.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skysail.api.errors import ApiError, NotFound
from skysail.api.kinds import Kind
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.controller.customresources.installing import DEFINITIONS

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Followed:
    """One kind.

    Attributes:
        kinds: Its versions, those first that are liked best.
        attach: Begins to follow one.
        detach: Ends that.
        current: Which one is followed.
    """

    kinds: tuple[Kind[Any], ...]
    attach: Callable[[Kind[Any]], None]
    detach: Callable[[Kind[Any]], None]
    current: Kind[Any] | None = None

    def turn_to(self, wanted: Kind[Any] | None) -> None:
        """Follow this version from now on, or none."""
        if wanted is self.current:
            return
        if self.current is not None:
            self.detach(self.current)
        self.current = wanted
        if wanted is not None:
            self.attach(wanted)


class Following:
    """All kinds that are followed as far as they are served.

    Args:
        client: Asks whether a kind is served.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._followed: list[Followed] = []

    async def follow(
        self,
        kinds: tuple[Kind[Any], ...],
        attach: Callable[[Kind[Any]], None],
        detach: Callable[[Kind[Any]], None],
    ) -> None:
        """Follow one kind, at once if it is served, else once it is."""
        followed = Followed(kinds, attach, detach)
        self._followed.append(followed)
        for kind in kinds:
            if await self._is_served(kind):
                followed.turn_to(kind)
                return

    async def may_watch_definitions(self) -> bool:
        """Whether the server lets us see its CustomResourceDefinitions."""
        return await self._is_served(DEFINITIONS)

    def defined(self, definition: Raw) -> None:
        """A CustomResourceDefinition is there, or changed."""
        versions = _served_versions(definition)
        for followed in self._of(definition):
            followed.turn_to(next((kind for kind in followed.kinds if kind.version in versions), None))

    def undefined(self, definition: Raw) -> None:
        """A CustomResourceDefinition is gone."""
        for followed in self._of(definition):
            followed.turn_to(None)

    def _of(self, definition: Raw) -> list[Followed]:
        name = definition["metadata"]["name"]
        return [followed for followed in self._followed if followed.kinds[0].resource == name]

    async def _is_served(self, kind: Kind[Any]) -> bool:
        try:
            await self._client.list(kind, limit=1)
        except NotFound:
            return False
        except ApiError as error:
            _log.info("kind could not be listed", extra={"kind": kind.resource, "error": str(error)})
            return False
        return True


def _served_versions(definition: Raw) -> set[str]:
    """The versions a server serves of a kind; none before it has established it."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    if not any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions):
        return set()
    return {str(version["name"]) for version in definition["spec"]["versions"] if version.get("served")}
