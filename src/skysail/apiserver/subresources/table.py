"""Which view or action serves which subresource: the explicit tables."""

from collections.abc import Mapping

from skysail.apiserver.contract import Action, View
from skysail.apiserver.subresources.binding import BindingAction
from skysail.apiserver.subresources.cluster import ApprovalView, FinalizeView, SigningStatusView
from skysail.apiserver.subresources.eviction import EvictionAction
from skysail.apiserver.subresources.pods import EphemeralContainersView, ResizeView
from skysail.apiserver.subresources.reviews import (
    AUTHENTICATION,
    AUTHORIZATION,
    SelfAccessReview,
    SelfReview,
    SelfRulesReview,
    SubjectAccessReview,
    TokenReview,
)
from skysail.apiserver.subresources.scale import ScaleView, equality_text
from skysail.apiserver.subresources.status import (
    NodeStatusView,
    PersistentVolumeStatusView,
    PodStatusView,
    StatusView,
)
from skysail.apiserver.subresources.tokens import TokenAction
from skysail.apiserver.validation import apps_status
from skysail.apiserver.validation.autoscalers import autoscaler_status_update
from skysail.apiserver.validation.budgets import budget_status_update
from skysail.apiserver.validation.certificates import signing_request_status_update
from skysail.apiserver.validation.claims import claim_status_update
from skysail.apiserver.validation.devices import resource_claim_status_update
from skysail.apiserver.validation.job_status import job_status_update
from skysail.apiserver.validation.namespaces import namespace_status_update
from skysail.apiserver.validation.network import ingress_status_update
from skysail.apiserver.validation.nodes import node_status_update
from skysail.apiserver.validation.pod_status import pod_status_update
from skysail.apiserver.validation.pod_update import ephemeral_containers_update, resize
from skysail.apiserver.validation.quotas import resource_quota_status_update
from skysail.apiserver.validation.services import service_status_update

Key = tuple[str, str, str]


_STATUS = StatusView()
_ONLY_STATUS = StatusView(own_metadata=False)

_VIEWS: Mapping[Key, View] = {
    ("", "pods", "status"): PodStatusView(pod_status_update),
    ("", "nodes", "status"): NodeStatusView(node_status_update),
    ("", "persistentvolumeclaims", "status"): StatusView(claim_status_update),
    ("", "persistentvolumes", "status"): PersistentVolumeStatusView(),
    ("", "pods", "ephemeralcontainers"): EphemeralContainersView(ephemeral_containers_update),
    ("", "pods", "resize"): ResizeView(resize),
    ("", "namespaces", "status"): StatusView(namespace_status_update),
    ("", "namespaces", "finalize"): FinalizeView(),
    ("", "services", "status"): StatusView(service_status_update),
    ("", "resourcequotas", "status"): StatusView(resource_quota_status_update),
    ("networking.k8s.io", "ingresses", "status"): StatusView(ingress_status_update),
    ("autoscaling", "horizontalpodautoscalers", "status"): StatusView(autoscaler_status_update),
    ("policy", "poddisruptionbudgets", "status"): StatusView(budget_status_update),
    ("apps", "deployments", "status"): StatusView(apps_status.deployment, kept_metadata=("labels",)),
    ("apps", "replicasets", "status"): StatusView(apps_status.replica_set),
    ("apps", "statefulsets", "status"): StatusView(apps_status.stateful_set),
    ("apps", "daemonsets", "status"): StatusView(apps_status.daemon_set),
    ("", "replicationcontrollers", "status"): StatusView(apps_status.replication_controller),
    ("batch", "jobs", "status"): StatusView(job_status_update),
    ("storage.k8s.io", "volumeattachments", "status"): _ONLY_STATUS,
    ("resource.k8s.io", "resourceclaims", "status"): StatusView(resource_claim_status_update, own_metadata=False),
    ("resource.k8s.io", "devicetaintrules", "status"): _ONLY_STATUS,
    ("resource.k8s.io", "resourcepoolstatusrequests", "status"): _ONLY_STATUS,
    ("networking.k8s.io", "servicecidrs", "status"): _ONLY_STATUS,
    ("scheduling.k8s.io", "podgroups", "status"): _ONLY_STATUS,
    ("certificates.k8s.io", "podcertificaterequests", "status"): _ONLY_STATUS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "status"): _ONLY_STATUS,
    ("internal.apiserver.k8s.io", "storageversions", "status"): _ONLY_STATUS,
    ("storagemigration.k8s.io", "storageversionmigrations", "status"): _ONLY_STATUS,
    ("certificates.k8s.io", "certificatesigningrequests", "status"): SigningStatusView(signing_request_status_update),
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): ApprovalView(),
    ("apps", "deployments", "scale"): ScaleView(),
    ("apps", "replicasets", "scale"): ScaleView(),
    ("apps", "statefulsets", "scale"): ScaleView(),
    ("", "replicationcontrollers", "scale"): ScaleView(equality_text),
}

_ACTIONS: Mapping[Key, Action] = {
    ("", "pods", "binding"): BindingAction(),
    ("", "bindings", ""): BindingAction(),
    ("", "pods", "eviction"): EvictionAction(),
    ("", "serviceaccounts", "token"): TokenAction(),
    (AUTHORIZATION, "selfsubjectaccessreviews", ""): SelfAccessReview(),
    (AUTHORIZATION, "subjectaccessreviews", ""): SubjectAccessReview(),
    (AUTHORIZATION, "localsubjectaccessreviews", ""): SubjectAccessReview(local=True),
    (AUTHORIZATION, "selfsubjectrulesreviews", ""): SelfRulesReview(),
    (AUTHENTICATION, "selfsubjectreviews", ""): SelfReview(),
    (AUTHENTICATION, "tokenreviews", ""): TokenReview(),
}


def view_for(group: str, resource: str, subresource: str) -> View | None:
    """The view behind a subresource that is read and written; None when there is none of that name.

    Every kind may have a `status`: which ones do is the resource table's business.
    """
    view = _VIEWS.get((group, resource, subresource))
    if view is None and subresource == "status":
        return _STATUS
    return view


def action_for(group: str, resource: str, subresource: str) -> Action | None:
    """The action behind a subresource, or (subresource "") a resource, that is only POSTed to."""
    return _ACTIONS.get((group, resource, subresource))
