"""The garbage collector's graph stays in order whatever it is told, in whatever order."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from skysail.api.meta import ObjectMeta, OwnerReference
from skysail.controllers.garbage.graph import OwnerGraph
from skysail.controllers.garbage.node import FOREGROUND_FINALIZER, Identity

NAMES = "abcdef"


def identity(name: str, namespace: str = "default") -> Identity:
    return Identity("v1", "ConfigMap", namespace, name, f"uid-{name}")


def owner(name: str, *, blocks: bool = False) -> OwnerReference:
    return OwnerReference(
        api_version="v1", kind="ConfigMap", name=name, uid=f"uid-{name}", block_owner_deletion=blocks or None
    )


def meta(name: str, owners: Sequence[OwnerReference] = (), *, foreground: bool = False) -> ObjectMeta:
    return ObjectMeta(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        owner_references=tuple(owners),
        finalizers=(FOREGROUND_FINALIZER,) if foreground else (),
        deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC) if foreground else None,
    )


def check(graph: OwnerGraph, gone: Collection[str]) -> None:
    """Dependents are those that list the owner; one found absent is not linked again, as uids do not return."""
    known = {uid: node for name in NAMES if (node := graph.get(uid := f"uid-{name}")) is not None}
    assert len(known) == len(graph)
    for uid, node in known.items():
        listed = {each.uid for each in known.values() if any(item.uid == uid for item in each.owners)}
        assert set(node.dependents) <= listed
        assert all(node.dependents[each] is known[each] for each in node.dependents)
        if uid not in gone:
            assert set(node.dependents) == listed


changes = st.lists(
    st.tuples(
        st.sampled_from(("observe", "remove", "absent")),
        st.sampled_from(NAMES),
        st.frozensets(st.sampled_from(NAMES), max_size=3),
        st.booleans(),
    ),
    max_size=25,
)


@settings(max_examples=300)
@given(changes)
def test_dependents_are_always_exactly_those_that_name_the_owner(
    given_changes: list[tuple[str, str, frozenset[str], bool]],
) -> None:
    graph = OwnerGraph()
    seen: dict[str, ObjectMeta] = {}
    gone: set[str] = set()
    for change, name, owners, blocks in given_changes:
        if change == "observe":
            new = meta(name, [owner(each, blocks=blocks) for each in sorted(owners)])
            graph.observe(identity(name), seen.get(name), new)
            seen[name] = new
        elif change == "remove" and seen.pop(name, None) is not None:
            graph.remove(identity(name))
            gone.add(f"uid-{name}")
        elif change == "absent" and name not in seen:
            graph.remove_absent(identity(name))
            gone.add(f"uid-{name}")
        check(graph, gone)
        for each in NAMES:
            node = graph.get(f"uid-{each}")
            assert node is None or node.virtual == (each not in seen)


def test_an_owner_only_heard_of_is_looked_up_and_its_end_reaches_the_dependents() -> None:
    graph = OwnerGraph()
    effects = graph.observe(identity("a"), None, meta("a", [owner("b")]))
    assert list(effects.delete) == ["uid-b"]
    assert graph.get("uid-b").virtual
    effects = graph.remove_absent(identity("b"))
    assert list(effects.delete) == ["uid-a"]
    assert identity("b") in graph.absent


def test_an_owner_that_turns_up_is_no_longer_virtual_and_nobody_is_examined() -> None:
    graph = OwnerGraph()
    graph.observe(identity("a"), None, meta("a", [owner("b")]))
    effects = graph.observe(identity("b"), None, meta("b"))
    assert not graph.get("uid-b").virtual
    assert not effects.delete


def test_an_owner_in_another_namespace_is_reported_and_its_dependent_examined() -> None:
    graph = OwnerGraph()
    graph.observe(identity("b", "other"), None, meta("b"))
    effects = graph.observe(identity("a"), None, meta("a", [owner("b")]))
    assert list(effects.delete) == ["uid-a"]
    assert [(found.name, reference.name) for found, reference in effects.wrong_namespace] == [("a", "b")]


def test_foreground_deletion_examines_all_dependents_and_the_owner_after_the_last() -> None:
    graph = OwnerGraph()
    graph.observe(identity("b"), None, meta("b"))
    for name in "ac":
        graph.observe(identity(name), None, meta(name, [owner("b", blocks=True)]))
    effects = graph.observe(identity("b"), meta("b"), meta("b", foreground=True))
    assert list(effects.delete) == ["uid-a", "uid-c", "uid-b"]
    assert [node.uid for node in graph.get("uid-b").blocking_dependents()] == ["uid-a", "uid-c"]
    assert list(graph.remove(identity("a")).delete) == ["uid-b"]


def test_a_reference_that_no_longer_blocks_wakes_the_owner() -> None:
    graph = OwnerGraph()
    graph.observe(identity("b"), None, meta("b"))
    before = meta("a", [owner("b", blocks=True)])
    graph.observe(identity("a"), None, before)
    effects = graph.observe(identity("a"), before, meta("a", [owner("b")]))
    assert list(effects.delete) == ["uid-b"]


def test_an_absent_owner_is_remembered_and_the_oldest_forgotten() -> None:
    graph = OwnerGraph()
    for number in range(501):
        graph.absent.add(identity(str(number)))
    assert identity("0") not in graph.absent
    assert identity("500") in graph.absent
