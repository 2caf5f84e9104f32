"""The tables of actions and plugins that exist. Adding one adds a row; nothing registers itself."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from skysail.batch.actions.allocate_job import AllocateJob
from skysail.batch.actions.allocate_quota import AllocateQuota
from skysail.batch.actions.allocate_zone import AllocateZone
from skysail.batch.actions.backfill import Backfill
from skysail.batch.actions.bind import Bind
from skysail.batch.actions.reclaim import Reclaim, ReclaimArguments
from skysail.batch.actions.release_quota import ReleaseQuota
from skysail.batch.plugins.binpack import Binpack, BinpackArguments
from skysail.batch.plugins.conformance import Conformance
from skysail.batch.plugins.devices import Devices
from skysail.batch.plugins.drf import Drf
from skysail.batch.plugins.entitlement import EntitlementArguments, EntitlementPlugin
from skysail.batch.plugins.gang import Gang
from skysail.batch.plugins.jobqueue import JobQueuePlugin
from skysail.batch.plugins.nodeorder import NodeOrder
from skysail.batch.plugins.predicates import Predicates
from skysail.batch.plugins.priority import Priority
from skysail.batch.plugins.rescheduling import Rescheduling, ReschedulingArguments
from skysail.batch.plugins.sla import Sla, SlaArguments
from skysail.batch.plugins.spot import Spot
from skysail.batch.plugins.storage import Storage
from skysail.batch.session import Action, Arguments, BatchPlugin

Row = tuple[Callable[[Any], Any], type[Arguments]]

ACTIONS: Final[Mapping[str, Row]] = {
    "allocateJob": (AllocateJob, Arguments),
    "allocateZone": (AllocateZone, Arguments),
    "allocateQuota": (AllocateQuota, Arguments),
    "bind": (Bind, Arguments),
    "reclaim": (Reclaim, ReclaimArguments),
    "backfill": (Backfill, Arguments),
    "releaseQuota": (ReleaseQuota, Arguments),
}
PLUGINS: Final[Mapping[str, Row]] = {
    "sla": (Sla, SlaArguments),
    "priority": (Priority, Arguments),
    "gang": (Gang, Arguments),
    "jobqueue": (JobQueuePlugin, Arguments),
    "spot": (Spot, Arguments),
    "entitlement": (EntitlementPlugin, EntitlementArguments),
    "drf": (Drf, Arguments),
    "conformance": (Conformance, Arguments),
    "devices": (Devices, Arguments),
    "rescheduling": (Rescheduling, ReschedulingArguments),
    "storage": (Storage, Arguments),
    "predicates": (Predicates, Arguments),
    "nodeorder": (NodeOrder, Arguments),
    "binpack": (Binpack, BinpackArguments),
}
DEFAULT_ACTIONS: Final = tuple(ACTIONS)
DEFAULT_PLUGINS: Final = tuple(PLUGINS)


def make_action(name: str, arguments: Arguments | None = None) -> Action:
    """An action with its arguments, or its defaults."""
    factory, kind = ACTIONS[name]
    made: Action = factory(arguments or kind())
    return made


def make_plugin(name: str, arguments: Arguments | None = None) -> BatchPlugin:
    """A plugin with its arguments, or its defaults."""
    factory, kind = PLUGINS[name]
    made: BatchPlugin = factory(arguments or kind())
    return made
