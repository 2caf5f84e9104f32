"""Every operation, checkpoint and end of a Statement, in any order, failing at any commit: the ledger stays true."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skysail.api.errors import InvariantBroken
from skysail.batch.cycle import open_session
from skysail.batch.model.claim import Claim
from skysail.batch.model.job import TaskState
from skysail.batch.model.specs import QuotaSpec
from skysail.scheduler.cache.cluster_cache import CacheError
from tests.batch.lab import GPU, START, Lab, figures


class StatementMachine(RuleBasedStateMachine):
    """One session, one statement at a time."""

    @initialize()
    def start(self):
        self.lab = Lab()
        self.lab.nodes(3, gpus=8)
        self.lab.queue("q", figures=figures(deserved=8, capability=16))
        self.lab.queue("r", parent="q", figures=figures(capability=12))
        for name, queue in (("a", "q"), ("b", "r"), ("c", "r")):
            self.lab.gang(name, 6, 2, queue, gpus=2)
        for number in range(3):
            pod = self.lab.pod(f"old-{number}", queue="q", gpus=2)
            self.lab.run(pod, f"n{number:03}")
        self.lab.world.set_quota(QuotaSpec("default", "slots", "q", {GPU: 4, "cpu": 1000}, count=2))
        self.session = open_session(self.lab.world, self.lab.configuration)
        self.opened = self.picture()
        self.statement, self.marks, self.failing = None, [], None

    def picture(self):
        world, table = self.lab.world, self.lab.world.snapshot.table
        amounts = table.amounts
        return (
            world.ledger.entries(),
            {uid: (task.state, task.node, task.slot) for uid, task in world.tasks.items()},
            {
                queue: {name: amount for name, amount in wanted.items() if amount}
                for queue, wanted in world.wanted.items()
            },
            {key: (slot.node, dict(slot.holders)) for key, slot in world.slots.items()},
            {name: amounts.requested[:5, row].tolist() for name, row in table.rows.items()},
        )

    def open(self):
        if self.statement is None:
            self.statement, self.marks = self.session.statement(), [(0, self.picture())]
        return self.statement

    def pending(self, name):
        return [task for task in self.lab.job(name).tasks.values() if task.state is TaskState.PENDING]

    @rule(name=st.sampled_from("abc"), number=st.integers(1, 3), node=st.integers(0, 2), promise=st.booleans())
    def place(self, name, number, node, promise):
        tasks = self.pending(name)[:number]
        if tasks:
            statement = self.open()
            before = self.picture()
            put = statement.pipeline if promise else statement.allocate
            if put(self.lab.job(name), tasks, f"n{node:03}") is not None:
                assert self.picture() == before

    @rule(number=st.integers(0, 2))
    def evict(self, number):
        task = self.lab.world.tasks[f"uid-old-{number}"]
        if task.state is TaskState.BOUND:
            self.open().evict(task.job, [task])

    @rule(index=st.integers(0, 1), node=st.integers(0, 2))
    def allocate_quota(self, index, node):
        slot = self.lab.world.slots[f"default/slots[{index}]"]
        if not slot.node:
            self.open().allocate_quota(slot, f"n{node:03}")

    @rule(index=st.integers(0, 1))
    def allocate_task_to_quota(self, index):
        slot = self.lab.world.slots[f"default/slots[{index}]"]
        tasks = self.pending("a")
        if slot.node and tasks and slot.has_room_for(tasks[0].request):
            self.open().allocate_task_to_quota(tasks[0], slot)

    @rule()
    def checkpoint(self):
        statement = self.open()
        self.marks.append((statement.checkpoint(), self.picture()))

    @precondition(lambda self: self.statement is not None)
    @rule(data=st.data())
    def rollback(self, data):
        place = data.draw(st.integers(0, len(self.marks) - 1))
        mark, picture = self.marks[place]
        self.statement.rollback(mark)
        del self.marks[place + 1 :]
        assert self.picture() == picture

    @precondition(lambda self: self.statement is not None)
    @rule(how=st.sampled_from(["discard", "leave", "raise"]))
    def end_without_commit(self, how):
        picture = self.marks[0][1]
        if how == "discard":
            self.statement.discard()
        elif how == "leave":
            with self.statement:
                pass
        else:
            with pytest.raises(KeyError), self.statement:
                raise KeyError
        assert self.picture() == picture
        self.close()

    @precondition(lambda self: self.statement is not None)
    @rule(fails_at=st.none() | st.integers(0, 5), claimed=st.booleans())
    def commit(self, fails_at, claimed):
        calls = iter(range(1000))
        original = self.lab.world.assume

        def assume(task, node):
            if next(calls) == fails_at:
                raise CacheError("accounted for already")
            original(task, node)

        self.lab.world.assume = assume
        victims = {f"uid-old-{number}": "" for number in range(3)}
        claim = Claim("claim-1", "default/a", {}, victims, START + 60) if claimed else None
        committed = self.statement.commit(claim)
        self.lab.world.assume = original
        assert committed == (not self.statement.failures)
        self.session.nodes.refresh()
        assert [problem for problem in self.lab.world.problems() if "knows why" not in problem] == []
        self.close()

    def close(self):
        with pytest.raises(InvariantBroken):
            self.statement.checkpoint()
        self.statement, self.marks = None, []

    @invariant()
    def ledger_equals_rebuild(self):
        if hasattr(self, "session"):
            assert self.lab.world.ledger == self.lab.world.rebuilt_ledger()
            for queue in self.lab.world.tree.values():
                for key in queue.spec.figures:
                    assert self.lab.world.ledger.used(queue.name, key) <= queue.limit(key)


StatementMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestStatement = StatementMachine.TestCase
