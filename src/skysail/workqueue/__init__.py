"""Work queues: from "something changed about X" to one worker at a time working on X.

Here live the queue of three sets (`WorkQueue`), its delaying and rate-limiting forms, the limiters, and one shell to
await on (`AsyncWorkQueue`, the only module with asyncio). What an item means never belongs here. Controllers and the
scheduler's shells are the callers.

Read in this order: `queue`, `order`, `delaying`, `limiters`, `metrics`, `async_queue`.

>>> queue = WorkQueue[str]()
>>> queue.add("web"); queue.add("web")
>>> item = queue.get_nowait()
>>> queue.add("web")              # changed while in work: not handed out twice ...
>>> print(queue.get_nowait())
None
>>> queue.done(item)              # ... but again afterwards
>>> queue.get_nowait()
'web'
"""

from skysail.workqueue.async_queue import AsyncWorkQueue, QueueShutDown
from skysail.workqueue.delaying import DelayingQueue, RateLimitingQueue
from skysail.workqueue.limiters import (
    BucketLimiter,
    ItemExponentialLimiter,
    ItemFastSlowLimiter,
    MaxOfLimiter,
    MaxWaitLimiter,
    RateLimiter,
    default_controller_limiter,
)
from skysail.workqueue.metrics import NoMetrics, QueueMetrics, WorkQueueMetrics
from skysail.workqueue.order import ArrivalOrder, Order, PriorityOrder
from skysail.workqueue.queue import QueueStatistics, WorkQueue

__all__ = [
    "ArrivalOrder",
    "AsyncWorkQueue",
    "BucketLimiter",
    "DelayingQueue",
    "ItemExponentialLimiter",
    "ItemFastSlowLimiter",
    "MaxOfLimiter",
    "MaxWaitLimiter",
    "NoMetrics",
    "Order",
    "PriorityOrder",
    "QueueMetrics",
    "QueueShutDown",
    "QueueStatistics",
    "RateLimiter",
    "RateLimitingQueue",
    "WorkQueue",
    "WorkQueueMetrics",
    "default_controller_limiter",
]
