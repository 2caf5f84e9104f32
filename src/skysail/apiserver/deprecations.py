"""Kinds that are going away: every answer about them carries a warning.

Source: apiserver/pkg/endpoints/deprecation, k8s.io/api/core/v1 zz_generated.prerelease-lifecycle.go, v1.36.
"""

from collections.abc import Mapping

from skysail.apiserver.contract import GroupResource

_NOTICES: Mapping[GroupResource, str] = {
    GroupResource("", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    GroupResource("", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
}


def deprecation_notice(resource: GroupResource) -> str:
    """What to warn of; "" for kinds that stay."""
    return _NOTICES.get(resource, "")
