"""The event recorders of all profiles: to events.k8s.io where the server has that group, else to the core group.

Source: cmd/kube-scheduler/app/options (events broadcaster), v1.36: which group is decided once, at the start.
"""

import logging
import random
from collections.abc import Iterable
from typing import Final

from skysail.api.core import Pod
from skysail.api.errors import ApiError, NotFound, Unreachable
from skysail.api.ports import Clock
from skysail.client.api_client import ApiClient
from skysail.controller.recorder import CoreEventRecorder, EventRecorder, NoRecorder, SeriesEventRecorder
from skysail.scheduler.framework.queued_pod import scheduler_name

_log = logging.getLogger(__name__)

_EVENTS_GROUP_PATH: Final = "/apis/events.k8s.io/v1"


class Recorders:
    """One recorder a profile. Until `open` nobody is told anything.

    Args:
        profiles: Their names.
    """

    def __init__(self, profiles: Iterable[str]) -> None:
        self._recorders: dict[str, EventRecorder] = {name: NoRecorder() for name in profiles}
        self.writing: list[CoreEventRecorder | SeriesEventRecorder] = []
        """Those that have something to run."""

    async def open(self, client: ApiClient, clock: Clock, rng: random.Random) -> None:
        """Write events from now on."""
        kind: type[CoreEventRecorder] | type[SeriesEventRecorder] = SeriesEventRecorder
        try:
            await client.read_path(_EVENTS_GROUP_PATH)
        except NotFound:
            kind = CoreEventRecorder
        except (ApiError, Unreachable) as error:
            _log.info("could not ask for the events group", extra={"error": str(error)})
        made = {name: kind(client, name, clock=clock, rng=rng) for name in self._recorders}
        self._recorders.update(made)
        self.writing = list(made.values())

    def of_profile(self, name: str) -> EventRecorder:
        """A profile's recorder."""
        return self._recorders[name]

    def of_pod(self, pod: Pod) -> EventRecorder:
        """The recorder of the pod's scheduler."""
        return self._recorders[scheduler_name(pod)]

    @property
    def is_writing(self) -> bool:
        """Whether events wait to be written."""
        return any(recorder.pending for recorder in self.writing)
