"""StorageClasses and what CSI drivers say of themselves.

Source: pkg/apis/storage/validation/validation.go, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.contract import duplicate, forbidden, invalid, not_supported, required, too_long
from skysail.apiserver.validation.field import IMMUTABLE, Errors, at, immutable, non_negative, same
from skysail.apiserver.validation.go_form import go_form
from skysail.apiserver.validation.metadata import label_name, label_selector, look_again
from skysail.apiserver.validation.names import dns_subdomain, in_range, qualified_name
from skysail.apiserver.validation.persistent_volumes import volume_spec
from skysail.apiserver.validation.resources import non_negative_amount
from skysail.apiserver.validation.volumes import csi_driver_name

_MOST_PARAMETERS, _LONGEST_PARAMETERS, _LONGEST_METADATA = 512, 256 * 1024, 256 * 1024
_LONGEST_MESSAGE, _LONGEST_NODE_ID, _MAX_INT32 = 1024, 256, 2**31 - 1
_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_SHORTEST_TOKEN, _LONGEST_TOKEN, _SHORTEST_PERIOD = 600, 2**32, 10


def storage_class(obj: Raw) -> Errors:
    """Check a new StorageClass."""
    errors = _provisioner(obj.get("provisioner") or "", "provisioner")
    errors += _parameters(obj.get("parameters") or {}, "parameters")
    policy = obj.get("reclaimPolicy")
    if policy and policy not in ("Delete", "Retain"):
        errors.append(not_supported("reclaimPolicy", policy, ("Delete", "Retain")))
    mode, modes = obj.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer")
    if mode is None:
        errors.append(required("volumeBindingMode"))
    elif mode not in modes:
        errors.append(not_supported("volumeBindingMode", mode, modes))
    return errors + _topologies(obj.get("allowedTopologies") or ())


def _provisioner(name: str, path: str) -> Errors:
    return at(path, qualified_name(name.lower()), name.lower()) if name else [required(path)]


def _parameters(values: Raw, path: str) -> Errors:
    if len(values) > _MOST_PARAMETERS:
        return [too_long(path, _MOST_PARAMETERS)]
    errors = [invalid(path, key, "field can not be empty.") for key in values if not key]
    if _size(values) > _LONGEST_PARAMETERS:
        errors.append(too_long(path, _LONGEST_PARAMETERS))
    return errors


def _size(values: Raw) -> int:
    return sum(len(key.encode()) + len((value or "").encode()) for key, value in values.items())


def _topologies(terms: tuple[Raw, ...] | list[Raw]) -> Errors:
    errors: Errors = []
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        found: dict[str, set[str]] = {}
        for place, item in enumerate(term.get("matchLabelExpressions") or ()):
            here, key, values = f"{path}[{place}]", item.get("key") or "", item.get("values") or []
            if not values:
                errors.append(required(f"{here}.values"))
            errors += [
                duplicate(f"{here}.values[{number}]", value)
                for number, value in enumerate(values)
                if value in values[:number]
            ]
            errors += label_name(key, f"{here}.key")
            if key in found:
                errors.append(duplicate(f"{here}.key", key))
            found[key] = set(values)
        errors += [duplicate(path, "") for other in seen if other == found]
        seen.append(found)
    return errors


def storage_class_update(new: Raw, old: Raw) -> Errors:
    """Check that what provisioning depends on stays."""
    errors = immutable(new.get("parameters"), old.get("parameters"), "parameters")
    for key in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
        errors += immutable(new.get(key), old.get(key), key)
    return errors


def volume_attributes_class(obj: Raw) -> Errors:
    """Check a VolumeAttributesClass."""
    parameters = obj.get("parameters") or {}
    errors = _provisioner(obj.get("driverName") or "", "driverName") + _parameters(parameters, "parameters")
    if not parameters:
        errors.append(required("parameters", "must contain at least one key/value pair"))
    return errors


def volume_attributes_class_update(new: Raw, old: Raw) -> Errors:
    """Check that nothing but metadata changes."""
    errors = [
        forbidden(key, f"updates to {key} are forbidden.")
        for key in ("driverName", "parameters")
        if not same(new.get(key), old.get(key))
    ]
    return errors + look_again(new, dns_subdomain) + volume_attributes_class(new)


def csi_node(obj: Raw) -> Errors:
    """Check a CSINode."""
    errors: Errors = []
    names: set[str] = set()
    for index, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
        path, name, node_id = f"spec.drivers[{index}]", driver.get("name") or "", driver.get("nodeID") or ""
        errors += csi_driver_name(name, f"{path}.name")
        if not node_id:
            errors.append(required(f"{path}.nodeID"))
        if len(node_id) > _LONGEST_NODE_ID:
            errors.append(invalid(f"{path}.nodeID", node_id, f"must be {_LONGEST_NODE_ID} characters or less"))
        errors += non_negative((driver.get("allocatable") or {}).get("count"), f"{path}.allocatable.count")
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        keys = driver.get("topologyKeys") or []
        for place, key in enumerate(keys):
            if not key:
                errors.append(required(path))
            if key in keys[:place]:
                errors.append(duplicate(path, key))
            errors += at(path, qualified_name(key), key)
    return errors


def csi_node_update(new: Raw, old: Raw) -> Errors:
    """Check that drivers come and go as a whole, but for how many volumes they allow."""
    known = {driver.get("name"): _fixed(driver) for driver in (old.get("spec") or {}).get("drivers") or ()}
    errors: Errors = []
    for driver in (new.get("spec") or {}).get("drivers") or ():
        before = known.get(driver.get("name"))
        if before is not None and not same(_fixed(driver), before):
            shown = go_form("CSINodeDriver", _fixed(driver))
            errors.append(invalid("spec.drivers", shown, IMMUTABLE))
    return errors


def _fixed(driver: Raw) -> Raw:
    return {key: value for key, value in driver.items() if key != "allocatable"}


def csi_driver(obj: Raw) -> Errors:
    """Check a CSIDriver."""
    spec = obj.get("spec") or {}
    errors: Errors = []
    for key, word in (
        ("attachRequired", "attachedRequired"), ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ):  # fmt: skip
        if spec.get(key) is None:
            errors.append(required(f"spec.{word}"))
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _FS_GROUP_POLICIES:
        errors.append(not_supported("spec.fsGroupPolicy", policy, _FS_GROUP_POLICIES))
    errors += _token_requests(spec.get("tokenRequests") or ())
    modes = ("Persistent", "Ephemeral")
    errors += [
        not_supported("spec.volumeLifecycleModes", mode, modes)
        for mode in spec.get("volumeLifecycleModes") or ()
        if mode not in modes
    ]
    if spec.get("seLinuxMount") is None:
        errors.append(required("spec.seLinuxMount"))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _SHORTEST_PERIOD:
        detail = "must be greater than or equal to 10 seconds"
        errors.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, detail))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not spec.get("tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, detail))
    return errors


def _token_requests(items: tuple[Raw, ...] | list[Raw]) -> Errors:
    errors: Errors = []
    audiences: set[str] = set()
    for index, item in enumerate(items):
        path, audience, seconds = (
            f"spec.tokenRequests[{index}]",
            item.get("audience") or "",
            item.get("expirationSeconds"),
        )
        if audience in audiences:
            errors.append(duplicate(f"{path}.audience", audience))
            continue
        audiences.add(audience)
        here = f"{path}.expirationSeconds"
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            errors.append(invalid(here, seconds, "may not specify a duration less than 10 minutes"))
        if seconds is not None and seconds > _LONGEST_TOKEN:
            errors.append(invalid(here, seconds, "may not specify a duration larger than 2^32 seconds"))
    return errors


def csi_driver_update(new: Raw, old: Raw) -> Errors:
    """Check that how volumes are attached stays."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors = immutable(spec.get("attachRequired"), before.get("attachRequired"), "spec.attachedRequired")
    path = "spec.volumeLifecycleModes"
    return errors + immutable(spec.get("volumeLifecycleModes"), before.get("volumeLifecycleModes"), path)


