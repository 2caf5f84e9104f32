"""Which strategy serves which resource: the explicit table.

A row per kind; a kind without one gets `DEFAULT`. Adding a kind: its defaults in `defaults/`, its checks in
`validation/`, one row here.
"""

from collections.abc import Mapping

from skysail.apiserver.contract import GroupResource
from skysail.apiserver.strategies.autoscalers import AutoscalerStrategy
from skysail.apiserver.strategies.cluster import (
    EndpointSliceStrategy,
    PriorityClassStrategy,
    SigningRequestStrategy,
)
from skysail.apiserver.strategies.core_rows import CORE
from skysail.apiserver.strategies.defaults import groups
from skysail.apiserver.strategies.events import NewEventStrategy
from skysail.apiserver.strategies.generic import SPEC, GenericStrategy, Rules
from skysail.apiserver.strategies.workload_rows import APPS, BATCH
from skysail.apiserver.validation import (
    autoscalers,
    budgets,
    certificates,
    devices,
    endpoints,
    events,
    leases,
    network,
    priorities,
    rbac,
    runtime_classes,
    storage,
)
from skysail.apiserver.validation.names import config_key, path_segment

DEFAULT = GenericStrategy(Rules())
"""For kinds the table does not name."""

_WEBHOOKS = ("webhooks",)

