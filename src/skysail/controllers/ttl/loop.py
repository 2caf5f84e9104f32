"""The shell of TTL after finished: waits, looks again, deletes.

Source: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go, v1.36.
"""

from skysail.api.batch import Job
from skysail.api.errors import NotFound
from skysail.api.kinds import JOBS
from skysail.controller.controller import Result
from skysail.controller.watches import Added, For, Updated
from skysail.controllers.builtin import BuiltinController
from skysail.controllers.ttl.plan import expires_at
from skysail.informer.keys import Key


class TTLAfterFinishedController(BuiltinController):
    """Deletes finished jobs when their time has come."""

    name = "ttl-after-finished"
    workers = 5
    watches = (For(Job, on=(Added, Updated)),)

    async def reconcile(self, key: Key) -> Result | None:
        """Wait for one job's time, then delete it; before that, read it again: its time may have been changed."""
        job = self.lister(Job).get(key)
        moment = expires_at(job) if job is not None else None
        if moment is None:
            return None
        wait = (moment - self.now()).total_seconds()
        if wait > 0:
            return Result(wait)
        try:
            fresh = await self.api.get(JOBS, key.name, key.namespace)
            moment = expires_at(fresh)
            if moment is None or moment > self.now():
                return Result(0.0) if moment is not None else None
            await self.api.delete(JOBS, key.name, key.namespace, propagation="Foreground", uid=fresh.uid)
        except NotFound:
            return None
        return None
