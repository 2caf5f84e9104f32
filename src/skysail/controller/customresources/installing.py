"""Have a server serve kinds of one's own."""

import asyncio
from collections.abc import Iterable
from typing import Final

from skysail.api.errors import AlreadyExists
from skysail.api.kinds import Kind
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient

DEFINITIONS: Final[Kind[Raw]] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, dict, ("status",)
)


async def install(client: ApiClient, definitions: Iterable[Raw], timeout_seconds: float | None = 30.0) -> None:
    """Make a server serve these kinds; those it has already are left as they are. Returns when it serves them.

    Args:
        client: Needs the right to create CustomResourceDefinitions and to read them.
        definitions: As `definition_of` makes them.
        timeout_seconds: How long to wait until it serves them; None for ever.

    Raises:
        TimeoutError: It does not come to serve them in time.
    """
    definitions = tuple(definitions)
    for definition in definitions:
        try:
            await client.create(DEFINITIONS, definition)
        except AlreadyExists:
            continue
    async with asyncio.timeout(timeout_seconds):
        for definition in definitions:
            while not _is_established(await client.get(DEFINITIONS, definition["metadata"]["name"])):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


def _is_established(definition: Raw) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
