from skysail.scheduler.queue.nominator import Nominator
from tests.scheduler.queue_objects import pod


def nominated(node_name: str = ""):
    return pod("web", nominated_node_name=node_name)


def test_an_update_changes_a_nomination_that_was_changed():
    nominator = Nominator()
    nominator.add(nominated("n1"))
    nominator.update(nominated("n1"), nominated("n2"))
    assert nominator.node_of(nominated()) == "n2"
    nominator.update(nominated("n2"), nominated())
    assert nominator.node_of(nominated()) == ""


def test_an_update_of_something_else_leaves_what_the_server_has_not_heard_of():
    for said in ("", "n1"):
        nominator = Nominator()
        nominator.add(nominated(said), "n2")
        nominator.update(nominated(said), nominated(said))
        assert nominator.node_of(nominated()) == "n2"
        assert [each.name for each in nominator.pods_for_node("n2")] == ["web"]
        assert not nominator.pods_for_node("n1")


def test_an_update_of_something_else_brings_in_what_the_status_says_and_nobody_took_in():
    nominator = Nominator()
    nominator.update(nominated("n1"), nominated("n1"))
    assert nominator.node_of(nominated()) == "n1"


def test_while_a_nomination_is_being_written_the_last_one_written_does_not_count():
    nominator = Nominator()
    nominator.under_way = lambda pod: "n2"
    nominator.add(nominated(), "n2")
    nominator.update(nominated(), nominated("n1"))
    assert nominator.node_of(nominated()) == "n2"
    nominator.under_way = lambda pod: None
    nominator.update(nominated("n1"), nominated("n2"))
    assert nominator.node_of(nominated()) == "n2"


def test_a_nomination_that_is_being_taken_back_does_not_come_back():
    nominator = Nominator()
    nominator.under_way = lambda pod: ""
    nominator.update(nominated(), nominated("n1"))
    assert nominator.node_of(nominated()) == ""
    nominator.keep(nominated("n1"))
    assert nominator.node_of(nominated()) == ""


def test_what_an_attempt_leaves_as_it_is_is_kept():
    nominator = Nominator()
    nominator.keep(nominated("n1"))
    assert nominator.node_of(nominated()) == "n1"
    nominator.add(nominated("n1"), "n2")
    nominator.keep(nominated("n1"))
    assert nominator.node_of(nominated()) == "n2"
