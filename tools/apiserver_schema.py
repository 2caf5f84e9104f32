"""Make `src/skysail/apiserver/schema/data/kubernetes-1.36.json` out of published facts about the Kubernetes API.

    python tools/apiserver_schema.py --schema DIR --recordings DIR --source DIR --out FILE

It joins four sources, all derived from the Apache-2.0 definitions of Kubernetes, and keeps facts only (names, types,
keys, numbers, flags; no descriptions):

- `--schema`: `schema.json` (fields, types, merge keys, list keys) and `resources.json` (the table of resources);
- `--recordings`: `protobuf/fields.json` (message, number, JSON name) and `discovery.json` (short names, singular names,
  categories, the order of groups, which versions are served by default);
- `--source`: the `staging/src/k8s.io` directory of a Kubernetes tree, read for the order of struct fields, which of
  them are pointers, which are left out when empty, and the Go names that decoding errors mention.

Run it again when the Kubernetes version moves; the product itself only reads the result.
"""

import argparse
import json
import re
from pathlib import Path

GoFields = list[tuple[str | None, str, str]]

STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.M | re.S)
ALIAS = re.compile(r"^type (\w+) ([\[\]\w\.]+)$", re.M)
FIELD = re.compile(r"^(?:(\w+)\s+)?([\*\[\]\w\.]+(?:\[[\w\.]+\][\*\[\]\w\.]*)?)\s+`([^`]*)`")
SCALARS = {"string", "bool", "int32", "int64", "float64", "byte", "int"}
FORMS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intstr",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "raw",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch": "raw",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "raw",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON": "raw",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray": "schema-or-array",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool": "schema-or-bool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray": "schema-or-strings",
}


def read_go(source: Path) -> dict[str, GoFields | str]:
    """`directory:Type` -> fields `(Go name, Go type, json tag)`, or the underlying type of a named one."""
    found: dict[str, GoFields | str] = {}
    globs = (
        "api/*/*/types*.go",
        "apimachinery/pkg/apis/meta/v1/*.go",
        "apiextensions-apiserver/pkg/apis/apiextensions/v1/types*.go",
    )
    for path in sorted(p for pattern in globs for p in source.glob(pattern)):
        if path.name.endswith("_test.go") or "generated" in path.name:
            continue
        directory = path.parent.relative_to(source).as_posix()
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        for name, body in STRUCT.findall(text):
            found[f"{directory}:{name}"] = [
                parsed for line in body.splitlines() if (parsed := read_field(line.strip()))
            ]
        for name, under in ALIAS.findall(text):
            if under != "struct":
                found[f"{directory}:{name}"] = under
    return found


def read_field(line: str) -> tuple[str | None, str, str] | None:
    """One line of a struct: Go name, Go type, json tag."""
    if line.startswith("//") or not (match := FIELD.match(line)):
        return None
    tag = re.search(r'json:"([^"]*)"', match[3])
    return (match[1], match[2], tag[1]) if tag else None


def go_key(definition: str) -> str:
    """The directory and type of a definition."""
    *package, name = definition.removeprefix("io.k8s.").split(".")
    return "/".join(package) + ":" + name


def flatten(key: str, go: dict[str, GoFields | str]) -> list[tuple[str, str, str]]:
    """`(json name, Go type, flags)` in the order in which Go writes them, embedded structs spread out."""
    fields = go.get(key)
    if isinstance(fields, str):
        return flatten("api/admissionregistration/v1:" + fields.rpartition(".")[2], go)
    out: list[tuple[str, str, str]] = []
    for _, go_type, tag in fields or ():
        name, _, flags = tag.partition(",")
        if "inline" in flags:
            bare = go_type.lstrip("*")
            if bare in ("metav1.TypeMeta", "TypeMeta"):
                out += [("kind", "string", "omitempty"), ("apiVersion", "string", "omitempty")]
            else:
                package, _, short = bare.rpartition(".")
                home = {"v1": "api/core/v1", "": key.split(":")[0]}[package]
                if f"{home}:{short}" not in go:
                    home = "api/admissionregistration/v1"
                out += flatten(f"{home}:{short}", go)
        elif name not in ("", "-"):
            out.append((name, go_type, flags))
    return out


