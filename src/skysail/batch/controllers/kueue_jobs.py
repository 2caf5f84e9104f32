"""Jobs written for Kueue: made suspended, they wait for somebody who starts them.

A Job that names a Kueue queue and whose pods are scheduled here is started at once; its pods then wait as a gang in
that queue, and hold nothing while they wait. Kueue's own controller must not run beside this: it would suspend the Job
again.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import msgspec

from skysail.api.batch import Job
from skysail.api.errors import NotFound
from skysail.api.kinds import JOBS
from skysail.controller.controller import Controller
from skysail.controller.watches import Added, For, Updated, Watch
from skysail.informer.keys import Key

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"


class _Template(msgspec.Struct, frozen=True, rename="camel"):
    """Of a pod template what is looked at here."""

    scheduler_name: str = ""


class _TemplateHolder(msgspec.Struct, frozen=True):
    spec: _Template = _Template()


def is_to_be_started(job: Job, scheduler_name: str) -> bool:
    """Whether a Job waits for its queue's owner, and that is us."""
    if QUEUE_LABEL not in job.metadata.labels or not job.spec.suspend:
        return False
    template = msgspec.json.decode(job.spec.template, type=_TemplateHolder)
    return template.spec.scheduler_name == scheduler_name


class KueueJobController(Controller):
    """Starts Jobs that were written for Kueue and are scheduled here.

    Args:
        scheduler_name: Whose pods.
    """

    name: ClassVar[str] = "kueue-jobs"

    def __init__(self, scheduler_name: str) -> None:
        self._scheduler_name = scheduler_name

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Jobs."""
        return (For(Job, on=(Added, Updated)),)

    async def reconcile(self, key: Key) -> None:
        """Start one."""
        job = self.lister(Job).get(key)
        if job is None or not is_to_be_started(job, self._scheduler_name):
            return
        try:
            await self.client.patch(JOBS, key.name, key.namespace, {"spec": {"suspend": False}})
        except NotFound:
            return
