"""Python's garbage collector in a process that holds a cluster: what was there at first is not gone through again."""

import gc
from collections.abc import Awaitable


async def spare_what_is_there(synced: Awaitable[object]) -> None:
    """Once everything was heard of, take it out of the collector's sight; then return.

    A full collection goes through every object there is, and holds the event loop meanwhile: for 50,000 pods a fifth of
    a second, again and again as objects come. Objects taken out are freed as always when nobody holds them; only cycles
    among them would stay.

    Args:
        synced: Done when everything was heard of.
    """
    await synced
    gc.collect()
    gc.freeze()
