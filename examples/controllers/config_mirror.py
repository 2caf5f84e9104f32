"""Mirrors ConfigMaps labelled `example.com/mirror=true` into every namespace labelled `example.com/mirrors=true`.

    python examples/controllers/config_mirror.py --kubeconfig my.kubeconfig --leader-elect

Shows: several kinds woken by one another, an index, server-side apply, and cleaning up: a mirror whose source is gone
goes too, because a deletion wakes its key like any other change.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from skysail.api.cluster import ConfigMap, Namespace
from skysail.api.kinds import CONFIGMAPS
from skysail.cli.run_controllers import run_controllers
from skysail.controller import Controller, For, Key, Watch, Watches

MIRROR, MIRRORS, SOURCE = "example.com/mirror", "example.com/mirrors", "example.com/source"


def by_source(config_map: ConfigMap) -> Iterable[str]:
    """Mirrors are found by the key of their source, which an annotation holds."""
    source = config_map.metadata.annotations.get(SOURCE)
    return (source,) if source else ()


class ConfigMirror(Controller):
    """Keeps mirrors equal to their source."""

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Sources, their mirrors, and the namespaces they are mirrored into."""
        return (For(ConfigMap), Watches(ConfigMap, map=self.source_of), Watches(Namespace, map=self.all_sources))

    def setup(self) -> None:
        """One look-up finds all mirrors of a source."""
        self.informer(ConfigMap).add_indexes({"source": by_source})

    def source_of(self, config_map: ConfigMap) -> Iterable[Key]:
        """A mirror that is changed or deleted by somebody is put right."""
        return [Key.parse(source) for source in by_source(config_map)]

    def all_sources(self, namespace: Namespace) -> Iterable[Key]:
        """A namespace that appears, or changes its label, concerns every source."""
        return [Key(each.namespace, each.name) for each in self.lister(ConfigMap).list() if is_source(each)]

    async def reconcile(self, key: Key) -> None:
        """Make, change and delete the mirrors of one source."""
        source = self.lister(ConfigMap).get(key)
        wanted: set[str] = set()
        if source is not None and is_source(source):
            namespaces = self.lister(Namespace).list()
            wanted = {each.name for each in namespaces if each.metadata.labels.get(MIRRORS) == "true"} - {key.namespace}
        mirrors = {mirror.namespace: mirror for mirror in self.lister(ConfigMap).by_index("source", str(key))}
        for namespace in mirrors.keys() - wanted:
            await self.client.delete(CONFIGMAPS, key.name, namespace, uid=mirrors[namespace].uid)
        for namespace in sorted(wanted):
            mirror = mirrors.get(namespace)
            if source is not None and (mirror is None or mirror.data != source.data):
                meta = {"name": key.name, "namespace": namespace, "annotations": {SOURCE: str(key)}}
                body = {"metadata": meta, "data": dict(source.data)}
                await self.client.apply(CONFIGMAPS, body, field_manager="config-mirror", force=True)


def is_source(config_map: ConfigMap) -> bool:
    """Whether a ConfigMap asks to be mirrored, and is no mirror itself."""
    meta = config_map.metadata
    return meta.labels.get(MIRROR) == "true" and SOURCE not in meta.annotations


if __name__ == "__main__":
    run_controllers(ConfigMirror())
