"""From a change to keys."""

import pytest

from skysail.api.apps import Deployment, ReplicaSet
from skysail.api.core import Pod
from skysail.api.kinds import DEPLOYMENTS, NODES, REPLICASETS, Kind
from skysail.api.labels import Selector
from skysail.api.meta import ObjectMeta, OwnerReference
from skysail.controller import LOW_PRIORITY, Added, Deleted, For, Key, ObjectEvent, Owns, Updated, Watch, Watches
from skysail.controller.predicates import (
    annotations_changed,
    any_of,
    generation_changed,
    in_namespaces,
    labels_changed,
    matches,
    negated,
    version_changed,
)
from skysail.controller.watches import WatchHandler
from skysail.informer import DeletedFinalStateUnknown


def owner(name, kind="ReplicaSet", api_version="apps/v1", controller=True):
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=f"uid-{name}", controller=controller)


def pod(name="p", version="1", *, owners=(), labels=None, generation=0, namespace="default", annotations=None):
    return Pod(metadata=ObjectMeta(
        name=name, namespace=namespace, resource_version=version, owner_references=owners, labels=labels or {},
        generation=generation, annotations=annotations or {},
    ))  # fmt: skip


def woken(watch, act, root=REPLICASETS):
    """The keys enqueued when the handler of a watch is told something."""
    keys = []
    act(WatchHandler(watch, root, lambda key, priority: keys.append((str(key), priority))))
    return keys


def test_for_wakes_the_object_itself():
    rs = ReplicaSet(metadata=ObjectMeta(name="web", namespace="default"))
    assert woken(For(ReplicaSet), lambda handler: handler.on_add(rs, False)) == [("default/web", 0)]


def test_initial_adds_and_resyncs_have_low_priority():
    assert woken(For(Pod), lambda handler: handler.on_add(pod(), True)) == [("default/p", LOW_PRIORITY)]
    assert woken(For(Pod), lambda handler: handler.on_update(pod(), pod())) == [("default/p", LOW_PRIORITY)]
    assert woken(For(Pod), lambda handler: handler.on_update(pod(), pod(version="2"))) == [("default/p", 0)]


def test_owns_wakes_the_controller_of_the_right_kind_only():
    watch = Owns(Pod)
    assert woken(watch, lambda h: h.on_add(pod(owners=(owner("web"),)), False)) == [("default/web", 0)]
    for stranger in (owner("web", kind="Job"), owner("web", api_version="other/v1"), owner("web", controller=None)):
        assert woken(watch, lambda h, o=stranger: h.on_add(pod(owners=(o,)), False)) == []


def test_owns_understands_another_version_of_the_owners_group():
    reference = owner("web", api_version="apps/v1beta2")
    assert woken(Owns(Pod), lambda h: h.on_add(pod(owners=(reference,)), False)) == [("default/web", 0)]


def test_owns_may_wake_every_owner_not_only_the_controller():
    child = pod(owners=(owner("a", controller=None), owner("b")))
    watch = Owns(Pod, controller_only=False)
    assert [key for key, _ in woken(watch, lambda h: h.on_add(child, False))] == ["default/a", "default/b"]


def test_the_key_of_a_cluster_scoped_owner_has_no_namespace():
    child = pod(owners=(owner("n1", kind="Node", api_version="v1"),))
    assert woken(Owns(Pod), lambda h: h.on_add(child, False), root=NODES) == [("n1", 0)]


def test_a_child_that_changes_owners_wakes_both_once():
    old, new = pod(owners=(owner("a"),)), pod(version="2", owners=(owner("b"),))
    assert [key for key, _ in woken(Owns(Pod), lambda h: h.on_update(old, new))] == ["default/a", "default/b"]
    same = pod(version="3", owners=(owner("b"),))
    assert [key for key, _ in woken(Owns(Pod), lambda h: h.on_update(new, same))] == ["default/b"]


