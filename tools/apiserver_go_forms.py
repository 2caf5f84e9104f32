"""Make `src/skysail/apiserver/validation/data/go_forms.json`: the field order of upstream's internal types.

    python tools/apiserver_go_forms.py --source KUBERNETES_TREE --out FILE

Some refusals show whole objects as upstream's unversioned types print them (`{"Volumes":null,...}`). This reads which
fields those types have, in which order, of which type, and under which name the same field travels in v1: facts only,
from the Apache-2.0 definitions. The product only reads the result.

Each type becomes a list of `[Go name, wire name, type]`; an embedded struct's fields stand among its holder's. A type
is spelled `string int bool quantity json map`, the name of another type, `[]T` for lists, `*T` for pointers; `json`
is shown as it travels, and so is `inline`, whose keys stand among the holder's.
"""

import argparse
import json
import re
from pathlib import Path

STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.M | re.S)
ALIAS = re.compile(r"^type (\w+) ([\[\]\w\.]+)$", re.M)
TAG = re.compile(r'json:"([^",]*)')
PACKAGES = (("core", "core/v1"), ("resource", "resource/v1"), ("storage", "storage/v1"))
ROOTS = (
    "PodSpec", "PersistentVolumeClaimSpec", "PersistentVolumeSource", "EphemeralContainer", "VolumeNodeAffinity",
    "ResourceClaimSpec", "ResourceClaimTemplateSpec", "AllocationResult", "VolumeAttachmentSpec", "CSINodeDriver",
)  # fmt: skip
HOST_FIELDS = {"HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace", "HostUsers"}
SCALARS = {"string": "string", "bool": "bool", "byte": "int", "types.UID": "string"} | dict.fromkeys(
    ("int", "int32", "int64"), "int"
)

Fields = list[tuple[str, str, str]]


def read(path: Path) -> tuple[dict[str, Fields], dict[str, str]]:
    """Struct name -> `(Go name or "", type, tag)`, and the underlying types of named ones."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    structs = {}
    for name, body in STRUCT.findall(text):
        fields = []
        for raw in body.splitlines():
            line = raw.split("//")[0].strip()
            words = line.split("`")[0].split()
            if not words:
                continue
            tag = TAG.search(line)
            go_name, kind = (words[0], "".join(words[1:])) if len(words) > 1 else ("", words[0])
            fields.append((go_name, kind, tag[1] if tag else ""))
        structs[name] = fields
    return structs, dict(ALIAS.findall(text))


def spell(kind: str, structs: dict[str, Fields], aliases: dict[str, str]) -> str:
    """A Go type in our spelling."""
    if kind.startswith("*"):
        return "*" + spell(kind[1:], structs, aliases)
    if kind.startswith("[]"):
        return "[]" + spell(kind[2:], structs, aliases)
    if kind.startswith("map["):
        return "map"
    if kind in SCALARS:
        return SCALARS[kind]
    if kind == "resource.Quantity":
        return "quantity"
    kind = kind.removeprefix("core.").removeprefix("api.")
    if kind in structs:
        return kind
    if kind in aliases:
        return spell(aliases[kind], structs, aliases)
    return "json"


def main() -> None:
    """Read, follow the roots, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    structs: dict[str, Fields] = {}
    aliases: dict[str, str] = {}
    wire: dict[str, dict[str, str]] = {}
    for internal, external in PACKAGES:
        found, named = read(args.source / f"pkg/apis/{internal}/types.go")
        versioned, _ = read(args.source / f"staging/src/k8s.io/api/{external}/types.go")
        structs = found | structs
        aliases = named | aliases
        shown = {name: {go: tag for go, _, tag in fields if go} for name, fields in versioned.items()}
        wire = shown | wire
    forms: dict[str, list[list[str]]] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name in forms:
            continue
        forms[name] = [list(row) for row in flatten(name, structs, aliases, wire)]
        for _, _, kind in forms[name]:
            base = kind.lstrip("*[]")
            if base in structs:
                waiting.append(base)
    text = ",\n".join(f" {json.dumps(name)}: {json.dumps(forms[name])}" for name in sorted(forms))
    args.out.write_text("{\n" + text + "\n}\n")


def flatten(
    name: str, structs: dict[str, Fields], aliases: dict[str, str], wire: dict[str, dict[str, str]]
) -> list[tuple[str, str, str]]:
    """The rows of one type, embedded structs included."""
    rows: list[tuple[str, str, str]] = []
    for go_name, kind, _ in structs[name]:
        if not go_name:
            embedded = kind.split(".")[-1]
            if embedded in structs:
                rows += flatten(embedded, structs, aliases, wire)
            else:
                rows.append(("", "metadata", "inline"))
            continue
        known = wire.get(name, {}).get(go_name)
        if known is None and name == "PodSecurityContext" and go_name in HOST_FIELDS:
            known = wire["PodSpec"][go_name]
        rows.append((go_name, known or go_name[0].lower() + go_name[1:], spell(kind, structs, aliases)))
    return rows


if __name__ == "__main__":
    main()