def go_name(go_type: str, package: str) -> str:
    """The type as Go's `reflect` prints it: `[]v1.Container`, `map[string]string`, `v1.PodPhase`."""
    go_type = go_type.lstrip("*")
    if go_type.startswith("[]"):
        return "[]" + ("*" if go_type[2:3] == "*" else "") + go_name(go_type[2:], package)
    if match := re.match(r"map\[([\w\.]+)\](.*)", go_type):
        return f"map[{go_name(match[1], package)}]{go_name(match[2], package)}"
    if go_type == "byte":
        return "uint8"
    if go_type in SCALARS:
        return go_type
    prefix, _, short = go_type.rpartition(".")
    if prefix in ("metav1", "corev1", "v1", "apiextensionsv1", ""):
        prefix = "v1" if prefix else package
    return f"{prefix}.{short}"


def shape(spec: dict) -> dict:
    """The part of a field that says what its values look like."""
    out = {key: spec[key] for key in ("type", "format", "ref") if key in spec}
    for key in ("items", "map"):
        if key in spec:
            out[key] = shape(spec[key])
    return out


def field(spec: dict, go_type: str, flags: str, package: str) -> dict:
    """One field with all its rules."""
    out = shape(spec)
    names = {
        "patchMergeKey": "patch_merge_key",
        "listType": "list_type",
        "listMapKeys": "list_map_keys",
        "mapType": "map_type",
    }
    out |= {ours: spec[theirs] for theirs, ours in names.items() if theirs in spec}
    out |= {key: spec[key] for key in ("required", "default", "enum") if key in spec}
    if "patchStrategy" in spec:
        out["patch_strategy"] = spec["patchStrategy"].split(",")
    if go_type:
        out["go"] = go_name(go_type, package)
        if go_type.startswith("*"):
            out["pointer"] = True
    if not go_type:
        out["omit"] = "" if spec.get("required") else "empty"
    elif "omitzero" in flags:
        out["omit"] = "zero"
    elif "omitempty" in flags:
        out["omit"] = "empty"
    return {key: value for key, value in out.items() if value != "" or key == "default"}


def message_of(definition: str) -> str:
    """A definition's protobuf message."""
    return (
        definition.replace("io.k8s.", "k8s.io.", 1)
        .replace("apiextensions-apiserver", "apiextensions_apiserver")
        .replace("kube-aggregator", "kube_aggregator")
    )


def make_types(schema: dict, messages: dict, go: dict) -> dict:
    """Every definition, and the messages that exist only inside others."""
    types: dict[str, dict] = {}
    inline_only: dict[str, str] = {}
    for name, definition in schema.items():
        package, short = name.split(".")[-2:]
        entry: dict = {"go": f"{package}.{short}"}
        if name in FORMS:
            entry["form"] = FORMS[name]
            types[name] = entry
            continue
        specs = definition.get("fields", {})
        ordered = [f for f in flatten(go_key(name), go) if f[0] in specs]
        numbers = messages.get(message_of(name), {})
        if not ordered:
            by_number = [e[0] for e in numbers.values()]
            ordered = [
                (f, "", "")
                for f in sorted(
                    specs, key=lambda f: (f not in ("kind", "apiVersion"), by_number.index(f) if f in by_number else -1)
                )
            ]
        assert {f[0] for f in ordered} == set(specs), name
        entry["fields"] = {f: field(specs[f], t, flags, package) for f, t, flags in ordered}
        for number, (json_name, kind, _, *rest) in numbers.items():
            if rest:
                entry.setdefault("inline", {})[number] = inline_only.setdefault(
                    kind, kind.replace("k8s.io.", "io.k8s.", 1)
                )
            else:
                entry["fields"][json_name]["number"] = int(number)
        if "mapType" in definition:
            entry["map_type"] = definition["mapType"]
        if "gvk" in definition:
            entry["gvk"] = definition["gvk"]
        if not entry["fields"]:
            entry["form"] = "empty"
        types[name] = entry
    parents = {inline: parent for parent in types.values() for inline in parent.get("inline", {}).values()}
    for message, name in inline_only.items():
        if name not in types:
            parent = parents[name]["fields"]
            fields = {
                e[0]: {k: v for k, v in parent[e[0]].items() if k != "number"} | {"number": int(n)}
                for n, e in messages[message].items()
            }
            types[name] = {"go": ".".join(name.split(".")[-2:]), "fields": fields, "message_only": True}
    return types


