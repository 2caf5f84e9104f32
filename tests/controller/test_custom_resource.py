"""CustomResourceDefinitions from annotated Structs, and a server that accepts them."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest

from skysail.api.errors import ConfigError, Invalid
from skysail.api.kinds import Kind
from skysail.api.meta import ApiObject, Condition, Struct
from skysail.controller.customresources import (
    Column,
    CustomResource,
    ScalePaths,
    custom_kind,
    definition_of,
    list_map,
    list_set,
    rule,
    schema_of_object,
)

DEFINITIONS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, dict, ("status",)
)


class Level(Enum):
    LOW = "Low"
    HIGH = "High"


class Target(Struct, frozen=True, gc=False, kw_only=True):
    name: str
    weight: float = 1.5


class BackupSpec(Struct, frozen=True, gc=False, kw_only=True):
    """What to back up.

    Attributes:
        schedule: When, in the form
            that cron reads.
        keep: How many.
    """

    schedule: Annotated[str, msgspec.Meta(min_length=1, max_length=99, pattern="^[0-9*/ ]+$")]
    keep: Annotated[int, msgspec.Meta(ge=1, lt=11, multiple_of=1)] = 3
    mode: Literal["Full", "Delta"] = "Full"
    level: Level = Level.LOW
    labels: Annotated[Mapping[str, str], msgspec.Meta(max_length=5)] = {}
    tags: Annotated[tuple[str, ...], list_set()] = ()
    targets: Annotated[tuple[Target, ...], list_map("name")] = ()
    port: int | str | None = None
    at: datetime | None = None
    paused: bool = False
    extra: dict[str, Any] = {}
    anything: msgspec.Raw = msgspec.Raw()
    main: Target | None = None
    store: Annotated[str, rule("self == oldSelf", "is immutable")] = "disk"


class BackupStatus(Struct, frozen=True, gc=False, kw_only=True):
    conditions: Annotated[tuple[Condition, ...], list_map("type")] = ()
    replicas: int = 0


class Backup(ApiObject, frozen=True, gc=False, kw_only=True):
    """A backup that is made
    regularly.

    More about it.
    """

    resource: ClassVar[CustomResource] = CustomResource(
        "example.com", "v1", "backups", short_names=("bk",), categories=("all",),
        columns=(Column("Schedule", ".spec.schedule"), Column("Kept", ".spec.keep", "integer", 1, "how many")),
        scale=ScalePaths(spec_replicas=".spec.keep", selector=".status.selector"),
    )  # fmt: skip
    spec: BackupSpec
    status: BackupStatus = BackupStatus()


def spec_schema():
    return schema_of_object(Backup)["properties"]["spec"]


def test_scalars_and_their_constraints():
    properties = spec_schema()["properties"]
    assert properties["schedule"] == {
        "description": "When, in the form that cron reads.", "type": "string", "pattern": "^[0-9*/ ]+$",
        "minLength": 1, "maxLength": 99,
    }  # fmt: skip
    assert properties["keep"] == {
        "description": "How many.", "type": "integer", "format": "int64", "minimum": 1, "maximum": 11,
        "exclusiveMaximum": True, "multipleOf": 1, "default": 3,
    }  # fmt: skip
    assert properties["at"] == {"type": "string", "format": "date-time"}
    assert properties["paused"] == {"type": "boolean"}
    assert properties["port"] == {"x-kubernetes-int-or-string": True}


def test_choices_are_enums():
    properties = spec_schema()["properties"]
    assert properties["mode"] == {"type": "string", "enum": ["Delta", "Full"], "default": "Full"}
    assert properties["level"] == {"type": "string", "enum": ["Low", "High"], "default": "Low"}


def test_collections_and_their_markers():
    properties = spec_schema()["properties"]
    assert properties["labels"] == {
        "type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 5,
    }  # fmt: skip
    assert properties["tags"] == {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    target = {
        "type": "object", "properties": {"name": {"type": "string"}, "weight": {"type": "number", "default": 1.5}},
        "required": ["name"],
    }  # fmt: skip
    assert properties["targets"] == {
        "type": "array", "items": target, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    }  # fmt: skip
    assert properties["main"] == target


def test_what_has_no_shape_keeps_its_unknown_fields():
    properties = spec_schema()["properties"]
    assert properties["extra"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert properties["anything"] == {"x-kubernetes-preserve-unknown-fields": True}


def test_rules_are_passed_on():
    validations = spec_schema()["properties"]["store"]["x-kubernetes-validations"]
    assert validations == [{"rule": "self == oldSelf", "message": "is immutable"}]


def test_fields_without_a_default_are_required_and_descriptions_come_from_docstrings():
    schema = schema_of_object(Backup)
    assert schema["description"] == "A backup that is made regularly."
    assert schema["required"] == ["spec"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert spec_schema()["required"] == ["schedule"]
    assert spec_schema()["description"] == "What to back up."
    assert "description" not in schema["properties"]["status"]


def test_the_keys_of_a_list_map_are_required_in_its_items():
    conditions = schema_of_object(Backup)["properties"]["status"]["properties"]["conditions"]
    assert conditions["items"]["required"] == ["type"]


def test_a_struct_that_contains_itself_has_no_structural_schema():
    with pytest.raises(ConfigError, match="Tree contains itself"):
        schema_of_object(Forest)


class Tree(Struct, frozen=True, gc=False):
    children: tuple["Tree", ...] = ()


class Forest(ApiObject, frozen=True, gc=False):
    spec: Tree = Tree()


def test_a_field_of_two_types_has_no_structural_schema():
    class Odd(ApiObject, frozen=True, gc=False):
        spec: int | float = 0

    with pytest.raises(ConfigError, match=r"Odd\.spec.*may have one type"):
        schema_of_object(Odd)


def test_a_type_json_does_not_know_has_no_structural_schema():
    class Odd(ApiObject, frozen=True, gc=False):
        spec: complex = 0j

    with pytest.raises(ConfigError, match=r"Odd\.spec"):
        schema_of_object(Odd)


def test_names_columns_and_subresources():
    definition = definition_of(Backup)
    assert definition["metadata"] == {"name": "backups.example.com"}
    spec = definition["spec"]
    assert (spec["group"], spec["scope"]) == ("example.com", "Namespaced")
    assert spec["names"] == {
        "kind": "Backup", "listKind": "BackupList", "plural": "backups", "singular": "backup", "shortNames": ["bk"],
        "categories": ["all"],
    }  # fmt: skip
    (version,) = spec["versions"]
    assert version["subresources"]["status"] == {}
    assert version["subresources"]["scale"] == {
        "specReplicasPath": ".spec.keep", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }  # fmt: skip
    assert version["additionalPrinterColumns"] == [
        {"name": "Schedule", "type": "string", "jsonPath": ".spec.schedule"},
        {"name": "Kept", "type": "integer", "jsonPath": ".spec.keep", "priority": 1, "description": "how many"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    assert custom_kind(Backup) == Kind("example.com", "v1", "Backup", "backups", True, Backup, ("status", "scale"))


def test_a_struct_that_does_not_say_where_it_lives_is_refused():
    with pytest.raises(ConfigError, match="Forest needs a class variable"):
        definition_of(Forest)

    class Rootless(ApiObject, frozen=True, gc=False):
        resource: ClassVar[CustomResource] = CustomResource("example", "v1", "rootless")

    with pytest.raises(ConfigError, match="needs a dot"):
        custom_kind(Rootless)


async def test_the_server_accepts_the_definition_fills_in_defaults_and_refuses_what_breaks_it(cluster):
    await cluster.client.create(DEFINITIONS, definition_of(Backup))
    await cluster.advance(1)
    established = await cluster.client.get(DEFINITIONS, "backups.example.com")
    assert [each["type"] for each in established["status"]["conditions"]] == ["NamesAccepted", "Established"]
    kind = custom_kind(Backup)
    made = await cluster.client.create(kind, {"metadata": {"name": "b"}, "spec": {"schedule": "0 * * * *"}}, "default")
    assert (made.spec.keep, made.spec.mode, made.spec.store) == (3, "Full", "disk")
    for broken in ({"schedule": ""}, {"schedule": "*", "keep": 11}, {"schedule": "*", "mode": "Half"}, {}):
        with pytest.raises(Invalid):
            await cluster.client.create(kind, {"metadata": {"name": "x"}, "spec": broken}, "default")
