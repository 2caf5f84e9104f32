"""Heads of lines hold others up only while they themselves could start, were there room."""

from dataclasses import replace

import pytest

from skysail.batch.registrar import Registrar
from tests.batch.lab import Lab


def line(lab):
    lab.nodes(2, gpus=4)
    lab.queue("line", dequeue="fifo")
    lab.gang("runs", 2, queue="line", gpus=3)
    lab.cycle()
    lab.gang("head", 4, queue="line", gpus=1)
    lab.cycle()
    lab.pod("small", gpus=1, queue="line")
    lab.cycle()
    assert lab.code("small") == "NotHead"


@pytest.mark.parametrize("gone", [1, 4])
def test_a_head_that_lost_members_holds_nobody_up(gone):
    lab = Lab()
    line(lab)
    for number in range(gone):
        lab.delete(f"head-{number}")
    lab.cycle(2)
    assert lab.count("small") == 1


def test_a_head_whose_group_is_gone_holds_nobody_up():
    lab = Lab()
    line(lab)
    lab.world.remove_group("default/head")
    lab.cycle(2)
    assert lab.count("small") == 1


def test_a_head_that_goes_to_another_queue_holds_nobody_up_in_the_one_it_left():
    lab = Lab()
    line(lab)
    lab.queue("other")
    lab.world.set_group(replace(lab.job("head").spec, queue="other"))
    lab.cycle(2)
    assert lab.count("small") == 1


def test_a_long_line_of_blocked_heads_is_not_ordered_anew_for_each_job_behind_it(monkeypatch):
    asked = []

    def job_key(self, job, original=Registrar.job_key):
        asked.append(job.key)
        return original(self, job)

    monkeypatch.setattr(Registrar, "job_key", job_key)
    lab = Lab()
    lab.nodes(1, cpu="4")
    for number in range(100):
        lab.pod(f"waits{number}", cpu="4")
    lab.cycle()
    assert len(lab.world.heads["default"]) == 99
    assert len(asked) < 1_000