def test_a_map_gives_any_keys_and_on_chooses_the_changes():
    watch = Watches(Pod, map=lambda obj: [Key("x", obj.name), Key("y", obj.name)], on=(Deleted,))
    assert woken(watch, lambda h: h.on_add(pod(), False)) == []
    assert woken(watch, lambda h: h.on_update(pod(), pod(version="2"))) == []
    assert [key for key, _ in woken(watch, lambda h: h.on_delete(pod()))] == ["x/p", "y/p"]


def test_a_tombstone_wakes_whom_its_object_would():
    watch = Owns(Pod)
    tombstone = DeletedFinalStateUnknown(Key("default", "p"), pod(owners=(owner("web"),)))
    assert woken(watch, lambda h: h.on_delete(tombstone)) == [("default/web", 0)]


def test_a_tombstone_that_knows_nothing_still_wakes_the_object_itself():
    tombstone = DeletedFinalStateUnknown(Key("default", "p"), None)
    assert woken(For(Pod), lambda h: h.on_delete(tombstone)) == [("default/p", 0)]
    assert woken(For(Pod, on=(Added,)), lambda h: h.on_delete(tombstone)) == []
    assert woken(Owns(Pod), lambda h: h.on_delete(tombstone)) == []


def test_a_watch_without_a_meaning_or_an_owner_without_a_kind_is_refused():
    with pytest.raises(TypeError, match="use For, Owns or Watches"):
        woken(Watch(Pod), lambda h: h.on_add(pod(), False))
    with pytest.raises(TypeError, match="Owns needs a For"):
        woken(Owns(Pod), lambda h: h.on_add(pod(), False), root=None)
    with pytest.raises(TypeError, match="without an object"):
        _ = ObjectEvent(Added, None, None).object


def test_a_watch_knows_its_kind_by_struct_or_descriptor():
    widgets = Kind("example.com", "v1", "Widget", "widgets", True, dict)
    assert Watch(Deployment).descriptor is DEPLOYMENTS
    assert Watch(widgets).descriptor is widgets


UPDATE = {
    generation_changed: (pod(generation=1), pod(generation=2), pod(version="2", generation=1)),
    version_changed: (pod(), pod(version="2"), pod()),
    labels_changed: (pod(), pod(labels={"a": "b"}), pod(version="2")),
    annotations_changed: (pod(), pod(annotations={"a": "b"}), pod(version="2")),
}


@pytest.mark.parametrize("predicate", UPDATE)
def test_predicates_on_what_changed_let_adds_and_deletes_through(predicate):
    old, changed, unchanged = UPDATE[predicate]
    assert predicate(ObjectEvent(Updated, old, changed))
    assert not predicate(ObjectEvent(Updated, old, unchanged))
    assert predicate(ObjectEvent(Added, None, old))
    assert predicate(ObjectEvent(Deleted, old, None))


def test_predicates_on_the_object_look_at_its_newest_state():
    web = matches(Selector.parse("app=web"))
    assert web(ObjectEvent(Updated, pod(), pod(labels={"app": "web"})))
    assert not web(ObjectEvent(Deleted, pod(), None))
    here = in_namespaces({"default"})
    assert here(ObjectEvent(Added, None, pod()))
    assert not here(ObjectEvent(Added, None, pod(namespace="other")))


def test_predicates_combine():
    web, here = matches(Selector.parse("app=web")), in_namespaces({"default"})
    event = ObjectEvent(Added, None, pod())
    assert any_of(web, here)(event)
    assert not any_of(web)(event)
    assert negated(web)(event)


def test_all_predicates_of_a_watch_must_agree():
    watch = For(Pod, predicates=(generation_changed, labels_changed))
    assert woken(watch, lambda h: h.on_update(pod(), pod(version="2", generation=1))) == []
    both = pod(version="2", generation=1, labels={"a": "b"})
    assert woken(watch, lambda h: h.on_update(pod(), both)) == [("default/p", 0)]
