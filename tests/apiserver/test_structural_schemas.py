# ruff: noqa: E501 - one case a line
"""What a schema does to a custom object, what its rules say, and what a schema and a definition must be."""

from typing import Any

import pytest

from skysail.apiserver.customresources import rules
from skysail.apiserver.customresources.checking import check_object
from skysail.apiserver.customresources.definitions import DefinitionStrategy
from skysail.apiserver.customresources.rules import RulesMissing, check_rules, compile_rule, escape
from skysail.apiserver.customresources.structural import Schema, fill_defaults, prune
from skysail.apiserver.customresources.structural_checks import check_schema
from tests.apiserver.gadgets import VERSION, definition


def object_of(**properties: Any) -> Schema:
    return Schema({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})


def with_spec(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "X", "metadata": {}, "spec": spec}


def test_pruning_drops_what_no_node_names_and_says_where_it_stood() -> None:
    schema = object_of(
        keep={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"in": {"type": "object"}}},
        map={"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        list={"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        whole={"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
    )
    obj = with_spec(
        keep={"any": 1, "in": {"x": 1}},
        map={"k": {"a": 1, "b": 2}},
        list=[{"a": 1}, {"z": 1}],
        whole={"kind": "Y", "apiVersion": "v1", "metadata": {"name": "n"}, "other": 1},
        frob=1,
    )
    unknown = prune(obj, schema)
    assert unknown == ["spec.frob", "spec.keep.in.x", "spec.list[1].z", "spec.map.k.b", "spec.whole.other"]
    assert obj["spec"] == {
        "keep": {"any": 1, "in": {}},
        "map": {"k": {"a": 1}},
        "list": [{"a": 1}, {}],
        "whole": {"kind": "Y", "apiVersion": "v1", "metadata": {"name": "n"}},
    }


def test_defaults_fill_nested_objects_lists_and_maps_and_replace_forbidden_nulls() -> None:
    leaf = {"type": "object", "properties": {"d": {"type": "integer", "default": 7}}}
    schema = object_of(
        made={"default": {}, **leaf},
        listed={"type": "array", "items": leaf},
        mapped={"type": "object", "additionalProperties": leaf},
        null={"type": "string", "default": "x"},
        free={"type": "string", "nullable": True, "default": "x"},
        gone={"type": "string"},
    )
    obj = with_spec(listed=[{}], mapped={"k": {}}, null=None, free=None, gone=None)
    fill_defaults(obj, schema, envelope=True)
    assert obj["spec"] == {
        "made": {"d": 7},
        "listed": [{"d": 7}],
        "mapped": {"k": {"d": 7}},
        "null": "x",
        "free": None,
    }


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "string"}, 1, 'spec.f: Invalid value: "integer": spec.f in body must be of type string: "integer"'),
        ({"type": "number"}, 1, ""),
        ({"type": "integer"}, 3.0, ""),
        ({"type": "integer", "maximum": 3}, 4, "spec.f: Invalid value: 4: spec.f in body should be less than or equal to 3"),
        (
            {"type": "integer", "minimum": 3, "exclusiveMinimum": True},
            3,
            "spec.f: Invalid value: 3: spec.f in body should be greater than 3",
        ),
        ({"type": "number", "multipleOf": 0.5}, 0.75, "spec.f: Invalid value: 0.75: spec.f in body should be a multiple of 0.5"),
        ({"type": "string", "minLength": 2}, "a", 'spec.f: Invalid value: "a": spec.f in body should be at least 2 chars long'),
        ({"type": "string", "pattern": "^a$"}, "b", "spec.f: Invalid value: \"b\": spec.f in body should match '^a$'"),
        ({"type": "string", "format": "date"}, "x", 'spec.f: Invalid value: "x": spec.f in body must be of type date: "x"'),
        ({"type": "string", "format": "uuid"}, "123e4567-e89b-42d3-a456-426614174000", ""),
        ({"type": "string", "format": "unheard-of"}, "x", ""),
        ({"type": "array", "minItems": 1, "items": {}}, [], "spec.f: Invalid value: 0: spec.f in body should have at least 1 items"),
        ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 1}, "spec.f: Too many: 2: must have at most 1 items"),
        (
            {"type": "object", "minProperties": 1},
            {},
            "spec.f: Invalid value: 0: spec.f in body should have at least 1 properties",
        ),
        (
            {"type": "string", "anyOf": [{"pattern": "a"}, {"pattern": "b"}]},
            "c",
            'spec.f: Invalid value: "": "spec.f" must validate at least one schema (anyOf)',
        ),
        (
            {"type": "string", "oneOf": [{"pattern": "a"}, {"pattern": "b"}]},
            "ab",
            'spec.f: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
        (
            {"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}]},
            "a",
            'spec.f: Invalid value: "": "spec.f" must validate all the schemas (allOf)',
        ),
        ({"type": "string", "not": {"pattern": "a"}}, "a", 'spec.f: Invalid value: "": "spec.f" must not validate the schema (not)'),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            ["a", "b", "a"],
            'spec.f[2]: Duplicate value: "a"',
        ),
        ({"type": "integer", "format": "int32"}, 2**40, '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.f'),
    ],
)  # fmt: skip
def test_a_value_that_breaks_its_schema_is_named_in_upstreams_words(schema: Any, value: Any, message: str) -> None:
    assert [str(error) for error in check_object(with_spec(f=value), object_of(f=schema))] == (
        [message] if message else []
    )


