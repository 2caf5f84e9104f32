"""Informers: a local, indexed, always-following copy of a collection on the API server.

Here lives client-go's pipeline: `Reflector` -> `DeltaFIFO` -> `Indexer` -> `SharedInformer` -> handlers, and the
`InformerFactory` that shares them. What to do about a change never belongs here: handlers only hear of it. Everything
above uses this room; it uses `client` (through a protocol) and `api`.

Pure: `keys`, `indexer`, `delta_fifo`, `handlers`, `lister`, `versions`, `resync`, `backoff`, `patience`, `sharing`,
`source`, `metrics`, `discovery`. Shells: `reflector`, `watchdog`, `listener`, `shared_informer`, `factory`,
`supervisor`.

Read in this order: `keys`, `delta_fifo`, `indexer`, `handlers`, `versions`, `reflector`, `listener`,
`shared_informer`, `factory`.

>>> from skysail.api.core import Pod
>>> from skysail.api.meta import ObjectMeta
>>> cache = Indexer[Pod]({"node": lambda pod: (pod.spec.node_name,)})
>>> _ = cache.put(Pod(metadata=ObjectMeta(namespace="default", name="web")))
>>> [str(key_of(pod)) for pod in cache.by_index("namespace", "default")]
['default/web']
"""

from skysail.informer.backoff import Backoff, BackoffSettings
from skysail.informer.delta_fifo import Delta, DeltaFIFO, DeltaType, Requeue
from skysail.informer.factory import InformerFactory
from skysail.informer.handlers import EventHandler, FilteringHandler, Handlers
from skysail.informer.indexer import NAMESPACE_INDEX, Indexer, IndexFunction
from skysail.informer.keys import (
    DeletedFinalStateUnknown,
    Key,
    annotations_of,
    controller_of,
    generation_of,
    key_of,
    labels_of,
    live_object,
    owners_of,
    uid_of,
    version_of,
)
from skysail.informer.listener import Listener
from skysail.informer.lister import Lister
from skysail.informer.metrics import InformerMetrics
from skysail.informer.patience import ReflectorSettings
from skysail.informer.reflector import Reflector
from skysail.informer.shared_informer import InformerStateError, InformerStatistics, SharedInformer
from skysail.informer.source import ClientSource, ReadingClient, Scope, Source

__all__ = [
    "NAMESPACE_INDEX",
    "Backoff",
    "BackoffSettings",
    "ClientSource",
    "DeletedFinalStateUnknown",
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "EventHandler",
    "FilteringHandler",
    "Handlers",
    "IndexFunction",
    "Indexer",
    "InformerFactory",
    "InformerMetrics",
    "InformerStateError",
    "InformerStatistics",
    "Key",
    "Listener",
    "Lister",
    "ReadingClient",
    "Reflector",
    "ReflectorSettings",
    "Requeue",
    "Scope",
    "SharedInformer",
    "Source",
    "annotations_of",
    "controller_of",
    "generation_of",
    "key_of",
    "labels_of",
    "live_object",
    "owners_of",
    "uid_of",
    "version_of",
]
