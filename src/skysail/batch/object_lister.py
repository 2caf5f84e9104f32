"""An informer's store as pod plugins look at it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from skysail.informer.keys import Key
from skysail.informer.shared_informer import SharedInformer
from skysail.scheduler.framework.handle import Lister


class ObjectLister(Lister[Any]):
    """An informer's lister in the form that pod plugins want."""

    def __init__(self, informer: SharedInformer[Any]) -> None:
        self._lister = informer.lister

    def get(self, namespace: str, name: str) -> Any | None:
        """One object; `namespace` is empty for cluster-scoped kinds."""
        return self._lister.get(Key(namespace, name))

    def list(self, namespace: str | None = None) -> Sequence[Any]:
        """All objects, or those of one namespace."""
        return self._lister.list(namespace or "")

    def indexed(self, name: str, values: Callable[[Any], Iterable[str]]) -> Callable[[str], Sequence[Any]]:
        """How to find objects by the values that a function gives: the informer keeps an index of them."""
        own_name = f"batch {name}"
        self._lister.indexer.add_indexes({own_name: values})
        return lambda value: self._lister.by_index(own_name, value)
