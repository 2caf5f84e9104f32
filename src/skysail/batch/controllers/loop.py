"""The shell of grouping: watches pods and their owners, and keeps the objects of implied gangs."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from skysail.api.core import Pod
from skysail.api.errors import AlreadyExists, ApiError, NotFound, Unreachable
from skysail.api.kinds import JOBS, KINDS, Kind
from skysail.api.raw import Raw
from skysail.batch.controllers.grouping import IMPLICIT, MIN_MEMBER_WORDS, GroupPlan, plan_group
from skysail.batch.controllers.owners import TopOwner, names_its_group, top_owner
from skysail.batch.foreign.pods import GROUP_WORDS, said
from skysail.batch.kinds import POD_GROUPS, PodGroup
from skysail.batch.membership import POD_GROUP
from skysail.client.codec import to_raw
from skysail.controller.controller import Controller, Result
from skysail.controller.watches import Added, For, Updated, Watch, Watches
from skysail.informer.keys import Key

BY_GROUP: Final = "implied-group"
RETRY_SECONDS: Final = 5.0


class GroupingController(Controller):
    """Makes, keeps and removes the objects of gangs that follow from pods' owners.

    Args:
        scheduler_name: Whose pods are grouped.
    """

    name: ClassVar[str] = "pod-grouper"
    workers: ClassVar[int] = 4

    def __init__(self, scheduler_name: str) -> None:
        self._scheduler_name = scheduler_name

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Pods, the gangs' objects, and jobs, whose parallelism may change."""
        return (
            For(POD_GROUPS),
            Watches(Pod, map=self._groups_of),
            Watches(JOBS, map=lambda job: (Key(job.namespace, f"job-{job.name}"),), on=(Added, Updated)),
        )

    def setup(self) -> None:
        """Index pods by the gang they imply."""
        self.informer(Pod).add_indexes(
            {BY_GROUP: lambda pod: [f"{key.namespace}/{key.name}" for key in self._groups_of(pod)]}
        )

    def _groups_of(self, pod: Pod) -> Iterable[Key]:
        if pod.spec.scheduler_name != self._scheduler_name:
            return ()
        if names_its_group(pod):
            name = said(pod, POD_GROUP, *GROUP_WORDS)
            return (Key(pod.namespace, name),) if name and said(pod, *MIN_MEMBER_WORDS) else ()
        owner = top_owner(pod)
        return () if owner is None else (Key(pod.namespace, owner.group),)

    async def reconcile(self, key: Key) -> Result | None:
        """Bring one gang's object to what its pods and owner say."""
        existing = self.lister(POD_GROUPS).get(key)
        indexed = self.lister(Pod).indexer.by_index(BY_GROUP, f"{key.namespace}/{key.name}")
        pods = [pod for pod in indexed if pod.metadata.deletion_timestamp is None]
        owner = top_owner(pods[0]) if pods and not names_its_group(pods[0]) else None
        if existing is None and not pods:
            return None
        found: Raw | None = None
        if owner is not None:
            found = await self._read_owner(owner, key.namespace)
            if found is None and owner.kind == "Job" and existing is None:
                return Result(RETRY_SECONDS)
        elif existing is not None and IMPLICIT in existing.metadata.labels and existing.metadata.owner_references:
            if not indexed and self._is_over(existing):
                await self._act(key, existing, GroupPlan(delete=True))
            return None
        await self._act(key, existing, plan_group(key.name, existing, pods, owner, found))
        return None

    def _is_over(self, group: PodGroup) -> bool:
        """Whether its Job has ended, or was suspended: a gang without pods would wait for members for ever."""
        (reference, *_) = group.metadata.owner_references
        if (reference.api_version, reference.kind) != (JOBS.api_version, "Job"):
            return False
        job = self.lister(JOBS).get(Key(group.namespace, reference.name))
        if job is None or job.uid != reference.uid:
            return False
        ended = any(each.type in ("Complete", "Failed") and each.status == "True" for each in job.status.conditions)
        return bool(ended or job.spec.suspend)

    async def _act(self, key: Key, existing: PodGroup | None, plan: GroupPlan) -> None:
        if plan.create is not None:
            try:
                await self.client.create(POD_GROUPS, plan.create, key.namespace)
            except AlreadyExists:
                return
        elif plan.patch is not None:
            await self.client.patch(POD_GROUPS, key.name, key.namespace, plan.patch)
        elif plan.delete and existing is not None:
            try:
                await self.client.delete(POD_GROUPS, key.name, key.namespace, uid=existing.uid)
            except NotFound:
                return

    async def _read_owner(self, owner: TopOwner, namespace: str) -> Raw | None:
        """The owner, from the cache where it is kept there, else from the server; None when it cannot be read."""
        if owner.kind == "Job" and owner.api_version == JOBS.api_version:
            job = self.lister(JOBS).get(Key(namespace, owner.name))
            if job is not None:
                cached: Raw = to_raw(job)
                return cached
        kind = kind_named(owner.api_version, owner.kind)
        try:
            found: Raw = to_raw(await self.client.get(kind, owner.name, namespace))
        except (ApiError, Unreachable):
            return None
        return found


def kind_named(api_version: str, kind: str) -> Kind[Any]:
    """A kind known only by its name; its plural is guessed as English makes it where it is no built-in one."""
    for each in KINDS:
        if each.name == kind and each.api_version == api_version:
            return each
    group, _, version = api_version.rpartition("/")
    lower = kind.lower()
    plural = (
        f"{lower}es" if lower.endswith(("s", "x", "ch")) else f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"
    )
    return Kind(group, version, kind, plural, True, dict)
