"""Which field selectors a kind knows, and how an unknown one is refused.

Source: the AddFieldLabelConversionFunc calls of pkg/apis/*/v*/conversion.go, v1.36.
"""

from collections.abc import Mapping

from skysail.api.fields import FieldSelector
from skysail.apiserver.contract import GroupResource, ResourceInfo, Strategy, quote
from skysail.apiserver.status import bad_request

_EVERYWHERE = ("metadata.name", "metadata.namespace")
_BY_KIND: Mapping[GroupResource, str] = {
    GroupResource("batch", "jobs"): "Job",
}
_ONLY_BY_NAME = 'is not a known field selector: only "metadata.name", "metadata.namespace"'


def check_fields(resource: ResourceInfo, strategy: Strategy, selector: FieldSelector) -> None:
    """Refuse a selector on a field the kind does not offer.

    Raises:
        BadRequest: In upstream's words, which differ from kind to kind.
    """
    wanted = [each.path for each in selector.requirements if each.path or each.value]
    unknown = [path for path in wanted if path not in _EVERYWHERE]
    if not unknown:
        return
    known = strategy.selectable_fields({"metadata": {}, "spec": {}, "status": {}})
    for path in unknown:
        if path in known:
            continue
        if kind := _BY_KIND.get(resource.group_resource):
            raise bad_request(f"field label {quote(path)} not supported for {kind}")
        if known or resource.custom:
            raise bad_request(f"field label not supported: {path}")
        raise bad_request(f"{quote(path)} {_ONLY_BY_NAME}")