_TABLE: Mapping[tuple[str, str], GenericStrategy] = {
    **{("", resource): strategy for resource, strategy in CORE.items()},
    **{("apps", resource): strategy for resource, strategy in APPS.items()},
    **{("batch", resource): strategy for resource, strategy in BATCH.items()},
    ("events.k8s.io", "events"): NewEventStrategy(
        Rules(
            create_on_update=True,
            validate=events.new_event,
            validate_update=events.new_event_update,
            revalidate=False,
        )
    ),
    ("autoscaling", "horizontalpodautoscalers"): AutoscalerStrategy(
        Rules(
            status=True,
            first_status={"desiredReplicas": 0, "currentMetrics": None},
            defaults=groups.autoscaler,
            validate=autoscalers.autoscaler,
            validate_update=autoscalers.autoscaler_update,
            revalidate=False,
        )
    ),
    ("policy", "poddisruptionbudgets"): GenericStrategy(
        Rules(
            status=True,
            first_status={"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
            generation=SPEC,
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
    ("storage.k8s.io", "storageclasses"): GenericStrategy(
        Rules(
            returns_deleted=True,
            defaults=groups.storage_class,
            validate=storage.storage_class,
            validate_update=storage.storage_class_update,
            revalidate=False,
        )
    ),
    ("storage.k8s.io", "csidrivers"): GenericStrategy(
        Rules(
            unconditional_update=False,
            returns_deleted=True,
            defaults=groups.csi_driver,
            validate=storage.csi_driver,
            validate_update=storage.csi_driver_update,
        )
    ),
    ("storage.k8s.io", "csinodes"): GenericStrategy(
        Rules(
            unconditional_update=False,
            returns_deleted=True,
            validate=storage.csi_node,
            validate_update=storage.csi_node_update,
        )
    ),
    ("storage.k8s.io", "csistoragecapacities"): GenericStrategy(
        Rules(
            unconditional_update=False,
            defaults=groups.csi_storage_capacity,
            validate=storage.csi_storage_capacity,
            validate_update=storage.csi_storage_capacity_update,
            revalidate=False,
        )
    ),
    ("storage.k8s.io", "volumeattachments"): GenericStrategy(
        Rules(
            status=True,
            first_status={"attached": False},
            unconditional_update=False,
            returns_deleted=True,
            defaults=groups.with_status,
            validate=storage.volume_attachment,
            validate_update=storage.volume_attachment_update,
            revalidate=False,
        )
    ),
    ("storage.k8s.io", "volumeattributesclasses"): GenericStrategy(
        Rules(
            returns_deleted=True,
            validate=storage.volume_attributes_class,
            validate_update=storage.volume_attributes_class_update,
            revalidate=False,
        )
    ),
    ("rbac.authorization.k8s.io", "roles"): GenericStrategy(
        Rules(
            name_check=path_segment,
            create_on_update=True,
            defaults=groups.role,
            validate=rbac.role,
            validate_update=rbac.role_update,
            revalidate=False,
        )
    ),
    ("rbac.authorization.k8s.io", "clusterroles"): GenericStrategy(
        Rules(
            name_check=path_segment,
            create_on_update=True,
            defaults=groups.role,
            validate=rbac.cluster_role,
            validate_update=rbac.cluster_role_update,
            revalidate=False,
        )
    ),
    ("rbac.authorization.k8s.io", "rolebindings"): GenericStrategy(
        Rules(
            name_check=path_segment,
            create_on_update=True,
            defaults=groups.role_binding,
            validate=rbac.role_binding,
            validate_update=rbac.role_binding_update,
            revalidate=False,
        )
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): GenericStrategy(
        Rules(
            name_check=path_segment,
            create_on_update=True,
            defaults=groups.role_binding,
            validate=rbac.cluster_role_binding,
            validate_update=rbac.cluster_role_binding_update,
            revalidate=False,
        )
    ),
    ("networking.k8s.io", "networkpolicies"): GenericStrategy(
        Rules(
            generation=SPEC,
            defaults=groups.network_policy,
            validate=network.network_policy,
            validate_update=network.network_policy_update,
            revalidate=False,
        )
    ),
    ("networking.k8s.io", "ingresses"): GenericStrategy(
        Rules(
            status=True,
            first_status={"loadBalancer": {}},
            generation=SPEC,
            defaults=groups.ingress,
            validate=network.ingress,
            validate_update=network.ingress_update,
            revalidate=False,
        )
    ),
    ("networking.k8s.io", "ingressclasses"): GenericStrategy(
        Rules(
            generation=SPEC,
            defaults=groups.ingress_class,
            validate=network.ingress_class,
            validate_update=network.ingress_class_update,
            revalidate=False,
        )
    ),
    ("networking.k8s.io", "servicecidrs"): GenericStrategy(Rules(status=True, defaults=groups.with_status)),
    ("node.k8s.io", "runtimeclasses"): GenericStrategy(
        Rules(
            create_on_update=True,
            unconditional_update=False,
            defaults=groups.runtime_class,
            validate=runtime_classes.runtime_class,
            validate_update=runtime_classes.runtime_class_update,
            revalidate=False,
        )
    ),
    ("resource.k8s.io", "resourceclaims"): GenericStrategy(
        Rules(
            status=True,
            returns_deleted=True,
            defaults=groups.resource_claim,
            validate=devices.resource_claim,
            validate_update=devices.resource_claim_update,
            revalidate=False,
        )
    ),
    ("resource.k8s.io", "resourceclaimtemplates"): GenericStrategy(
        Rules(
            returns_deleted=True,
            defaults=groups.resource_claim_template,
            validate=devices.resource_claim_template,
            validate_update=devices.resource_claim_template_update,
            revalidate=False,
        )
    ),
    ("resource.k8s.io", "resourceslices"): GenericStrategy(
        Rules(
            generation=SPEC,
            returns_deleted=True,
            validate=devices.resource_slice,
            validate_update=devices.resource_slice_update,
            fields={"spec.driver": ("spec", "driver"), "spec.nodeName": ("spec", "nodeName")},
        )
    ),
    ("resource.k8s.io", "deviceclasses"): GenericStrategy(
        Rules(generation=SPEC, returns_deleted=True, defaults=groups.with_spec, validate=devices.device_class)
    ),
    ("resource.k8s.io", "devicetaintrules"): GenericStrategy(
        Rules(status=True, generation=SPEC, returns_deleted=True, defaults=groups.with_status)
    ),
    ("resource.k8s.io", "resourcepoolstatusrequests"): GenericStrategy(Rules(status=True, returns_deleted=True)),
    ("certificates.k8s.io", "certificatesigningrequests"): SigningRequestStrategy(
        Rules(
            name_check=path_segment,
            status=True,
            defaults=groups.with_status,
            validate=certificates.signing_request,
            validate_update=certificates.signing_request_update,
            revalidate=False,
            fields={"spec.signerName": ("spec", "signerName")},
        )
    ),
    ("certificates.k8s.io", "clustertrustbundles"): GenericStrategy(
        Rules(name_check=path_segment, unconditional_update=False, fields={"spec.signerName": ("spec", "signerName")})
    ),
    ("certificates.k8s.io", "podcertificaterequests"): GenericStrategy(Rules(status=True, unconditional_update=False)),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): GenericStrategy(
        Rules(status=True, generation=SPEC, defaults=groups.flow_schema)
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): GenericStrategy(
        Rules(status=True, generation=SPEC, defaults=groups.priority_level)
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): GenericStrategy(
        Rules(generation=_WEBHOOKS, unconditional_update=False, defaults=groups.webhooks(mutating=False))
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): GenericStrategy(
        Rules(generation=_WEBHOOKS, unconditional_update=False, defaults=groups.webhooks(mutating=True))
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): GenericStrategy(
        Rules(status=True, generation=SPEC, unconditional_update=False, defaults=groups.admission_policy)
    ),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): GenericStrategy(
        Rules(generation=SPEC, unconditional_update=False, defaults=groups.admission_policy)
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): GenericStrategy(
        Rules(generation=SPEC, unconditional_update=False, defaults=groups.admission_policy_binding)
    ),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): GenericStrategy(
        Rules(generation=SPEC, unconditional_update=False, defaults=groups.admission_policy_binding)
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): GenericStrategy(
        Rules(status=True, generation=SPEC, returns_deleted=True)
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
