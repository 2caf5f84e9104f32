"""Queues, lines, flavors and groups: where jobs belong, and the ledger made anew. See `accounts` for the layers."""

from collections.abc import Iterable, Mapping

from skysail.batch.accounts import COLUMNS, DEFAULT_QUEUE
from skysail.batch.implied_groups import implied_spec
from skysail.batch.ledger import Ledger
from skysail.batch.model.job import Job, Task, TaskState
from skysail.batch.model.outcome import Event
from skysail.batch.model.queue import QueueTree
from skysail.batch.model.specs import FlavorSpec, JobQueueSpec, PodGroupSpec, QueueSpec
from skysail.batch.task_book import TaskBook
from skysail.batch.user_limits import NOBODY, User


class QueueBook(TaskBook):
    """The world's queues, lines and groups."""

    def set_queue(self, spec: QueueSpec) -> None:
        """A queue came or changed."""
        if self.queue_specs.get(spec.name) != spec:
            self.queue_specs[spec.name] = spec
            self._regrow()

    def remove_queue(self, name: str) -> None:
        """A queue is gone; its jobs wait for it."""
        if self.queue_specs.pop(name, None) is not None:
            self._regrow()

    def replace_queues(
        self, queues: Mapping[str, QueueSpec], lines: Mapping[str, JobQueueSpec], flavors: Iterable[FlavorSpec]
    ) -> None:
        """All queues, lines and flavors there are; what is not among them is gone."""
        wanted = tuple(sorted(flavors, key=lambda spec: spec.name))
        if wanted != self.flavors.specs():
            self.set_flavors(wanted)
        if dict(queues) != self.queue_specs:
            self.queue_specs = dict(queues)
            self._regrow()
        if dict(lines) != self.job_queues:
            self.job_queues = dict(lines)
            self._requeue()

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A namespace came or changed: queues that choose by labels may take its jobs, or no longer."""
        if self.namespaces.get(name) != labels:
            self.namespaces[name] = labels
            if any(queue.spec.namespaces is not None for queue in self.tree.values()):
                self.tell(Event.QUEUE_CHANGED)

    def remove_namespace(self, name: str) -> None:
        """A namespace is gone."""
        self.namespaces.pop(name, None)

    def set_job_queue(self, spec: JobQueueSpec) -> None:
        """A line came or changed."""
        self.job_queues[f"{spec.namespace}/{spec.name}"] = spec
        self._requeue()

    def remove_job_queue(self, namespace: str, name: str) -> None:
        """A line is gone."""
        if self.job_queues.pop(f"{namespace}/{name}", None) is not None:
            self._requeue()

    def set_flavors(self, specs: Iterable[FlavorSpec]) -> None:
        """Other flavors are defined now."""
        self.flavors.set_specs(specs)
        self._recharge()
        self.tell(Event.NODE_CHANGED)

    def _regrow(self) -> None:
        specs = dict(self.queue_specs)
        specs.setdefault(DEFAULT_QUEUE, QueueSpec(DEFAULT_QUEUE))
        before = self.tree
        self._user_paths.clear()
        self.tree = QueueTree(specs.values())
        self.wanted = {
            name: wanted for name, wanted in self.wanted.items() if name in self.tree or any(wanted.values())
        }
        self._recharge()
        heads, self.heads = self.heads, {}
        for name in heads:
            self.tell(Event.LINE_MOVED, name)
        for name in {*before, *self.tree}:
            self.tell(Event.QUEUE_CHANGED, name)
        self.tell(Event.QUEUE_CHANGED)

    def _requeue(self) -> None:
        for job in self.jobs.values():
            self._requeue_job(job)
        self.tell(Event.QUEUE_CHANGED)

    def set_group(self, spec: PodGroupSpec) -> None:
        """A group came or changed."""
        job = self.jobs.get(spec.key)
        if job is None:
            job = self.jobs[spec.key] = Job(spec.key, spec, now=self.now)
        elif job.spec == spec:
            return
        self._take_spec(job, spec)
        self._wake(job)
        if job.is_running():
            self.tell(Event.VICTIMS_CHANGED)

    def remove_group(self, key: str) -> None:
        """A group is gone; its pods wait for it, or run on, and are charged as they say themselves."""
        job = self.jobs.get(key)
        if job is None or job.is_lone:
            return
        if job.claim is not None:
            self.end_claim(job)
        self._imply_group(job)
        self._wake(job)
        if job.is_running():
            self.tell(Event.VICTIMS_CHANGED)
        self._drop_if_empty(job)

    def _take_spec(self, job: Job, spec: PodGroupSpec | None) -> None:
        """A job's group is this one from now on."""
        self._leave_bundle(job)
        before, job.spec = job.spec, spec
        job.uid = (spec.uid if spec is not None else "") or job.key
        self._join_bundle(job)
        self._requeue_job(job)
        if _said_of_pods(before) != _said_of_pods(spec):
            for task in job.tasks.values():
                task.sub_group = self._sub_group_of(task, job)
            self.reseat(job.tasks.values())

    def _imply_group(self, job: Job) -> None:
        """A job has no object: its group is what the eldest pod says that implies one, or none."""
        eldest = job.eldest("group")
        self._take_spec(job, implied_spec(eldest, self.now) if eldest is not None else None)

    def _join_bundle(self, job: Job) -> None:
        if job.spec is not None and job.spec.bundle:
            self.bundles.setdefault(f"{job.spec.namespace}/{job.spec.bundle}", {})[job.key] = job

    def _leave_bundle(self, job: Job) -> None:
        if job.spec is not None and job.spec.bundle:
            key = f"{job.spec.namespace}/{job.spec.bundle}"
            members = self.bundles.get(key, {})
            members.pop(job.key, None)
            if not members:
                self.bundles.pop(key, None)

    def _drop_if_empty(self, job: Job) -> None:
        if job.tasks or self._has_object(job):
            return
        self._leave_bundle(job)
        self.sleepers.drop(job.key)
        self.leave_line(job)
        for pair in [pair for pair in self.distrust if pair[0] == job.key]:
            del self.distrust[pair]
        del self.jobs[job.key]

    @staticmethod
    def _has_object(job: Job) -> bool:
        """Whether its group is one, and does not exist only by what its pods say."""
        return job.spec is not None and not job.is_lone and not job.spec.bundle_members

    @staticmethod
    def _sub_group_of(task: Task, job: Job) -> str:
        if task.membership.sub_group or job.spec is None:
            return task.membership.sub_group
        labels = task.pod.metadata.labels
        for group in job.spec.sub_groups:
            if group.selector is not None and group.selector.matches(labels):
                return group.name
        return ""

    def _requeue_job(self, job: Job) -> None:
        """Where a job belongs is looked at anew; what it holds and waits for is charged there."""
        (queue, line), user = self._resolve_queue(job), _user_of(job)
        if (queue, line, user) == (job.queue, job.line, job.user):
            return
        held = [task for task in job.tasks.values() if task.charged is not None]
        waiting = job.in_state(TaskState.PENDING)
        for task in held:
            self._uncharge(task)
        for task in waiting:
            self._count_wanted(task, -1)
        if queue != job.queue:
            self.leave_line(job)
            for each in self.path_of(job.queue) if held else ():
                self.tell(Event.QUEUE_USE_FELL, each.name)
        job.queue, job.line, job.user = queue, line, user
        for task in waiting:
            self._count_wanted(task, 1)
        for task in held:
            self._charge(task)
        self.reseat(job.tasks.values())

    def _resolve_queue(self, job: Job) -> tuple[str, str]:
        """A job's queue and line: as its group says, else as the eldest of its pods says that says any."""
        spec = job.spec
        named, queue = (spec.job_queue, spec.queue) if spec is not None else ("", "")
        if not named and not queue:
            eldest = job.eldest("queue")
            if eldest is not None:
                named, queue = eldest.membership.job_queue, eldest.membership.queue
        if named:
            line = f"{job.namespace}/{named}"
            found = self.job_queues.get(line)
            return (found.queue if found is not None else f"?{line}"), line
        return queue or DEFAULT_QUEUE, ""

    def _count_foreign(self, uid: str, sign: int) -> None:
        node, request = self._foreign[uid]
        for key, amount in self.vector_of(request, self.flavors.of(node)).items():
            self.foreign_use[key] = self.foreign_use.get(key, 0) + sign * amount

    def _recharge(self) -> None:
        for task in self.tasks.values():
            if task.charged is not None:
                task.charged = self.vector_of(task.request, self.flavors.of(task.node))
        self.ledger = self.rebuilt_ledger()
        self.foreign_use = {}
        for uid in self._foreign:
            self._count_foreign(uid, 1)
        self.changes += 1

    def rebuilt_ledger(self) -> Ledger:
        """The ledger as the objects say it: what the kept one must equal."""
        ledger = Ledger()
        for task in self.tasks.values():
            column = COLUMNS.get(task.state)
            if column is not None and task.slot is None:
                vector = self.vector_of(task.request, self.flavors.of(task.node))
                ledger.force(self.path_of_job(task.job), vector, column)
        for slot in self.slots.values():
            if slot.node:
                vector = self.vector_of(slot.spec.resources, self.flavors.of(slot.node))
                ledger.force(self.path_of(slot.spec.queue), vector)
        return ledger


def _said_of_pods(spec: PodGroupSpec | None) -> tuple[object, ...]:
    """What a group says of each of its pods: its sub-group, and the slots it may sit in."""
    return (spec.sub_groups, spec.quota_refs) if spec is not None else ((), ())


def _user_of(job: Job) -> User:
    """Who submitted a job, as the eldest of its pods says that says it."""
    eldest = job.eldest("user")
    return (eldest.membership.user, eldest.membership.user_groups) if eldest is not None else NOBODY
