"""The structs of `kubescheduler.config.k8s.io/v1`, with their defaults.

Where "unset" means something else than a zero value, the field is None. Fields that Skysail accepts but does not need
(profiling, content types) are kept, so that a user's file is taken as it is.

Source: k8s.io/kube-scheduler/config/v1/types.go, pkg/scheduler/apis/config/v1/defaults.go, v1.36.
Differs: `percentageOfNodesToScore` unset means every node. `clientConnection.qps` and `burst` unset mean no limit of
our own: the server's 429s are honoured instead.
"""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from skysail.api.raw import Raw

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ConfigStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the configuration: frozen, strict."""


class PluginRef(ConfigStruct, frozen=True):
    """A plugin by name; the weight matters to Score only, and 0 or none means 1."""

    name: str = ""
    weight: Int32 | None = None


class PluginSet(ConfigStruct, frozen=True):
    """Plugins to run besides the default ones, and default ones (or `*`) not to run."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class Plugins(ConfigStruct, frozen=True):
    """A set for each extension point, and one for all points a plugin has."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()


class PluginConfig(ConfigStruct, frozen=True):
    """One plugin's arguments, not yet decoded: their shape is the plugin's affair."""

    name: str = ""
    args: Raw | None = None


class KubeSchedulerProfile(ConfigStruct, frozen=True):
    """A way of scheduling, chosen by the pod's `spec.schedulerName`."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[PluginConfig, ...] = ()


class LeaderElectionConfiguration(ConfigStruct, frozen=True):
    """Who leads among several replicas; durations as Go writes them."""

    leader_elect: bool = True
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnectionConfiguration(ConfigStruct, frozen=True):
    """How to reach the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 0.0
    burst: Int32 = 0


class ExtenderManagedResource(ConfigStruct, frozen=True):
    """An extended resource that an extender looks after."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderTLSConfig(ConfigStruct, frozen=True):
    """TLS towards an extender."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = msgspec.field(default="", name="caFile")
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = msgspec.field(default="", name="caData")


class Extender(ConfigStruct, frozen=True):
    """An HTTP service that filters, scores or binds in the scheduler's place."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: str = msgspec.field(default="0s", name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(ConfigStruct, frozen=True):
    """The whole file.

    Attributes:
        parallelism: Bounds concurrent binds and extender calls; one process computes on one core.
        leader_election: See there.
        client_connection: See there.
        percentage_of_nodes_to_score: 0..100; None looks at every node, 0 adapts to the cluster's size.
        pod_initial_backoff_seconds: Wait after a pod's first refusal.
        pod_max_backoff_seconds: Longest wait.
        profiles: At least one, with distinct names.
        extenders: Shared by all profiles.
        delay_cache_until_active: Fill caches only once leading.
    """

    api_version: str = API_VERSION
    kind: str = KIND
    parallelism: Int32 = 16
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False


POINTS: Final[Mapping[str, str]] = {
    "pre_filter": "PreFilterPlugin",
    "filter": "FilterPlugin",
    "post_filter": "PostFilterPlugin",
    "reserve": "ReservePlugin",
    "pre_score": "PreScorePlugin",
    "score": "ScorePlugin",
    "pre_bind": "PreBindPlugin",
    "bind": "BindPlugin",
    "post_bind": "PostBindPlugin",
    "permit": "PermitPlugin",
    "pre_enqueue": "PreEnqueuePlugin",
    "queue_sort": "QueueSortPlugin",
}
"""The extension points in the order in which they are resolved, with the names upstream's messages use."""

WIRE_POINTS: Final[Mapping[str, str]] = {field.name: field.encode_name for field in msgspec.structs.fields(Plugins)}
"""The name of each point's field as it is written: `pre_filter` is `preFilter`."""