def run_rule(rule: dict[str, Any], new: Any, old: Any = None) -> list[str]:
    schema = Schema({"type": "object", "properties": {"spec": {"x-kubernetes-validations": [rule], "type": "object"}}})
    before = None if old is None else {"spec": old}
    return [str(error) for error in check_rules({"spec": new}, before, schema)]


def test_rules_say_their_message_or_themselves() -> None:
    assert run_rule({"rule": "self.a > 1", "message": "too small"}, {"a": 1}) == ["spec: Invalid value: too small"]
    assert run_rule({"rule": "self.a > 1"}, {"a": 1}) == ["spec: Invalid value: failed rule: self.a > 1"]
    expression = {"rule": "self.a > 1", "messageExpression": "'a is ' + string(self.a)"}
    assert run_rule(expression, {"a": 1}) == ["spec: Invalid value: a is 1"]
    reason = {"rule": "false", "reason": "FieldValueForbidden", "message": "no", "fieldPath": ".a"}
    assert run_rule(reason, {"a": 1}) == ["spec.a: Forbidden: no"]


def test_a_rule_on_the_old_value_holds_only_where_there_is_one() -> None:
    rule = {"rule": "self.a == oldSelf.a", "message": "is immutable"}
    assert run_rule(rule, {"a": 1}) == []
    assert run_rule(rule, {"a": 1}, {"a": 2}) == ["spec: Invalid value: is immutable"]


def test_a_rule_that_fails_to_run_refuses_the_object() -> None:
    (message,) = run_rule({"rule": "self.nope > 1"}, {"a": 1})
    assert "evaluating rule: self.nope > 1" in message


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3", {"l": [1, 2, 3]}),
        ("self.l.isSorted()", {"l": [1, 2, 3]}),
        ("isURL(self.u) && !isURL('nope')", {"u": "https://example.com/x"}),
        ("self.s.find('[0-9]+') == '42' && size(self.s.findAll('[0-9]')) == 2", {"s": "a42b"}),
        ("self.s.lowerAscii() == 'x'", {"s": "X"}),
    ],
)
def test_the_libraries_of_kubernetes_are_there(expression: str, value: Any) -> None:
    assert run_rule({"rule": expression}, value) == []


def test_odd_field_names_are_escaped_in_rules() -> None:
    assert [escape(name) for name in ("plain", "a-b", "a.b", "a/b", "x__y", "in")] == [
        "plain", "a__dash__b", "a__dot__b", "a__slash__b", "x__underscores__y", "__in__",
    ]  # fmt: skip


def test_without_the_library_a_definition_with_rules_is_refused_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(text: str) -> Any:
        raise RulesMissing("install skysail[cel]")

    monkeypatch.setattr("skysail.apiserver.customresources.structural_checks.compile_rule", missing)
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}
    assert [str(error) for error in check_schema(schema, "s")] == [
        "s.x-kubernetes-validations[0].rule: Forbidden: install skysail[cel]"
    ]


