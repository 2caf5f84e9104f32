"""What counts as a pod's nomination, when its status tells it late, in steps, or not at all."""

from skysail.api.core import Pod
from skysail.scheduler.queue.nominator import Nominator
from tests.scheduler.queue_objects import pod


def saying(node_name: str) -> Pod:
    return pod("web", nominated_node_name=node_name)


def where(nominator: Nominator) -> str:
    node_name = nominator.node_of(saying(""))
    there = [node for node, pods in nominator.by_node.items() if pods]
    assert there == ([node_name] if node_name else [])
    return node_name


def test_what_others_write_counts():
    nominator = Nominator()
    nominator.add(saying("n1"))
    assert where(nominator) == "n1"
    nominator.update(saying("n1"), saying("n2"))
    assert where(nominator) == "n2"
    nominator.update(saying("n2"), saying(""))
    assert where(nominator) == ""


def test_what_others_write_counts_also_in_place_of_what_was_made_here():
    nominator = Nominator()
    nominator.add(saying("n1"), "n2")
    nominator.update(saying("n1"), saying("n3"))
    assert (where(nominator), nominator.not_shown(saying("n3"))) == ("n3", None)


def test_an_update_of_something_else_leaves_what_the_status_does_not_show_yet():
    for said in ("", "n1"):
        nominator = Nominator()
        nominator.add(saying(said), "n2")
        nominator.update(saying(said), saying(said))
        assert (where(nominator), nominator.not_shown(saying(said))) == ("n2", "n2")


def test_an_update_of_something_else_brings_in_what_the_status_says():
    nominator = Nominator()
    nominator.update(saying("n1"), saying("n1"))
    assert where(nominator) == "n1"


def test_a_nomination_that_was_replaced_does_not_come_back_when_the_status_shows_it():
    nominator = Nominator()
    for node in ("n1", "n2", "n3"):
        nominator.add(saying(""), node)
    nominator.update(saying(""), saying("n1"))
    assert (where(nominator), nominator.not_shown(saying("n1"))) == ("n3", "n3")
    nominator.update(saying("n1"), saying("n3"))
    assert (where(nominator), nominator.not_shown(saying("n3"))) == ("n3", None)
    nominator.update(saying("n3"), saying("n1"))
    assert where(nominator) == "n1"


def test_a_nomination_that_was_taken_back_does_not_come_back_when_the_status_shows_it():
    nominator = Nominator()
    nominator.add(saying(""), "n1")
    nominator.add(saying(""), "")
    nominator.update(saying(""), saying("n1"))
    assert (where(nominator), nominator.not_shown(saying("n1"))) == ("", "")
    nominator.add(saying("n1"))
    assert where(nominator) == ""
    nominator.update(saying("n1"), saying(""))
    assert (where(nominator), nominator.not_shown(saying(""))) == ("", None)


def test_what_an_attempt_leaves_as_it_is_is_kept():
    nominator = Nominator()
    nominator.add(saying("n1"), "n2")
    nominator.add(saying("n1"))
    assert (where(nominator), nominator.not_shown(saying("n1"))) == ("n2", "n2")


def test_of_a_pod_that_went_nothing_is_left():
    nominator = Nominator()
    nominator.add(saying(""), "n1")
    nominator.remove(saying(""))
    assert (where(nominator), nominator.not_shown(saying(""))) == ("", None)
    gone = Nominator(is_pending=lambda pod: False)
    gone.add(saying(""), "n1")
    assert (where(gone), gone.not_shown(saying(""))) == ("", None)
