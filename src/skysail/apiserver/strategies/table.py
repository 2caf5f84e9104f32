"""Which strategy serves which resource: the explicit table.

A row per kind; a kind without one gets `DEFAULT`. Adding a kind: its defaults in `defaults/`, its checks in
`validation/`, one row here.
"""

from collections.abc import Mapping

from skysail.apiserver.contract import GroupResource
from skysail.apiserver.strategies.cluster import (
    EndpointSliceStrategy,
    NamespaceStrategy,
    NodeStrategy,
    PersistentVolumeStrategy,
    PriorityClassStrategy,
)
from skysail.apiserver.strategies.defaults import core, groups, pods, workloads
from skysail.apiserver.strategies.events import EventStrategy, NewEventStrategy
from skysail.apiserver.strategies.generic import GenericStrategy, Rules
from skysail.apiserver.strategies.pods import PodStrategy
from skysail.apiserver.strategies.services import ServiceStrategy
from skysail.apiserver.strategies.workloads import (
    DaemonSetStrategy,
    DeploymentStrategy,
    JobStrategy,
    PodControllerStrategy,
    StatefulSetStrategy,
)
from skysail.apiserver.validation import (
    apps,
    budgets,
    claims,
    configs,
    cron_jobs,
    endpoints,
    events,
    jobs,
    leases,
    limits,
    namespaces,
    nodes,
    priorities,
    quotas,
    services,
)
from skysail.apiserver.validation.names import config_key, dns_label, path_segment
from skysail.apiserver.validation.pod_update import pod_update
from skysail.apiserver.validation.pods import pod_create

_SPEC = ("spec",)
_STATUS_REPLICAS = {"status.replicas": ("status", "replicas")}

DEFAULT = GenericStrategy(Rules())
"""For kinds the table does not name."""

_CORE: Mapping[str, GenericStrategy] = {
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
        Rules(status=True, returns_deleted=True, defaults=core.persistent_volume, fields={"name": ("metadata", "name")})
    ),
    "persistentvolumeclaims": GenericStrategy(
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
    "podtemplates": GenericStrategy(
        Rules(generation=("template",), returns_deleted=True, defaults=workloads.pod_template_object)
    ),
    "replicationcontrollers": PodControllerStrategy(
        Rules(
            status=True,
            first_status={"replicas": 0},
            generation=_SPEC,
            defaults=workloads.replication_controller,
            validate=apps.replication_controller,
            fields=_STATUS_REPLICAS,
        )
    ),
}

_APPS: Mapping[str, GenericStrategy] = {
    "deployments": DeploymentStrategy(
        Rules(
            status=True,
            generation=_SPEC,
            defaults=workloads.deployment,
            validate=apps.deployment,
            validate_update=apps.selector_is_fixed,
        )
    ),
    "replicasets": PodControllerStrategy(
        Rules(
            status=True,
            first_status={"replicas": 0},
            generation=_SPEC,
            defaults=workloads.replica_set,
            validate=apps.replica_set,
            validate_update=apps.selector_is_fixed,
            fields=_STATUS_REPLICAS,
        )
    ),
    "statefulsets": StatefulSetStrategy(
        Rules(
            name_check=dns_label,
            status=True,
            first_status={"replicas": 0, "availableReplicas": 0},
            generation=_SPEC,
            defaults=workloads.stateful_set,
            validate=apps.stateful_set,
            validate_update=apps.stateful_set_update,
            revalidate=False,
        )
    ),
    "daemonsets": DaemonSetStrategy(
        Rules(
            status=True,
            first_status={
                "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
            },
            generation=_SPEC,
            defaults=workloads.daemon_set,
            validate=apps.daemon_set,
            validate_update=apps.daemon_set_update,
            revalidate=False,
        )
    ),
    "controllerrevisions": GenericStrategy(
        Rules(
            defaults=workloads.controller_revision,
            validate=apps.controller_revision,
            validate_update=apps.controller_revision_update,
            revalidate=False,
        )
    ),
}  # fmt: skip

