"""The rows of the core group."""

from collections.abc import Mapping

from skysail.apiserver.strategies.cluster import (
    ClaimStrategy,
    NamespaceStrategy,
    NodeStrategy,
    PersistentVolumeStrategy,
)
from skysail.apiserver.strategies.defaults import core, pods, workloads
from skysail.apiserver.strategies.events import EventStrategy
from skysail.apiserver.strategies.generic import SPEC, STATUS_REPLICAS, GenericStrategy, Rules
from skysail.apiserver.strategies.pods import PodStrategy
from skysail.apiserver.strategies.services import ServiceStrategy
from skysail.apiserver.strategies.workloads import (
    PodControllerStrategy,
    TemplateStrategy,
)
from skysail.apiserver.validation import (
    apps,
    claims,
    configs,
    endpoints,
    events,
    limits,
    namespaces,
    nodes,
    persistent_volumes,
    quotas,
    services,
)
from skysail.apiserver.validation.names import dns_label
from skysail.apiserver.validation.pod_update import pod_update
from skysail.apiserver.validation.pods import pod_create, pod_template_object

CORE: Mapping[str, GenericStrategy] = {
    "pods": PodStrategy(
        Rules(
            returns_deleted=True, defaults=pods.pod, validate=pod_create, validate_update=pod_update, revalidate=False
        )
    ),
    "nodes": NodeStrategy(
        Rules(
            defaults=core.node,
            validate=nodes.node,
            validate_update=nodes.node_update,
            revalidate=False,
            fields={"spec.unschedulable": ("spec", "unschedulable")},
        )
    ),
    "namespaces": NamespaceStrategy(
        Rules(
            name_check=dns_label,
            returns_deleted=True,
            defaults=core.namespace,
            validate=namespaces.namespace,
            validate_update=namespaces.namespace_update,
            revalidate=False,
            fields={"status.phase": ("status", "phase"), "name": ("metadata", "name")},
        )
    ),
    "services": ServiceStrategy(
        Rules(
            name_check=dns_label,
            create_on_update=True,
            returns_deleted=True,
            defaults=core.service,
            validate=services.service,
            validate_update=services.service_update,
            revalidate=False,
            fields={"spec.clusterIP": ("spec", "clusterIP"), "spec.type": ("spec", "type")},
        )
    ),
    "events": EventStrategy(
        Rules(
            create_on_update=True,
            defaults=core.event,
            validate=events.core_event,
            validate_update=events.core_event_update,
            revalidate=False,
        )
    ),
    "configmaps": GenericStrategy(
        Rules(validate=configs.config_map, validate_update=configs.config_map_update, revalidate=False)
    ),
    "secrets": GenericStrategy(
        Rules(
            defaults=core.secret,
            validate=configs.secret,
            validate_update=configs.secret_update,
            revalidate=False,
            fields={"type": ("type",)},
        )
    ),
    "serviceaccounts": GenericStrategy(Rules(returns_deleted=True, validate_update=configs.service_account_update)),
    "endpoints": GenericStrategy(
        Rules(
            create_on_update=True,
            defaults=core.endpoints,
            validate=endpoints.endpoints,
            validate_update=endpoints.endpoints_update,
            revalidate=False,
        )
    ),
    "limitranges": GenericStrategy(
        Rules(
            create_on_update=True,
            defaults=core.limit_range,
            validate=limits.limit_range,
            validate_update=limits.limit_range_update,
            revalidate=False,
        )
    ),
    "resourcequotas": GenericStrategy(
        Rules(
            status=True,
            returns_deleted=True,
            defaults=core.resource_quota,
            validate=quotas.resource_quota,
            validate_update=quotas.resource_quota_update,
            revalidate=False,
        )
    ),
    "persistentvolumes": PersistentVolumeStrategy(
        Rules(
            status=True,
            returns_deleted=True,
            defaults=core.persistent_volume,
            validate=persistent_volumes.persistent_volume,
            validate_update=persistent_volumes.persistent_volume_update,
            revalidate=False,
            fields={"name": ("metadata", "name")},
        )
    ),
    "persistentvolumeclaims": ClaimStrategy(
        Rules(
            status=True,
            first_status={"phase": "Pending"},
            returns_deleted=True,
            defaults=core.persistent_volume_claim,
            validate=claims.claim,
            validate_update=claims.claim_update,
            fields={"name": ("metadata", "name")},
        )
    ),
    "podtemplates": TemplateStrategy(
        Rules(
            generation=("template",),
            returns_deleted=True,
            defaults=workloads.pod_template_object,
            validate=pod_template_object,
        ),
        ("template",),
    ),
    "replicationcontrollers": PodControllerStrategy(
        Rules(
            status=True,
            first_status={"replicas": 0},
            generation=SPEC,
            defaults=workloads.replication_controller,
            validate=apps.replication_controller,
            fields=STATUS_REPLICAS,
        )
    ),
}
