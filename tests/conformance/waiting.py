"""Waiting by watching, never by sleeping."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from skysail.api.kinds import Kind
from skysail.client.api_client import ApiClient

T = TypeVar("T")

SECONDS = 30.0


async def wait_until(
    client: ApiClient,
    kind: Kind[T],
    namespace: str,
    satisfied: Callable[[list[T]], bool],
    *,
    label_selector: str = "",
    seconds: float = SECONDS,
) -> list[T]:
    """Wait until the objects of a kind in a namespace are as wanted; what they are then."""
    page = await client.list_all(kind, namespace, label_selector=label_selector)
    objects = {obj.metadata.name: obj for obj in page.items}
    try:
        async with asyncio.timeout(seconds):
            if satisfied(list(objects.values())):
                return list(objects.values())
            async for event in client.watch(
                kind, namespace, resource_version=page.resource_version, label_selector=label_selector
            ):
                if event.type == "DELETED":
                    objects.pop(event.object.metadata.name, None)
                elif event.type != "BOOKMARK":
                    objects[event.object.metadata.name] = event.object
                if satisfied(list(objects.values())):
                    break
    except TimeoutError as error:
        raise AssertionError(f"still not as wanted after {seconds:.0f} s: {list(objects.values())}") from error
    return list(objects.values())
