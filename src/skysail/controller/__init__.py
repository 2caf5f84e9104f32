"""The controller runtime: what every controller needs, so that it only has to say what to do about one object.

Here live the `Controller` base and its watches, the run loop, the `Manager`, and the tools of the trade: expectations,
slow start, claiming children, owner references, Events, leader election. What any particular controller does never
belongs here; the built-in ones are in `skysail.controllers`.

Pure: `expectations`, `owners`, `ref_manager`, `watches`, `predicates`, `events`, `series`, `lease`, `customresources`.
Shells: `controller`, `run_loop`, `manager`, `recorder`, `leader_elector`, `slow_start`, `serving`, `blocking`.

Read in this order: `controller`, `watches`, `run_loop`, `manager`, then the tools.

>>> from skysail.api.apps import ReplicaSet
>>> from skysail.api.core import Pod
>>> class Counter(Controller):
...     watches = (For(ReplicaSet), Owns(Pod))
...     async def reconcile(self, key: Key) -> Result | None:
...         wanted = self.lister(ReplicaSet).get(key)
...         return Result(requeue_after=60) if wanted else None
>>> Counter.display_name()
'counter'
"""

from skysail.controller.controller import Controller, Result, Runtime, TerminalError
from skysail.controller.events import NORMAL, WARNING, EventCorrelator, Reference
from skysail.controller.expectations import EXPECTATIONS_TIMEOUT_SECONDS, Expectations, UIDTrackingExpectations
from skysail.controller.leader_elector import LeaderElector, LeadershipLost
from skysail.controller.lease import LeaderElection
from skysail.controller.manager import Manager, ManagerSettings
from skysail.controller.owners import (
    controller_reference,
    is_controlled_by,
    is_of_kind,
    owner_reference,
    raw_reference,
)
from skysail.controller.recorder import CoreEventRecorder, EventRecorder, NoRecorder, SeriesEventRecorder, reference_to
from skysail.controller.ref_manager import ControllerRefManager
from skysail.controller.run_loop import RECONCILE_ID, RunLoop
from skysail.controller.slow_start import BatchOutcome, slow_start_batch
from skysail.controller.watches import (
    LOW_PRIORITY,
    Added,
    Change,
    Deleted,
    For,
    ObjectEvent,
    Owns,
    Predicate,
    Updated,
    Watch,
    Watches,
)
from skysail.informer.keys import Key, controller_of, key_of, owners_of

__all__ = [
    "EXPECTATIONS_TIMEOUT_SECONDS",
    "LOW_PRIORITY",
    "NORMAL",
    "RECONCILE_ID",
    "WARNING",
    "Added",
    "BatchOutcome",
    "Change",
    "Controller",
    "ControllerRefManager",
    "CoreEventRecorder",
    "Deleted",
    "EventCorrelator",
    "EventRecorder",
    "Expectations",
    "For",
    "Key",
    "LeaderElection",
    "LeaderElector",
    "LeadershipLost",
    "Manager",
    "ManagerSettings",
    "NoRecorder",
    "ObjectEvent",
    "Owns",
    "Predicate",
    "Reference",
    "Result",
    "RunLoop",
    "Runtime",
    "SeriesEventRecorder",
    "TerminalError",
    "UIDTrackingExpectations",
    "Updated",
    "Watch",
    "Watches",
    "controller_of",
    "controller_reference",
    "is_controlled_by",
    "is_of_kind",
    "key_of",
    "owner_reference",
    "owners_of",
    "raw_reference",
    "reference_to",
    "slow_start_batch",
]
