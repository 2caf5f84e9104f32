"""What happens to the metadata of every object, whatever its kind: system fields, names, owner references, finalizers.

Plain functions over an object; they alter it in place.

Source: apiserver/pkg/registry/rest/{meta,create,update,delete}.go and generic/registry/store.go, v1.36.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

from skysail.api.raw import Raw
from skysail.apiserver.contract import DeleteOptions, ResourceInfo
from skysail.apiserver.status import bad_request

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_PREFIX = 58
_LAST_YEAR = datetime(9999, 1, 1, tzinfo=UTC)
_SYSTEM_FIELDS = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def timestamp(moment: datetime) -> str:
    """A time as objects carry it: UTC, whole seconds."""
    return f"{moment.isoformat()[:19]}Z"


def parse_timestamp(text: str) -> datetime:
    """The time an object carries."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def make_uid(rng: Random) -> str:
    """A random UUID, version 4."""
    digits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def generate_name(prefix: str, rng: Random) -> str:
    """A name for a generateName: the prefix, cut, and five random characters."""
    return prefix[:_GENERATED_PREFIX] + "".join(rng.choices(_NAME_ALPHABET, k=5))


def metadata_of(obj: Raw) -> Raw:
    """The object's metadata, added when it has none."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        metadata = obj["metadata"] = {}
    return metadata


def match_namespace(obj: Raw, resource: ResourceInfo, namespace: str) -> None:
    """Give the object the namespace of the URL.

    Raises:
        BadRequest: It names another one.
    """
    metadata = metadata_of(obj)
    expected = namespace if resource.namespaced else ""
    actual = metadata.get("namespace") or ""
    if actual and actual != expected and (expected or resource.namespaced):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if expected:
        metadata["namespace"] = expected
    else:
        metadata.pop("namespace", None)


def match_name(obj: Raw, name: str) -> None:
    """Check that the object is the one the URL names.

    Raises:
        BadRequest: It has another name, or none.
    """
    actual = metadata_of(obj).get("name") or ""
    if not actual:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if actual != name:
        raise bad_request(f"the name of the object ({actual}) does not match the name on the URL ({name})")


def wipe_system_fields(obj: Raw) -> None:
    """Drop from a new object what only the server may set."""
    metadata = metadata_of(obj)
    for field in _SYSTEM_FIELDS:
        metadata.pop(field, None)


def fill_system_fields(obj: Raw, now: datetime, rng: Random) -> None:
    """Give a new object its uid and time, and its name when one is to be generated."""
    metadata = obj["metadata"]
    metadata["creationTimestamp"] = timestamp(now)
    metadata["uid"] = make_uid(rng)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generate_name(metadata["generateName"], rng)


def carry_over(new: Raw, old: Raw) -> None:
    """Put back what no update may change: uid when left out, creation time, the fact of being deleted."""
    metadata, before = new["metadata"], old["metadata"]
    if not metadata.get("uid"):
        metadata["uid"] = before["uid"]
    metadata["creationTimestamp"] = before["creationTimestamp"]
    if before.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = before["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in before and metadata.get("deletionGracePeriodSeconds") is None:
        metadata["deletionGracePeriodSeconds"] = before["deletionGracePeriodSeconds"]


def deduplicate_owners(obj: Raw) -> str:
    """Drop owner references that say the same again; the warning to give, or ""."""
    metadata = metadata_of(obj)
    references = metadata.get("ownerReferences")
    if not references or len(references) < 2:
        return ""
    kept: list[Raw] = []
    repeated: list[str] = []
    for reference in references:
        if reference not in kept:
            kept.append(reference)
        elif reference.get("uid", "") not in repeated:
            repeated.append(reference.get("uid", ""))
    if not repeated:
        return ""
    metadata["ownerReferences"] = kept
    return (
        ".metadata.ownerReferences contains duplicate entries, API server dedups owner references in 1.20+, and may "
        "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        f"{', '.join(repeated)}"
    )


def keep_managed_times(new: Raw, old: Raw) -> None:
    """Undo new times in managedFields when nothing else has changed, so that the write is none."""
    after, before = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if after == before or not after or not before or len(after) != len(before):
        return
    timeless = [{**entry, "time": None} for entry in after] == [{**entry, "time": None} for entry in before]
    if timeless and _without_managed(new) == _without_managed(old):
        new["metadata"]["managedFields"] = before


def _without_managed(obj: Raw) -> Raw:
    return {**obj, "metadata": {**obj["metadata"], "managedFields": None, "resourceVersion": None}}


def garbage_finalizers(metadata: Raw, propagation: str, default: str) -> Sequence[str]:
    """The finalizers of an object under deletion: those of the garbage collector follow the policy asked for.

    Args:
        metadata: Of the object.
        propagation: Foreground, Background, Orphan, or "" for what the object's finalizers or the kind say.
        default: The kind's own policy.
    """
    present = metadata.get("finalizers") or []
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(propagation, "")
    if not propagation:
        standing = next((name for name in present if name in (ORPHAN, FOREGROUND)), "")
        wanted = standing or (ORPHAN if default == "Orphan" else "")
    kept = [name for name in present if name not in (ORPHAN, FOREGROUND)]
    after = [*kept, wanted] if wanted else kept
    return present if set(after) == set(present) else after


def mark_deleted(metadata: Raw, now: datetime) -> None:
    """Under deletion since now, without grace; the generation counts it."""
    if not metadata.get("deletionTimestamp"):
        bump_generation(metadata)
        metadata["deletionTimestamp"] = timestamp(now)
    elif parse_timestamp(metadata["deletionTimestamp"]) > now:
        metadata["deletionTimestamp"] = timestamp(now)
    metadata["deletionGracePeriodSeconds"] = 0


def bump_generation(metadata: Raw) -> None:
    """One more, for objects that count generations."""
    if metadata.get("generation"):
        metadata["generation"] += 1


def begin_grace(metadata: Raw, seconds: int, now: datetime) -> None:
    """Start the deletion of an object that has time to end itself."""
    metadata["deletionTimestamp"] = timestamp(now + timedelta(seconds=_writable(seconds, now)))
    metadata["deletionGracePeriodSeconds"] = seconds
    bump_generation(metadata)


def _writable(seconds: int, now: datetime) -> int:
    """A grace period no longer than to the last year that a timestamp can name; upstream's arithmetic wraps around."""
    return min(seconds, int((_LAST_YEAR - now).total_seconds()))


def shorten_grace(metadata: Raw, options: DeleteOptions, now: datetime) -> bool:
    """Bring the end of an object under deletion forward; False when it already comes as soon."""
    current, wanted = metadata["deletionGracePeriodSeconds"], options.grace_period_seconds
    if wanted is None or wanted >= current:
        return False
    began = parse_timestamp(metadata["deletionTimestamp"]) - timedelta(seconds=_writable(current, now))
    ends = began + timedelta(seconds=_writable(wanted, now))
    if ends < now:
        ends, wanted = now, min(wanted, 1)
    metadata["deletionTimestamp"] = timestamp(ends)
    metadata["deletionGracePeriodSeconds"] = wanted
    return True


def is_finished(new: Raw, old: Raw) -> bool:
    """Whether this update takes away the last finalizer of an object whose grace is over: it must go."""
    before = old["metadata"]
    if new["metadata"].get("finalizers") or not before.get("deletionTimestamp"):
        return False
    return not before.get("deletionGracePeriodSeconds")