VERBS = {
    "post": ["create"],
    "put": ["update"],
    "get": ["get"],
    "list": ["list"],
    "patch": ["patch"],
    "delete": ["delete"],
    "deletecollection": ["deletecollection"],
    "connect": ["create", "delete", "get", "patch", "update"],
}


def make_resources(resources: list, discovery: dict) -> tuple[list, list]:
    """The rows of the table, and the group versions in the order of discovery."""
    steps = {step["step"]: step for step in discovery["steps"]}
    known: dict[tuple[str, str, str], dict] = {}
    groups: list[list[str]] = []
    for root in ("aggregated /api", "aggregated /apis"):
        for group in steps[root]["response"]["body"]["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                groups.append([name, version["version"]])
                for resource in version["resources"]:
                    known[name, version["version"], resource["resource"]] = resource
    out = []
    for item in resources:
        key = (item["group"], item["version"], item["resource"])
        seen = known.get(key)
        entry = {key: item[key] for key in ("group", "version", "resource", "kind")} | {
            "namespaced": item["namespaced"]
        }
        entry["singular"] = seen["singularResource"] if seen else item["kind"].lower()
        verbs = sorted(v for verb in item["verbs"] for v in VERBS[verb])
        entry["verbs"] = (
            seen["verbs"] if seen else sorted([*verbs, "watch"] if "list" in verbs and "update" in verbs else verbs)
        )
        subresources = {}
        recorded = {s["subresource"]: s for s in seen.get("subresources", ())} if seen else {}
        for name, sub in item["subresources"].items():
            if "/" in name:
                continue
            group, version, kind = sub["kind"].split("/")
            subresources[name] = {
                "group": group,
                "version": version,
                "kind": kind,
                "verbs": recorded[name]["verbs"]
                if name in recorded
                else sorted(v for x in sub["verbs"] for v in VERBS[x]),
            }
        if subresources:
            entry["subresources"] = subresources
        for theirs, ours in (("shortNames", "short_names"), ("categories", "categories")):
            if seen and theirs in seen:
                entry[ours] = seen[theirs]
        if seen:
            entry["served"] = True
        out.append(entry)
    return out, groups


def main() -> None:
    """Read, join, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("schema", "recordings", "source", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    schema = json.loads((args.schema / "schema.json").read_text())
    messages = json.loads((args.recordings / "protobuf/fields.json").read_text())
    resources, groups = make_resources(
        json.loads((args.schema / "resources.json").read_text()),
        json.loads((args.recordings / "discovery.json").read_text()),
    )
    types = make_types(schema, messages, read_go(args.source))
    lines = [f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}" for name, entry in types.items()]
    rows = [json.dumps(row, separators=(",", ":")) for row in resources]
    args.out.write_text(
        '{"groups": '
        + json.dumps(groups)
        + ',\n"resources": [\n'
        + ",\n".join(rows)
        + '\n],\n"types": {\n'
        + ",\n".join(lines)
        + "\n}}\n"
    )


if __name__ == "__main__":
    main()
