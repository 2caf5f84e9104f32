"""The indexed cache."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skysail.api.errors import InvariantBroken
from skysail.api.labels import Selector
from skysail.informer import Indexer, Key, Lister, key_of
from tests.informer.collection import pod


def by_node(obj):
    return (obj.spec.node_name,) if obj.spec.node_name else ()


def by_letters(obj):
    return tuple(obj.name)


def names(objects):
    return [obj.name for obj in objects]


def test_objects_are_found_by_namespace_without_asking_for_an_index():
    cache = Indexer()
    cache.put(pod("a", namespace="x"))
    cache.put(pod("b", namespace="y"))
    assert names(cache.by_index("namespace", "x")) == ["a"]
    assert cache.index_values("namespace") == ("x", "y")


def test_an_update_moves_an_object_between_index_values():
    cache = Indexer({"node": by_node})
    cache.put(pod("a", node="n1"))
    assert cache.put(pod("a", node="n2")).spec.node_name == "n1"
    assert cache.by_index("node", "n1") == ()
    assert names(cache.by_index("node", "n2")) == ["a"]
    assert cache.index_values("node") == ("n2",)


def test_the_index_gives_the_newest_version_when_the_value_stays():
    cache = Indexer({"node": by_node})
    cache.put(pod("a", "1", node="n1"))
    cache.put(pod("a", "2", node="n1"))
    assert cache.by_index("node", "n1")[0].metadata.resource_version == "2"


def test_an_object_may_have_several_values_or_none():
    cache = Indexer({"letters": by_letters, "node": by_node})
    cache.put(pod("abc"))
    cache.put(pod("cd"))
    assert names(cache.by_index("letters", "c")) == ["abc", "cd"]
    assert cache.keys_by_index("letters", "d") == (Key("default", "cd"),)
    assert cache.count_by_index("letters", "c") == 2
    assert cache.count_by_index("letters", "z") == 0
    assert cache.by_index("node", "") == ()


def test_an_index_added_late_covers_what_is_there():
    cache = Indexer()
    cache.put(pod("a", node="n1"))
    cache.add_indexes({"node": by_node})
    assert names(cache.by_index("node", "n1")) == ["a"]
    assert cache.index_names == ("namespace", "node")


def test_the_same_index_may_be_asked_for_twice_but_another_of_its_name_may_not():
    cache = Indexer({"node": by_node})
    cache.add_indexes({"node": by_node})
    with pytest.raises(ValueError, match="another index is named 'node'"):
        cache.add_indexes({"other": by_letters, "node": by_letters})
    assert "other" not in cache.index_names
    with pytest.raises(ValueError, match="another index is named 'namespace'"):
        cache.add_indexes({"namespace": by_node})


def test_an_unknown_index_is_an_error():
    with pytest.raises(KeyError):
        Indexer().by_index("nope", "x")


def test_remove_and_replace_leave_no_trace_in_the_indexes():
    cache = Indexer({"node": by_node})
    cache.put(pod("a", node="n1"))
    assert cache.remove(Key("default", "a")).name == "a"
    assert cache.remove(Key("default", "a")) is None
    assert cache.index_values("node") == ()
    cache.put(pod("b", node="n1"))
    cache.replace([pod("c", node="n2")])
    assert cache.list_keys() == (Key("default", "c"),)
    assert cache.index_values("node") == ("n2",)
    assert Key("default", "c") in cache
    assert names(cache) == ["c"]


def test_validate_names_the_index_that_disagrees():
    cache = Indexer({"node": by_node})
    cache.put(pod("a", node="n1"))
    cache._buckets["node"].clear()
    with pytest.raises(InvariantBroken, match="index 'node'"):
        cache.validate()


def test_a_lister_reads_by_key_name_namespace_selector_and_index():
    cache = Indexer({"node": by_node})
    lister = Lister(cache)
    cache.put(pod("a", labels={"app": "web"}, node="n1"))
    cache.put(pod("b", labels={"app": "db"}, node="n1"))
    cache.put(pod("a", namespace="other", labels={"app": "web"}))
    web = Selector.parse("app=web")
    assert len(lister) == 3
    assert lister.get(Key("default", "b")).name == "b"
    assert lister.named("b", "default").name == "b"
    assert lister.get(Key("default", "zzz")) is None
    assert names(lister.list()) == ["a", "b", "a"]
    assert names(lister.list("default")) == ["a", "b"]
    assert names(lister.list(selector=web)) == ["a", "a"]
    assert names(lister.list("default", web)) == ["a"]
    assert names(lister.list("default", Selector.parse(""))) == ["a", "b"]
    assert names(lister.by_index("node", "n1")) == ["a", "b"]


class IndexerMachine(RuleBasedStateMachine):
    """An indexer and a plain dictionary agree about everything, whatever happened."""

    def __init__(self):
        super().__init__()
        self.cache = Indexer({"node": by_node, "letters": by_letters})
        self.model = {}
        self.late = False

    objects = st.builds(
        pod,
        st.sampled_from(["a", "ab", "abc", "b"]),
        st.integers(1, 3),
        namespace=st.sampled_from(["x", "y"]),
        node=st.sampled_from(["", "n1", "n2"]),
    )

    @rule(obj=objects)
    def put(self, obj):
        assert self.cache.put(obj) == self.model.get(key_of(obj))
        self.model[key_of(obj)] = obj

    @rule(obj=objects)
    def remove(self, obj):
        assert self.cache.remove(key_of(obj)) == self.model.pop(key_of(obj), None)

    @rule(objects=st.lists(objects, max_size=5))
    def replace(self, objects):
        self.cache.replace(objects)
        self.model = {key_of(obj): obj for obj in objects}

    @rule()
    def add_index(self):
        self.cache.add_indexes({"late": by_node})
        self.late = True

    @invariant()
    def agree(self):
        self.cache.validate()
        assert dict(zip(self.cache.list_keys(), self.cache.list(), strict=True)) == self.model
        for index, function in (("node", by_node), ("letters", by_letters), *([("late", by_node)] * self.late)):
            values = {value for obj in self.model.values() for value in function(obj)}
            assert set(self.cache.index_values(index)) == values
            for value in values:
                wanted = {key for key, obj in self.model.items() if value in function(obj)}
                assert set(self.cache.keys_by_index(index, value)) == wanted


IndexerMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestIndexerMachine = IndexerMachine.TestCase