def test_a_missing_library_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cel_expr_python", None)
    rules._environment.cache_clear()
    compile_rule.cache_clear()
    with pytest.raises(RulesMissing, match=r"skysail\[cel\]"):
        compile_rule("1 == 1")
    monkeypatch.undo()
    rules._environment.cache_clear()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {}}, "s.type: Required value: must not be empty at the root"),
        ({"type": "string"}, 's.type: Invalid value: "string": must be object at the root'),
        ({"type": "object", "nullable": True}, "s.nullable: Forbidden: nullable cannot be true at the root"),
        ({"type": "object", "properties": {"a": {}}}, "s.properties[a].type: Required value: must not be empty for specified object fields"),
        ({"type": "object", "properties": {"a": {"type": "odd"}}}, 's.properties[a].type: Unsupported value: "odd": supported values: "array", "boolean", "integer", "number", "object", "string"'),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "s.properties[a].items: Required value: must be specified"),
        ({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}, "s.properties[a].items.type: Required value: must not be empty for specified array items"),
        ({"type": "object", "additionalProperties": True}, "s.additionalProperties: Forbidden: must not be used at the root"),
        ({"type": "object", "uniqueItems": True}, "s.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"),
        ({"type": "object", "$ref": "x"}, "s.$ref: Forbidden: $ref is not supported"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": False}, "s.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, "must be a valid regular expression"),
        ({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}, "s.properties[a].default: Invalid value"),
        ({"type": "object", "allOf": [{"type": "object"}]}, "s.allOf[0].type: Forbidden: must be empty to be structural"),
        ({"type": "object", "not": {"properties": {"a": {"default": 1}}}}, "s.not.properties[a].default: Forbidden: must be undefined to be structural"),
        ({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}}}, "s.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"),
        ({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-list-type": "set"}}}, "must be array if x-kubernetes-list-type is specified"),
        ({"type": "object", "x-kubernetes-validations": [{"rule": ""}]}, "s.x-kubernetes-validations[0].rule: Required value: rule is not specified"),
        ({"type": "object", "x-kubernetes-validations": [{"rule": "self ="}]}, "compilation failed"),
        ({"type": "object", "x-kubernetes-validations": [{"rule": "true", "message": " "}]}, "must be non-empty if specified"),
    ],
)  # fmt: skip
def test_a_schema_that_is_not_structural_is_refused_by_path(schema: Any, message: str) -> None:
    errors = [str(error) for error in check_schema(schema, "s")]
    assert len(errors) == 1
    assert message in errors[0]


def test_a_structural_schema_is_taken() -> None:
    number_or_text = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    item = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
    listed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"], "items": item}
    schema = {
        "type": "object",
        "properties": {"p": number_or_text, "l": listed, "m": {"type": "object", "additionalProperties": item}},
    }
    assert check_schema(schema, "s") == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group": "plain"}, 'spec.group: Invalid value: "plain": should be a domain with at least one dot'),
        ({"scope": "Odd"}, 'spec.scope: Unsupported value: "Odd": supported values: "Cluster", "Namespaced"'),
        ({"scope": ""}, "spec.scope: Required value"),
        ({"names": {"plural": "gadgets", "kind": "G", "listKind": "G"}}, "kind and listKind may not be the same"),
        ({"names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["A_"]}}, "spec.names.shortNames[0]: Invalid value"),
        ({"names": {"plural": "gadgets"}}, "spec.names.kind: Required value"),
        ({"versions": [VERSION, VERSION]}, "must contain unique version names"),
        ({"versions": [{**VERSION, "storage": False}]}, "must have exactly one version marked as storage version"),
        ({"versions": [{**VERSION, "name": "V_"}]}, "spec.versions[0].name: Invalid value"),
        ({"versions": [{**VERSION, "additionalPrinterColumns": [{"name": "a", "type": "x", "jsonPath": ".a"}]}]}, "must be one of boolean,date,integer,number,string"),
        ({"versions": [{**VERSION, "subresources": {"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".status.y"}}}]}, "should be a json path under .spec"),
        ({"conversion": {"strategy": "Webhook"}}, "it calls no webhooks"),
        ({"preserveUnknownFields": True}, "cannot set to true"),
    ],
)  # fmt: skip
def test_a_definition_that_breaks_a_rule_is_refused(changes: dict[str, Any], message: str) -> None:
    strategy, obj = DefinitionStrategy(), definition(**changes)
    strategy.default(obj)
    errors = [str(error) for error in strategy.validate_create(obj)]
    assert any(message in error for error in errors), errors