_BATCH: Mapping[str, GenericStrategy] = {
    "jobs": JobStrategy(
        Rules(
            status=True,
            generation=_SPEC,
            defaults=workloads.job,
            validate=jobs.job,
            validate_update=jobs.job_update,
            revalidate=False,
            fields={"status.successful": ("status", "succeeded")},
        )
    ),
    "cronjobs": PodControllerStrategy(
        Rules(
            status=True,
            generation=_SPEC,
            defaults=workloads.cron_job,
            validate=cron_jobs.cron_job,
            validate_update=cron_jobs.cron_job_update,
            revalidate=False,
        )
    ),
}

_WEBHOOKS = ("webhooks",)

_TABLE: Mapping[tuple[str, str], GenericStrategy] = {
    **{("", resource): strategy for resource, strategy in _CORE.items()},
    **{("apps", resource): strategy for resource, strategy in _APPS.items()},
    **{("batch", resource): strategy for resource, strategy in _BATCH.items()},
    ("events.k8s.io", "events"): NewEventStrategy(
        Rules(
            create_on_update=True,
            validate=events.new_event,
            validate_update=events.new_event_update,
            revalidate=False,
        )
    ),
    ("autoscaling", "horizontalpodautoscalers"): GenericStrategy(
        Rules(status=True, first_status={"desiredReplicas": 0, "currentMetrics": None}, defaults=groups.autoscaler)
    ),
    ("policy", "poddisruptionbudgets"): GenericStrategy(
        Rules(
            status=True,
            first_status={"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
            generation=_SPEC,
            unconditional_update=False,
            name_check=path_segment,
            defaults=groups.pod_disruption_budget,
            validate=budgets.pod_disruption_budget,
        )
    ),
    ("scheduling.k8s.io", "priorityclasses"): PriorityClassStrategy(
        Rules(
            defaults=groups.priority_class,
            validate=priorities.priority_class,
            validate_update=priorities.priority_class_update,
            revalidate=False,
        )
    ),
    ("coordination.k8s.io", "leases"): GenericStrategy(
        Rules(create_on_update=True, unconditional_update=False, defaults=groups.lease, validate=leases.lease)
    ),
    ("coordination.k8s.io", "leasecandidates"): GenericStrategy(
        Rules(
            name_check=config_key,
            create_on_update=True,
            unconditional_update=False,
            defaults=groups.lease,
            validate=leases.lease_candidate,
            validate_update=leases.lease_candidate_update,
        )
    ),
    ("discovery.k8s.io", "endpointslices"): EndpointSliceStrategy(
        Rules(
            defaults=groups.endpoint_slice,
            validate=endpoints.endpoint_slice,
            validate_update=endpoints.endpoint_slice_update,
            revalidate=False,
        )
    ),
    ("storage.k8s.io", "storageclasses"): GenericStrategy(Rules(returns_deleted=True, defaults=groups.storage_class)),
    ("storage.k8s.io", "csidrivers"): GenericStrategy(
        Rules(unconditional_update=False, returns_deleted=True, defaults=groups.csi_driver)
    ),
    ("storage.k8s.io", "csinodes"): GenericStrategy(Rules(unconditional_update=False, returns_deleted=True)),
    ("storage.k8s.io", "csistoragecapacities"): GenericStrategy(
        Rules(unconditional_update=False, defaults=groups.csi_storage_capacity)
    ),
    ("storage.k8s.io", "volumeattachments"): GenericStrategy(
        Rules(
            status=True,
            first_status={"attached": False},
            unconditional_update=False,
            returns_deleted=True,
            defaults=groups.with_status,
        )
    ),
    ("storage.k8s.io", "volumeattributesclasses"): GenericStrategy(Rules(returns_deleted=True)),
    ("rbac.authorization.k8s.io", "roles"): GenericStrategy(
        Rules(name_check=path_segment, create_on_update=True, defaults=groups.role)
    ),
    ("rbac.authorization.k8s.io", "clusterroles"): GenericStrategy(
        Rules(name_check=path_segment, create_on_update=True, defaults=groups.role)
    ),
    ("rbac.authorization.k8s.io", "rolebindings"): GenericStrategy(
        Rules(name_check=path_segment, create_on_update=True, defaults=groups.role_binding)
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): GenericStrategy(
        Rules(name_check=path_segment, create_on_update=True, defaults=groups.role_binding)
    ),
    ("networking.k8s.io", "networkpolicies"): GenericStrategy(Rules(generation=_SPEC, defaults=groups.network_policy)),
    ("networking.k8s.io", "ingresses"): GenericStrategy(
        Rules(status=True, first_status={"loadBalancer": {}}, generation=_SPEC, defaults=groups.ingress)
    ),
    ("networking.k8s.io", "ingressclasses"): GenericStrategy(Rules(generation=_SPEC, defaults=groups.ingress_class)),
    ("networking.k8s.io", "servicecidrs"): GenericStrategy(Rules(status=True, defaults=groups.with_status)),
    ("node.k8s.io", "runtimeclasses"): GenericStrategy(
        Rules(create_on_update=True, unconditional_update=False, defaults=groups.runtime_class)
    ),
    ("resource.k8s.io", "resourceclaims"): GenericStrategy(
        Rules(status=True, returns_deleted=True, defaults=groups.resource_claim)
    ),
    ("resource.k8s.io", "resourceclaimtemplates"): GenericStrategy(
        Rules(returns_deleted=True, defaults=groups.resource_claim_template)
    ),
    ("resource.k8s.io", "resourceslices"): GenericStrategy(
        Rules(
            generation=_SPEC,
            returns_deleted=True,
            fields={"spec.driver": ("spec", "driver"), "spec.nodeName": ("spec", "nodeName")},
        )
    ),
    ("resource.k8s.io", "deviceclasses"): GenericStrategy(
        Rules(generation=_SPEC, returns_deleted=True, defaults=groups.with_spec)
    ),
    ("resource.k8s.io", "devicetaintrules"): GenericStrategy(
        Rules(status=True, generation=_SPEC, returns_deleted=True, defaults=groups.with_status)
    ),
    ("resource.k8s.io", "resourcepoolstatusrequests"): GenericStrategy(Rules(status=True, returns_deleted=True)),
    ("certificates.k8s.io", "certificatesigningrequests"): GenericStrategy(
        Rules(status=True, defaults=groups.with_status, fields={"spec.signerName": ("spec", "signerName")})
    ),
    ("certificates.k8s.io", "clustertrustbundles"): GenericStrategy(
        Rules(name_check=path_segment, unconditional_update=False, fields={"spec.signerName": ("spec", "signerName")})
    ),
    ("certificates.k8s.io", "podcertificaterequests"): GenericStrategy(Rules(status=True, unconditional_update=False)),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): GenericStrategy(
        Rules(status=True, generation=_SPEC, defaults=groups.flow_schema)
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): GenericStrategy(
        Rules(status=True, generation=_SPEC, defaults=groups.priority_level)
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): GenericStrategy(
        Rules(generation=_WEBHOOKS, unconditional_update=False, defaults=groups.webhooks(mutating=False))
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): GenericStrategy(
        Rules(generation=_WEBHOOKS, unconditional_update=False, defaults=groups.webhooks(mutating=True))
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): GenericStrategy(
        Rules(status=True, generation=_SPEC, unconditional_update=False, defaults=groups.admission_policy)
    ),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): GenericStrategy(
        Rules(generation=_SPEC, unconditional_update=False, defaults=groups.admission_policy)
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): GenericStrategy(
        Rules(generation=_SPEC, unconditional_update=False, defaults=groups.admission_policy_binding)
    ),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): GenericStrategy(
        Rules(generation=_SPEC, unconditional_update=False, defaults=groups.admission_policy_binding)
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): GenericStrategy(
        Rules(status=True, generation=_SPEC, returns_deleted=True)
    ),
    ("apiregistration.k8s.io", "apiservices"): GenericStrategy(Rules(status=True, name_check=path_segment)),
    ("scheduling.k8s.io", "podgroups"): GenericStrategy(Rules(status=True)),
    ("internal.apiserver.k8s.io", "storageversions"): GenericStrategy(Rules(status=True, unconditional_update=False)),
    ("storagemigration.k8s.io", "storageversionmigrations"): GenericStrategy(
        Rules(status=True, unconditional_update=False)
    ),
}


def for_resource(group: str, resource: str) -> GenericStrategy:
    """The strategy of a resource; every resource has one."""
    return _TABLE.get((group, resource), DEFAULT)


def rows() -> Mapping[GroupResource, GenericStrategy]:
    """The whole table, for tests and tools."""
    return {GroupResource(*key): strategy for key, strategy in _TABLE.items()}
