"""Aliases: generated names and uids as they are written in transcripts.

Replica sets of Deployment `web` are `web-rs1`, `web-rs2`, ... in the order in which they were made, controller
revisions `web-cr1`, ...; generated pods are anonymous: `web-rs1-*`.
"""

import re
from collections.abc import Mapping

from skysail.api.raw import Raw

NAMESPACE, OTHER_NAMESPACE = "NS", "NS-b"
REAL_NAMES = {NAMESPACE: "transcript-ns", OTHER_NAMESPACE: "transcript-ns-b"}

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HASH_LABELS = {
    "ReplicaSet": ("pod-template-hash",),
    "ControllerRevision": ("controller.kubernetes.io/hash", "controller-revision-hash"),
}
_GENERATED = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_REFUSED_POD = re.compile(f'(pods "[a-z0-9.-]+)-{_GENERATED}"')


def _owner_kind(meta: Raw) -> str:
    return next((str(ref["kind"]) for ref in meta.get("ownerReferences") or () if ref.get("controller")), "")


class Names:
    """Which alias stands for which name.

    Args:
        namespaces: The real names of the transcript's namespaces.

    Attributes:
        namespaces: See there.
    """

    def __init__(self, namespaces: Mapping[str, str] = REAL_NAMES) -> None:
        self.namespaces = namespaces
        self._alias: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._pods: dict[str, str] = {}
        self._known: set[str] = set()
        self._by_uid: dict[str, str] = {}

    def learn(self, kind: str, obj: Raw) -> None:
        """Hear of a new object; sets and revisions whose name ends in a hash get the next alias of their owner.

        One that is made again under the same name is another object and gets another alias; pods keep the alias they
        had at first.
        """
        meta = obj["metadata"]
        if meta["uid"] in self._known:
            return
        self._known.add(meta["uid"])
        if kind == "Pod":
            if meta.get("generateName") and _owner_kind(meta) != "StatefulSet":
                self._pods[meta["name"]] = self.of(meta["generateName"].removesuffix("-")) + "-*"
            return
        labels = meta.get("labels") or {}
        suffix = next((labels[label] for label in _HASH_LABELS[kind] if label in labels), "")
        owner = next((ref["name"] for ref in meta.get("ownerReferences") or () if ref.get("controller")), "")
        if not suffix or not meta["name"].endswith(f"-{suffix}") or not owner:
            return
        stem = f"{owner}-{'rs' if kind == 'ReplicaSet' else 'cr'}"
        self._counts[stem] = self._counts.get(stem, 0) + 1
        self._alias[meta["name"]] = self._by_uid[meta["uid"]] = f"{stem}{self._counts[stem]}"

    def of(self, name: str) -> str:
        """The alias of a name, or the name itself; for an indexed job's `job-0` too."""
        return self._alias.get(name) or self._pods.get(name) or name

    def of_object(self, name: str, uid: str) -> str:
        """The alias of one object, even when another of the same name came after it."""
        return self._by_uid.get(uid) or self.of(name)

    def real(self, alias: str) -> str:
        """The name an alias stands for, or the alias itself."""
        return next((name for name, known in self._alias.items() if known == alias), alias)

    def text(self, text: str) -> str:
        """A message with aliases for names, `UID` for uids and `NS` for the namespace."""
        for pod, alias in self._pods.items():
            if pod in text:
                text = text.replace(pod, alias)
        for name, alias in self._alias.items():
            if name in text:
                text = re.sub(f"{re.escape(name)}-{_GENERATED}", f"{alias}-*", text)
                text = text.replace(name, alias)
        for short, name in sorted(self.namespaces.items(), reverse=True):
            text = text.replace(name, short)
        return _REFUSED_POD.sub(r'\1-*"', _UID.sub("UID", text))
