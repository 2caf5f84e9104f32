"""What a process held when it had heard of everything is not gone through by later collections."""

import asyncio
import gc

from skysail.cli.collecting import spare_what_is_there


class Held:
    """Something the collector looks at."""


def test_what_is_there_once_all_was_heard_of_is_not_gone_through_again():
    held = [Held()]

    async def hears():
        held.append(Held())

    try:
        asyncio.run(spare_what_is_there(hears()))
        later = Held()
        seen = {id(each) for each in gc.get_objects()}
        assert [id(each) in seen for each in (*held, later)] == [False, False, True]
    finally:
        gc.unfreeze()
