"""Clusters that exist only in memory and in virtual time: the loop whose clock jumps, hollow nodes, traces.

Controllers, schedulers, informers and the API server run here unchanged, with the in-process transport and the memory
store; a day of cluster life takes seconds and repeats exactly. Threads, sockets and processes do not exist here.

Read in this order: `clock`, `hollow`, `traces`.

>>> import asyncio
>>> from skysail.simulator.clock import run_virtual
>>> async def main(clock):
...     before = clock.now()
...     await asyncio.sleep(86_400)
...     return clock.now() - before
>>> run_virtual(main)
datetime.timedelta(days=1)
"""
