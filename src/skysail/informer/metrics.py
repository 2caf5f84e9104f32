"""What is counted about informers.

`reflector_*` names without a star in their help are client-go's; `reflector_healthy`, `reflector_staleness_seconds` and
`informer_*` are ours. The label `resource` is `pods`, `deployments.apps`, ... with namespace and selector if there are.
"""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class InformerMetrics:
    """The metric families of all informers of one registry; `for_scope` gives one informer its share."""

    def __init__(self, registry: CollectorRegistry) -> None:
        label = ("resource",)
        self.lists = Counter("reflector_lists_total", "Lists done by a reflector", label, registry=registry)
        self.list_items = Histogram(
            "reflector_items_per_list", "Objects a list gave", label, registry=registry,
            buckets=(1, 10, 100, 1_000, 10_000, 100_000),
        )  # fmt: skip
        self.watches = Counter("reflector_watches_total", "Watches opened by a reflector", label, registry=registry)
        self.short_watches = Counter(
            "reflector_short_watches_total", "Watches that ended within a second, empty", label, registry=registry
        )
        self.failures = Counter(
            "reflector_failures_total", "Rounds of a reflector that ended in an error", label, registry=registry
        )
        self.events = Counter("reflector_events_total", "Watch events received", label, registry=registry)
        self.healthy = Gauge(
            "reflector_healthy", "1 while the reflector follows a watch, else 0", label, registry=registry
        )
        self.staleness = Gauge(
            "reflector_staleness_seconds", "Seconds since the server was last heard of", label, registry=registry
        )
        self.objects = Gauge("informer_objects", "Objects in the cache", label, registry=registry)
        self.pending = Gauge(
            "informer_pending_notifications", "Notifications a handler has not got yet",
            ("resource", "handler"), registry=registry,
        )  # fmt: skip
        self.handler_failures = Counter(
            "informer_handler_failures_total", "Notifications a handler failed on",
            ("resource", "handler"), registry=registry,
        )  # fmt: skip

    def for_scope(self, resource: str) -> "ScopeMetrics":
        """The metrics of one informer."""
        return ScopeMetrics(self, resource)


class ScopeMetrics:
    """One informer's metrics."""

    def __init__(self, families: InformerMetrics, resource: str) -> None:
        self._families, self._resource = families, resource
        self.lists = families.lists.labels(resource)
        self.list_items = families.list_items.labels(resource)
        self.watches = families.watches.labels(resource)
        self.short_watches = families.short_watches.labels(resource)
        self.failures = families.failures.labels(resource)
        self.events = families.events.labels(resource)

    def observe(self, healthy: Callable[[], float], staleness: Callable[[], float], objects: Callable[[], int]) -> None:
        """Read these values whenever the metrics are asked for."""
        self._families.healthy.labels(self._resource).set_function(healthy)
        self._families.staleness.labels(self._resource).set_function(staleness)
        self._families.objects.labels(self._resource).set_function(objects)

    def observe_handler(self, handler: str, pending: Callable[[], int]) -> None:
        """Read a handler's backlog whenever the metrics are asked for."""
        self._families.pending.labels(self._resource, handler).set_function(pending)

    def handler_failed(self, handler: str) -> None:
        """A handler raised."""
        self._families.handler_failures.labels(self._resource, handler).inc()
