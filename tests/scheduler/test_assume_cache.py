"""What is assumed stands until the object moves on, and is taken back exactly once."""

import msgspec

from skysail.api.storage import PersistentVolume
from skysail.scheduler.cache.assume_cache import AssumeCache
from skysail.testing.volumes import make_volume


class Store:
    """The objects as last seen."""

    def __init__(self, *volumes: PersistentVolume) -> None:
        self.volumes = {volume.name: volume for volume in volumes}

    def get(self, namespace: str, name: str) -> PersistentVolume | None:
        return self.volumes.get(name)

    def list(self, namespace: str | None = None) -> list[PersistentVolume]:
        return list(self.volumes.values())


def version(volume: PersistentVolume, number: str) -> PersistentVolume:
    return msgspec.structs.replace(volume, metadata=msgspec.structs.replace(volume.metadata, resource_version=number))


def taken(volume: PersistentVolume) -> PersistentVolume:
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, volume_mode="Block"))


ONE = version(make_volume("one"), "1")
TWO = version(make_volume("two"), "2")


def test_an_assumed_object_stands_for_the_stored_one_in_every_read_but_one():
    cache = AssumeCache(Store(ONE, TWO))
    assert cache.assume(taken(ONE))
    assert cache.get("", "one") == taken(ONE)
    assert cache.list() == [taken(ONE), TWO]
    assert cache.stored("", "one") == ONE


def test_whatever_the_server_says_later_wins():
    store = Store(ONE, TWO)
    cache = AssumeCache(store)
    cache.assume(taken(ONE))
    store.volumes["one"] = version(ONE, "5")
    assert cache.get("", "one") == version(ONE, "5")
    assert cache.list() == [version(ONE, "5"), TWO]
    assert len(cache) == 0


def test_an_object_that_moved_on_or_is_gone_cannot_be_assumed():
    cache = AssumeCache(Store(version(ONE, "3")))
    assert not cache.assume(taken(ONE))
    assert not cache.assume(TWO)
    assert len(cache) == 0


def test_an_object_that_is_gone_is_not_read_from_an_assumption():
    store = Store(ONE)
    cache = AssumeCache(store)
    cache.assume(taken(ONE))
    del store.volumes["one"]
    assert cache.get("", "one") is None
    assert cache.list() == []
    assert len(cache) == 0


def test_restoring_takes_the_assumption_back_and_does_nothing_twice():
    cache = AssumeCache(Store(ONE))
    cache.assume(taken(ONE))
    cache.restore(taken(ONE))
    cache.restore(taken(ONE))
    assert cache.get("", "one") == ONE


def test_what_was_written_meanwhile_is_not_taken_back():
    """The writer holds the version the server gave out, the cache still shows the one before."""
    cache = AssumeCache(Store(ONE))
    cache.assume(taken(ONE))
    cache.restore(version(taken(ONE), "9"))
    assert cache.get("", "one") == taken(ONE)
