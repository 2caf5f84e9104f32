"""The scheduling queue: which pod comes next, and which event wakes which sleeper.

What lives here: the three parts of the queue, the pods in flight with the events that came meanwhile, nominations, and
the decision whether an event helps a pod. What never may: a clock, a task, a socket; every method that needs the time
takes `now` in seconds, and `skysail.scheduler.app` calls from its loop and its timers. Read in this order:

    pod_heap.py          a heap that can look up, replace and remove by pod
    backoff.py           how long a refused pod waits, and the heap of those who do
    in_flight.py         pods being worked on, and what happened since each was popped
    hints.py             does this event help that pod?
    gates.py             which pods may not even be tried yet
    sleeping.py          the unschedulable and the gated pods, indexed by who refused them
    nominator.py         pods that wait for a node they were promised
    parts.py             the four places a pod can be in, and all that can be asked about them
    scheduling_queue.py  how pods move between them: `SchedulingQueue`

    >>> from skysail.api.core import Pod
    >>> from skysail.api.meta import ObjectMeta
    >>> from skysail.scheduler.queue.scheduling_queue import SchedulingQueue
    >>> queue = SchedulingQueue({}, order=lambda info: info.timestamp)
    >>> queue.add(Pod(metadata=ObjectMeta(name="web", namespace="default", uid="u1")), now=0.0)
    >>> queue.pop(now=0.0).key
    ('default', 'web')
"""
