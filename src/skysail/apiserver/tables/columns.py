"""How columns are declared, and which printer each resource has.

A column is its heading with marks: `#` holds integers, `?` booleans, `+` shows only in wide output. The heading Name is
what `kubectl -o name` reads.

Source: pkg/printers/internalversion/printers.go `AddHandlers`, v1.36 (headings and types; descriptions are ours).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from skysail.api.raw import Raw
from skysail.apiserver.tables import cluster, network, pods, policies, storage, workloads

Cells = Callable[[Raw, datetime], Sequence[object]]

_TYPES = {"#": "integer", "?": "boolean", "@": "date"}


@dataclass(frozen=True, slots=True)
class Printer:
    """The columns of a resource, and what fills them.

    Attributes:
        columns: Headings with marks.
        cells: One object's cells, wide ones included.
        conditions: What a row says of itself, or None.
    """

    columns: tuple[str, ...]
    cells: Cells
    conditions: Callable[[Raw], Sequence[Raw] | None] = lambda _: None


def definition(column: str) -> Raw:
    """A TableColumnDefinition."""
    heading = column.rstrip("#?@+")
    marks = column[len(heading) :]
    return {
        "name": heading,
        "type": next((_TYPES[mark] for mark in marks if mark in _TYPES), "string"),
        "format": "name" if heading in ("Name", "Attacher") else "",
        "description": _DESCRIPTIONS.get(heading, f"{heading} of the object."),
        "priority": 1 if "+" in marks else 0,
    }


_DESCRIPTIONS = {
    "Name": "What the object is called, unique among its kind in its namespace.",
    "Age": "How long ago the object was created.",
    "Created At": "When the object was created.",
    "Ready": "How many are ready.",
    "Labels": "The object's labels.",
}

_CONTAINERS = ("Containers+", "Images+", "Selector+")
_REPLICATED = ("Name", "Desired#", "Current#", "Ready#", "Age", *_CONTAINERS)
_EVENT = (
    "Last Seen", "Type", "Reason", "Object", "Subobject+", "Source+", "Message", "First Seen+", "Count+", "Name+",
)  # fmt: skip
_BINDING = Printer(("Name", "Role", "Age", "Users+", "Groups+", "ServiceAccounts+"), policies.role_binding_cells)
_WEBHOOKS = Printer(("Name", "Webhooks#", "Age"), policies.webhooks_cells)
_POLICY_BINDING = Printer(("Name", "PolicyName", "ParamRef", "Age"), policies.policy_binding_cells)
_PLAIN = Printer(("Name", "Age"), cluster.plain_cells)


def _created_at(obj: Raw, _: datetime) -> Sequence[object]:
    return [obj["metadata"].get("name", ""), obj["metadata"].get("creationTimestamp")]


DEFAULT = Printer(("Name", "Created At@"), _created_at)

PRINTERS: Mapping[tuple[str, str], Printer] = {
    ("", "pods"): Printer(
        ("Name", "Ready", "Status", "Restarts", "Age", "IP+", "Node+", "Nominated Node+", "Readiness Gates+"),
        pods.pod_cells,
        pods.row_conditions,
    ),
    ("", "podtemplates"): Printer(("Name", "Containers", "Images", "Pod Labels"), pods.pod_template_cells),
    ("", "replicationcontrollers"): Printer(_REPLICATED, workloads.replicated_cells),
    ("", "services"): Printer(
        ("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector+"), network.service_cells
    ),
    ("", "endpoints"): Printer(("Name", "Endpoints", "Age"), network.endpoints_cells),
    ("", "nodes"): Printer(
        (
            "Name", "Status", "Roles", "Age", "Version", "Internal-IP+", "External-IP+", "OS-Image+",
            "Kernel-Version+", "Container-Runtime+",
        ),
        cluster.node_cells,
    ),
    ("", "events"): Printer(_EVENT, cluster.event_cells),
    ("events.k8s.io", "events"): Printer(_EVENT, cluster.event_cells),
    ("", "namespaces"): Printer(("Name", "Status", "Age"), cluster.namespace_cells),
    ("", "secrets"): Printer(("Name", "Type", "Data", "Age"), cluster.secret_cells),
    ("", "configmaps"): Printer(("Name", "Data", "Age"), cluster.config_map_cells),
    ("", "serviceaccounts"): _PLAIN,
    ("", "persistentvolumes"): Printer(
        (
            "Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass",
            "VolumeAttributesClass", "Reason", "Age", "VolumeMode+",
        ),
        storage.volume_cells,
    ),
    ("", "persistentvolumeclaims"): Printer(
        (
            "Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age",
            "VolumeMode+",
        ),
        storage.claim_cells,
    ),
    ("", "componentstatuses"): Printer(("Name", "Status", "Message", "Error"), cluster.component_status_cells),
    ("", "resourcequotas"): Printer(("Name", "Request", "Limit", "Age"), cluster.quota_cells),
    ("apps", "deployments"): Printer(
        ("Name", "Ready", "Up-to-date", "Available", "Age", *_CONTAINERS), workloads.deployment_cells
    ),
    ("apps", "replicasets"): Printer(_REPLICATED, workloads.replicated_cells),
    ("apps", "statefulsets"): Printer(("Name", "Ready", "Age", *_CONTAINERS[:2]), workloads.stateful_set_cells),
    ("apps", "daemonsets"): Printer(
        ("Name", "Desired#", "Current#", "Ready#", "Up-to-date#", "Available#", "Node Selector", "Age", *_CONTAINERS),
        workloads.daemon_set_cells,
    ),
    ("apps", "controllerrevisions"): Printer(
        ("Name", "Controller", "Revision", "Age"), workloads.controller_revision_cells
    ),
    ("batch", "jobs"): Printer(
        ("Name", "Status", "Completions", "Duration", "Age", *_CONTAINERS), workloads.job_cells
    ),
    ("batch", "cronjobs"): Printer(
        ("Name", "Schedule", "Timezone", "Suspend?", "Active#", "Last Schedule", "Age", *_CONTAINERS),
        workloads.cron_job_cells,
    ),
    ("autoscaling", "horizontalpodautoscalers"): Printer(
        ("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), workloads.autoscaler_cells
    ),
    ("autoscaling", "scale"): Printer(("Name", "Desired#", "Available#", "Age"), workloads.scale_cells),
    ("policy", "poddisruptionbudgets"): Printer(
        ("Name", "Min Available", "Max Unavailable", "Allowed Disruptions#", "Age"), workloads.disruption_budget_cells
    ),
    ("networking.k8s.io", "ingresses"): Printer(
        ("Name", "Class", "Hosts", "Address", "Ports", "Age"), network.ingress_cells
    ),
    ("networking.k8s.io", "ingressclasses"): Printer(
        ("Name", "Controller", "Parameters", "Age"), network.ingress_class_cells
    ),
    ("networking.k8s.io", "networkpolicies"): Printer(("Name", "Pod-Selector", "Age"), network.network_policy_cells),
    ("networking.k8s.io", "ipaddresses"): Printer(("Name", "ParentRef"), network.ip_address_cells),
    ("networking.k8s.io", "servicecidrs"): Printer(("Name", "CIDRs", "Age"), network.service_cidr_cells),
    ("discovery.k8s.io", "endpointslices"): Printer(
        ("Name", "AddressType", "Ports", "Endpoints", "Age"), network.endpoint_slice_cells
    ),
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDING,
    ("coordination.k8s.io", "leases"): Printer(("Name", "Holder", "Age"), cluster.lease_cells),
    ("coordination.k8s.io", "leasecandidates"): Printer(
        ("Name", "LeaseName", "BinaryVersion", "EmulationVersion", "Age"), cluster.lease_candidate_cells
    ),
    ("certificates.k8s.io", "certificatesigningrequests"): Printer(
        ("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"), policies.signing_request_cells
    ),
    ("certificates.k8s.io", "clustertrustbundles"): Printer(("Name", "SignerName"), policies.trust_bundle_cells),
    ("storage.k8s.io", "storageclasses"): Printer(
        ("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        storage.storage_class_cells,
    ),
    ("storage.k8s.io", "volumeattributesclasses"): Printer(
        ("Name", "DriverName", "Age"), storage.attributes_class_cells
    ),
    ("storage.k8s.io", "volumeattachments"): Printer(
        ("Name", "Attacher", "PV", "Node", "Attached?", "Age"), storage.attachment_cells
    ),
    ("storage.k8s.io", "csinodes"): Printer(("Name", "Drivers#", "Age"), storage.csi_node_cells),
    ("storage.k8s.io", "csidrivers"): Printer(
        (
            "Name", "AttachRequired?", "PodInfoOnMount?", "StorageCapacity?", "TokenRequests", "RequiresRepublish?",
            "Modes", "Age",
        ),
        storage.csi_driver_cells,
    ),
    ("storage.k8s.io", "csistoragecapacities"): Printer(
        ("Name", "StorageClassName", "Capacity"), storage.csi_capacity_cells
    ),
    ("scheduling.k8s.io", "priorityclasses"): Printer(
        ("Name", "Value#", "Global-Default?", "Age", "PreemptionPolicy"), cluster.priority_class_cells
    ),
    ("scheduling.k8s.io", "podgroups"): Printer(
        ("Name", "Policy", "Workload", "Status", "Age"), workloads.pod_group_cells
    ),
    ("scheduling.k8s.io", "workloads"): _PLAIN,
    ("node.k8s.io", "runtimeclasses"): Printer(("Name", "Handler", "Age"), cluster.runtime_class_cells),
    ("resource.k8s.io", "deviceclasses"): _PLAIN,
    ("resource.k8s.io", "resourceclaims"): Printer(("Name", "State", "Age"), cluster.resource_claim_cells),
    ("resource.k8s.io", "resourceclaimtemplates"): _PLAIN,
    ("resource.k8s.io", "resourceslices"): Printer(
        ("Name", "Node", "Driver", "Pool", "Age"), cluster.resource_slice_cells
    ),
    ("resource.k8s.io", "devicetaintrules"): Printer(
        ("Name", "Key", "Value", "Effect", "TimeAdded", "Age"), cluster.device_taint_cells
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): Printer(
        ("Name", "Validations#", "ParamKind", "Age"), policies.admission_policy_cells
    ),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): Printer(
        ("Name", "Mutations#", "ParamKind", "Age"), policies.admission_policy_cells
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): _POLICY_BINDING,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): _POLICY_BINDING,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): Printer(
        ("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"),
        policies.flow_schema_cells,
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): Printer(
        ("Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"),
        policies.priority_level_cells,
    ),
    ("internal.apiserver.k8s.io", "storageversions"): Printer(
        ("Name", "CommonEncodingVersion", "StorageVersions", "Age"), policies.storage_version_cells
    ),
}  # fmt: skip