def csi_storage_capacity(obj: Raw) -> Errors:
    """Check a new CSIStorageCapacity."""
    name, amount = obj.get("storageClassName") or "", obj.get("capacity")
    errors = label_selector(obj.get("nodeTopology"), "nodeTopology") + at("storageClassName", dns_subdomain(name), name)
    return errors + (non_negative_amount(amount, "capacity") if amount is not None else [])


def csi_storage_capacity_update(new: Raw, old: Raw) -> Errors:
    """Check that only the amount changes."""
    errors = immutable(new.get("nodeTopology"), old.get("nodeTopology"), "nodeTopology")
    return errors + immutable(new.get("storageClassName"), old.get("storageClassName"), "storageClassName")


def volume_attachment(obj: Raw) -> Errors:
    """Check a VolumeAttachment."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    source, node = spec.get("source") or {}, spec.get("nodeName") or ""
    errors = csi_driver_name(spec.get("attacher") or "", "spec.attacher")
    errors += _attachment_source(source, "spec.source") + at("spec.nodeName", dns_subdomain(node), node)
    if _size(status.get("attachmentMetadata") or {}) > _LONGEST_METADATA:
        errors.append(too_long("status.attachmentMetadata", _LONGEST_METADATA))
    for key in ("attachError", "detachError"):
        errors += _volume_error(status.get(key) or {}, f"status.{key}")
    name = source.get("persistentVolumeName")
    if name is not None:
        errors += at("spec.source.persistentVolumeName", dns_subdomain(name), name)
    return errors


def _attachment_source(source: Raw, path: str) -> Errors:
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and name is None:
        return [required(path, detail)]
    if inline is not None and name is not None:
        return [forbidden(path, detail)]
    if inline is not None:
        return volume_spec(inline, f"{path}.inlineVolumeSpec", inline=True)
    return [] if name else [required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")]


def _volume_error(error: Raw, path: str) -> Errors:
    errors: Errors = []
    if len(error.get("message") or "") > _LONGEST_MESSAGE:
        errors.append(too_long(f"{path}.message", _LONGEST_METADATA))
    if (error.get("errorCode") or 0) < 0:
        errors.append(invalid(f"{path}.errorCode", error["errorCode"], in_range(0, _MAX_INT32)))
    return errors


def volume_attachment_update(new: Raw, old: Raw) -> Errors:
    """Check a changed VolumeAttachment: its spec stays."""
    errors = look_again(new, dns_subdomain) + volume_attachment(new)
    if not same(new.get("spec"), old.get("spec")):
        errors.append(invalid("spec", go_form("VolumeAttachmentSpec", new.get("spec")), IMMUTABLE))
    return errors
