"""The built-in controllers: what turns a Deployment into running pods, and keeps it so.

What lives here: one package per controller. Each has a mind and a shell. The mind is plain synchronous Python
(`plan.py`, `ranking.py`, `status.py`, ...): it is given what is wanted, what is there and the time, and answers with
what must be written; it never awaits, logs, reads a clock or rolls dice. The shell (`loop.py`) is a
`skysail.controller.Controller`: it reads from informers, asks the mind, writes, and tells people what it did.

What never lives here: the informer and queue machinery (`skysail.controller`, `skysail.informer`), and anything that
decides where a pod runs (`skysail.scheduler`).

Who calls it: `skysail up`, `skysail controller-manager`, the simulator and the tests, through the table in
`registry.py`.

Read first `pods.py` and `templates.py` (what all share), then `replicaset/` (`ranking.py`, `plan.py`, `loop.py`), then
`deployment/` (`fences.py`, `scaling.py`, `revisions.py`, `status.py`, `plan.py`, `loop.py`).

>>> from skysail.controllers.deployment.fences import resolve_fenceposts
>>> resolve_fenceposts("25%", "25%", 10)
(3, 2)
"""
