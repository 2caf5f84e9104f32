"""Every object that the real server answered is already in normal form; every refusal is in its words."""

import base64
import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skysail.api.errors import ApiError, BadRequest, Invalid, TooLarge, UnsupportedMediaType
from skysail.api.raw import Raw
from skysail.apiserver import schema
from skysail.apiserver.decoding import decode_body, json_text, normalize, patches, protobuf
from skysail.apiserver.decoding.ordering import canonical
from skysail.apiserver.decoding.scalars import ScalarError, canonical_bytes, canonical_micro_time, canonical_time
from skysail.apiserver.decoding.yaml_text import YamlSyntaxError, parse_yaml

GOLDEN = Path(__file__).parents[1] / "golden/apiserver"
TABLE = schema.load()
PROTOBUF = "application/vnd.kubernetes.protobuf"
VECTORS = json.loads((GOLDEN / "protobuf/vectors.json").read_text())
SCENARIOS = sorted(path.stem for path in GOLDEN.glob("*.json"))


def type_of(api_version: str, kind: str) -> schema.TypeInfo | None:
    group, _, version = api_version.rpartition("/")
    return TABLE.type_of(group, version, kind)


def known(api_version: str, kind: str) -> schema.TypeInfo:
    found = type_of(api_version, kind)
    assert found is not None
    return found


def without_placeholders(text: str) -> str:
    text = re.sub(r'"<nodePort:\d+>"', "30000", text)
    for placeholder, value in (("<time>", "2020-01-01T00:00:00Z"), ("<microtime>", "2020-01-01T00:00:00.000000Z")):
        text = text.replace(placeholder, value)
    return text


def answered_objects(scenario: str) -> Iterator[tuple[str, Raw]]:
    steps = json.loads(without_placeholders((GOLDEN / f"{scenario}.json").read_text()))["steps"]
    for step in steps:
        bodies = [step.get("response", {}).get("body")]
        bodies += [event.get("object") for event in step.get("events") or () if isinstance(event, dict)]
        for body in bodies:
            if isinstance(body, dict) and "kind" in body and "apiVersion" in body:
                yield step["step"], body


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_recorded_answers_are_in_normal_form(scenario: str) -> None:
    for step, body in answered_objects(scenario):
        info = type_of(body["apiVersion"], body["kind"])
        if info is not None and not body["kind"].endswith("List") and body["kind"] != "Status":
            assert normalize(body, info) == body, step


@pytest.mark.parametrize("vector", VECTORS["objects"], ids=lambda vector: vector["path"])
def test_stored_protobuf_becomes_the_json_the_server_gave(vector: Raw) -> None:
    kind = (*vector["apiVersion"].rpartition("/")[::2], vector["kind"])
    info = known(vector["apiVersion"], vector["kind"])
    obj, _ = decode_body(base64.b64decode(vector["protobufBase64"]), PROTOBUF, info, kind=kind)
    expected = vector["json"]
    if vector["kind"].endswith("List"):
        for item in obj["items"]:
            assert item.pop("kind", "") == ""
    assert obj == expected or vector["kind"] == "Status"


@pytest.mark.parametrize("vector", VECTORS["requests"], ids=lambda vector: f"{vector['method']} {vector['path']}")
def test_bodies_of_real_clients_mean_the_same_in_json(vector: Raw) -> None:
    body = base64.b64decode(vector["protobufBase64"])
    envelope = protobuf.open_envelope(body)
    group, _, version = envelope.api_version.rpartition("/")
    info = known(envelope.api_version, envelope.kind)
    obj, _ = decode_body(body, PROTOBUF, info, kind=(group, version, envelope.kind))
    again, warnings = decode_body(json.dumps(obj).encode(), "", info, "Strict", kind=(group, version, envelope.kind))
    assert (again, warnings) == (obj, [])


@given(st.sampled_from(VECTORS["requests"]), st.data())
def test_broken_protobuf_is_a_400_and_nothing_else(vector: Raw, data: st.DataObject) -> None:
    body = bytearray(base64.b64decode(vector["protobufBase64"]))
    envelope = protobuf.open_envelope(bytes(body))
    group, _, version = envelope.api_version.rpartition("/")
    info = known(envelope.api_version, envelope.kind)
    position = data.draw(st.integers(4, len(body) - 1))
    body[position] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(4, len(body)))
    with contextlib.suppress(BadRequest):
        decode_body(bytes(body[:cut]), PROTOBUF, info, kind=(group, version, envelope.kind))


def refusals() -> Iterator[tuple[str, Raw]]:
    for scenario in ("content-negotiation", "config-and-secrets", "field-validation", "leases"):
        steps = json.loads(without_placeholders((GOLDEN / f"{scenario}.json").read_text()))["steps"]
        for step in steps:
            request, answer = step.get("request", {}), step.get("response", {})
            if request.get("method") in ("POST", "PUT") and "body" in request and answer.get("status") in (400, 415):
                message = answer["body"]["message"]
                if "cannot be handled" in message or "unrecognized" in message or "unknown format" in message:
                    yield f"{scenario}: {step['step']}", step


@pytest.mark.parametrize("step", [pytest.param(step, id=name) for name, step in refusals()])
def test_unreadable_bodies_are_refused_in_the_servers_words(step: Raw) -> None:
    request, answer = step["request"], step["response"]
    parts = request["path"].strip("/").split("/")
    group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
    plural = parts[-1] if request["method"] == "POST" else parts[-2]
    resource = TABLE.resource(group, version, plural)
    assert resource is not None
    info = known(resource.api_version, resource.kind)
    body = request["body"].encode() if isinstance(request["body"], str) else json.dumps(request["body"]).encode()
    if isinstance(request["body"], list):
        body = json.dumps(request["body"], separators=(",", ":")).encode()
    content_type = (request.get("headers") or {}).get("Content-Type", "application/json")
    validation = dict(request.get("query", ())).get("fieldValidation", "Warn")
    with pytest.raises(ApiError) as caught:
        decode_body(body, content_type or "", info, validation)
    assert (caught.value.status.code, caught.value.status.message) == (answer["status"], answer["body"]["message"])


def decode_pod(body: str | Raw, validation: str = "Warn", content_type: str = "") -> tuple[Raw, list[str]]:
    text = body if isinstance(body, str) else json.dumps(body)
    return decode_body(text.encode(), content_type, known("v1", "Pod"), validation)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('"0.1"', "100m"), ("0.1", "100m"), ("1", "1"), ("1.50", "1500m"), ("1e3", "1e3"), ('"1024Ki"', "1Mi"),
        ('" 1 "', "1"), ("null", "0"),
    ],
)  # fmt: skip
def test_quantities_are_canonical_however_written(written: str, read: str) -> None:
    requests = f'{{"spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":{written}}}}}}}]}}}}'
    obj, warnings = decode_pod(requests)
    assert obj["spec"]["containers"][0]["resources"]["requests"] == {"cpu": read}
    assert warnings == []


def test_unknown_and_repeated_fields_are_named_in_the_order_of_the_text() -> None:
    text = (
        '{"frob":1,"metadata":{"labels":{"a":"1","a":"2"},"zork":{}},'
        '"spec":{"containers":[{"x":1},{"x":2}],"nodeName":"a","nodeName":"b"}}'
    )
    _, warnings = decode_pod(text)
    assert warnings == [
        'unknown field "frob"', 'duplicate field "metadata.labels.a"', 'unknown field "metadata.zork"',
        'unknown field "spec.containers[0].x"', 'unknown field "spec.containers[1].x"',
        'duplicate field "spec.nodeName"',
    ]  # fmt: skip
    assert decode_pod(text, "Ignore")[1] == []
    with pytest.raises(BadRequest, match='Pod in version "v1" cannot be handled as a Pod: strict decoding error: unk'):
        decode_pod(text, "Strict")


def test_a_repeated_key_does_not_hide_behind_a_space() -> None:
    assert decode_pod('{"metadata" : {"name":"a", "name" : "b"}}')[1] == ['duplicate field "metadata.name"']


def test_unknown_nulls_are_unknown_too() -> None:
    assert decode_pod('{"metadata":{"frob":null}}')[1] == ['unknown field "metadata.frob"']


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"containers": {}}, "object into PodSpec.spec.containers of type []v1.Container"),
        ({"containers": ["x"]}, "string into PodSpec.spec.containers of type v1.Container"),
        ({"containers": [{"name": 1}]}, "number into Container.spec.containers.name of type string"),
        ({"hostNetwork": "yes"}, "string into PodSpec.spec.hostNetwork of type bool"),
        ({"priority": 1.5}, "number 1.5 into PodSpec.spec.priority of type int32"),
        ({"priority": 3000000000}, "number 3000000000 into PodSpec.spec.priority of type int32"),
        ({"nodeSelector": {"a": 1}}, "number into PodSpec.spec.nodeSelector of type string"),
        ({"nodeSelector": []}, "array into PodSpec.spec.nodeSelector of type map[string]string"),
        ({"restartPolicy": []}, "array into PodSpec.spec.restartPolicy of type v1.RestartPolicy"),
    ],
)  # fmt: skip
def test_wrong_types_are_named_as_go_names_them(spec: Raw, problem: str) -> None:
    with pytest.raises(BadRequest) as caught:
        decode_pod({"spec": spec})
    kind, field = problem.split(" into ")
    words = f"json: cannot unmarshal {kind} into Go struct field {field}"
    assert caught.value.status.message == f'Pod in version "v1" cannot be handled as a Pod: {words}'


def test_nulls_are_as_good_as_absent() -> None:
    obj, _ = decode_pod({"metadata": {"name": "a", "labels": None}, "spec": {"containers": [None], "nodeName": None}})
    assert obj["metadata"] == {"name": "a"}
    assert obj["spec"] == {"containers": [{"name": "", "resources": {}}]}


def test_empty_optional_fields_are_left_out_and_required_ones_kept() -> None:
    obj, _ = decode_pod({"metadata": {"labels": {}, "finalizers": []}, "spec": {"containers": [], "nodeName": ""}})
    assert obj["metadata"] == {}
    assert obj["spec"] == {"containers": []}
    assert obj["status"] == {}
    assert decode_pod({})[0]["spec"] == {"containers": None}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "unexpected end of JSON input (<empty>)"),
        ("{", "unexpected end of JSON input ({)"),
        ('{"a" 1}', "invalid character '1' after object key ({\"a\" 1})"),
        ('{"a":1 2}', "invalid character '2' after object key:value pair ({\"a\":1 2})"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string ({a:1})"),
        ('{"a":tru}', "invalid character '}' in literal true (expecting 'e') ({\"a\":tru})"),
        ('{"a":01}', "invalid character '1' after object key:value pair ({\"a\":01})"),
        ('{"a":[1,]}', "invalid character ']' looking for beginning of value ({\"a\":[1,]})"),
        ('{"a":[1 2]}', "invalid character '2' after array element ({\"a\":[1 2]})"),
        ('{"a":"\\x"}', "invalid character 'x' in string escape code ({\"a\":\"\\x\"})"),
        ('{"a":"\\u00g0"}', "invalid character 'g' in \\u hexadecimal character escape ({\"a\":\"\\u00g0\"})"),
        ('{"a":1.}', "invalid character '}' after decimal point in numeric literal ({\"a\":1.})"),
        ('{"a":-}', "invalid character '}' in numeric literal ({\"a\":-})"),
        ('{"a":1e}', "invalid character '}' in exponent of numeric literal ({\"a\":1e})"),
        ('{"a":"\n"}', "invalid character '\\n' in string literal ({\"a\":\"\n\"})"),
        ("{} x", "invalid character 'x' after top-level value ({} x)"),
    ],
)  # fmt: skip
def test_syntax_errors_are_gos(text: str, problem: str) -> None:
    with pytest.raises(BadRequest) as caught:
        decode_pod(text)
    message = caught.value.status.message
    assert (
        message.removeprefix(
            "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: "
        )
        == problem
    )


def test_text_nested_too_deep_is_refused() -> None:
    with pytest.raises(BadRequest, match="exceeded max depth"):
        decode_pod('{"metadata":' + '{"a":' * 5000 + "1" + "}" * 5001)


def test_bad_unicode_becomes_the_replacement_character() -> None:
    body = b'{"metadata":{"annotations":{"a":"\xff","b":"\\ud800"}}}'
    obj, _ = decode_body(body, "", known("v1", "Pod"))
    assert obj["metadata"]["annotations"] == {"a": "\ufffd", "b": "\ufffd"}


def test_a_body_of_another_version_is_refused() -> None:
    info = known("autoscaling/v2", "HorizontalPodAutoscaler")
    body = b'{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler"}'
    with pytest.raises(BadRequest, match=r"the API version in the data .autoscaling/v1. does not match the expected"):
        decode_body(body, "", info)


def test_old_evictions_are_still_read() -> None:
    body = b'{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"a"}}'
    obj, _ = decode_body(body, "", known("policy/v1", "Eviction"))
    assert (obj["apiVersion"], obj["metadata"]) == ("policy/v1", {"name": "a"})


def test_unknown_content_types_are_415() -> None:
    with pytest.raises(UnsupportedMediaType, match="accepted media types include: application/json, application/yaml"):
        decode_pod("{}", content_type="text/plain")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("yesterday", 'cannot parse "yesterday" as "2006"'),
        ("2020-13-01T00:00:00Z", "month out of range"),
        ("2020-02-30T00:00:00Z", "day out of range"),
        ("2020-01-01", 'cannot parse "" as "T"'),
        ("2020-01-01T00:00:00", 'cannot parse "" as "Z07:00"'),
        ("2020-01-01T00:00:00Zx", 'extra text: "x"'),
        ("2020-01-01T24:00:00Z", "hour out of range"),
    ],
)
def test_bad_times_are_named_as_go_names_them(text: str, problem: str) -> None:
    with pytest.raises(ScalarError, match=re.escape(problem)):
        canonical_time(text)


def test_times_are_utc_and_of_whole_seconds() -> None:
    assert canonical_time("2020-01-01T02:00:00.7+02:00") == "2020-01-01T00:00:00Z"
    assert canonical_micro_time("2020-01-01T00:00:00.120000-01:00") == "2020-01-01T01:00:00.120000Z"
    with pytest.raises(ScalarError, match=re.escape('cannot parse "Z" as ".000000"')):
        canonical_micro_time("2020-01-01T00:00:00Z")


@given(st.binary(max_size=20))
def test_bytes_come_back(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert canonical_bytes(text) == text


@pytest.mark.parametrize(("text", "at"), [("!", 0), ("ab!d", 2), ("abc", 0), ("YQ=", 3), ("é", 0)])
def test_bad_base64_is_placed(text: str, at: int) -> None:
    with pytest.raises(ScalarError, match=f"illegal base64 data at input byte {at}"):
        canonical_bytes(text)


def test_yaml_is_read_as_yaml_1_1() -> None:
    text = b"a: y\nb: 0777\nc: 1e3\nd: 12:30\ne: 2020-01-01\nf: Off\n1: x\ng: ~\nh: {<<: {i: 1}, j: 0x1f}\nk: '5'\n"
    value, problem = parse_yaml(text)
    assert value == {
        "a": True, "b": 511, "c": 1000, "d": "12:30", "e": "2020-01-01", "f": False, "1": "x", "g": None,
        "h": {"i": 1, "j": 31}, "k": "5",
    }  # fmt: skip
    assert problem == ""


def test_keys_that_come_twice_in_yaml_are_named_with_their_line() -> None:
    text = "metadata:\n  name: a\n  name: b\n"
    obj, warnings = decode_pod(text, content_type="application/yaml")
    assert obj["metadata"] == {"name": "b"}
    assert warnings == [
        'error converting YAML to JSON: yaml: unmarshal errors:\n  line 3: key "name" already set in map'
    ]


@pytest.mark.parametrize("text", [b"a: [", b"a: b: c", b"\xff", b"? {a: 1}\n: 2", b"!!python/object:os.system {}"])
def test_bad_yaml_is_refused(text: bytes) -> None:
    with pytest.raises(YamlSyntaxError, match="error converting YAML to JSON"):
        parse_yaml(text)


def _grows(first: str, line: str) -> bytes:
    """A few anchors, each made of nine of the one before."""
    lines = [line.format(name=f"a{n}", nine=", ".join([f"*a{n - 1}"] * 9)) for n in range(1, 10)]
    return "\n".join([f"a0: &a0 {first}", *lines]).encode()


@pytest.mark.parametrize(
    "bomb",
    [
        _grows("[x]", "{name}: &{name} [{nine}]"),
        _grows("{k: v}", "{name}: &{name} {{<<: [{nine}]}}"),
        b"a: &a [" + b"x, " * 99 + b"x]\nb: [" + b", ".join([b"*a"] * 20_000) + b"]\n",
    ],
)
def test_an_alias_bomb_is_refused_by_what_it_would_grow_to(bomb: bytes) -> None:
    with pytest.raises(YamlSyntaxError, match="document contains excessive aliasing"):
        parse_yaml(bomb)


def test_many_small_aliases_and_words_that_look_like_them_are_no_bomb() -> None:
    value, problem = parse_yaml(b"a: &a [x]\nb: [" + b", ".join([b"*a"] * 300) + b"]\nc: |\n" + b"  int *p;\n" * 300)
    assert problem == ""
    assert value == {"a": ["x"], "b": [["x"]] * 300, "c": "int *p;\n" * 300}


def test_an_anchor_inside_itself_is_refused() -> None:
    with pytest.raises(YamlSyntaxError, match="error converting YAML to JSON"):
        parse_yaml(b"a: &a [*a]")


def test_a_patch_that_is_no_patch_is_refused() -> None:
    with pytest.raises(BadRequest, match=re.escape("of type []handlers.jsonPatchOp")):
        patches.read_json_patch(b"{}", "Warn")
    with pytest.raises(BadRequest, match=r"Go struct field jsonPatchOp.op of type string"):
        patches.read_json_patch(b'[{"op":1}]', "Warn")
    with pytest.raises(TooLarge, match="got 10001"):
        patches.read_json_patch(b"[" + b",".join([b"{}"] * 10001) + b"]", "Ignore")
    with pytest.raises(
        BadRequest, match=r"error decoding patch: json: cannot unmarshal array into Go value of type map"
    ):
        patches.read_merge_patch(b"[1]", "Warn")
    with pytest.raises(BadRequest, match=r"^json: cannot unmarshal number into Go value of type map"):
        patches.read_strategic_patch(b"1", "Warn")
    with pytest.raises(BadRequest, match="error decoding YAML: error unmarshaling JSON"):
        patches.read_apply_patch(b"- 1", "Warn")


def test_what_reading_a_patch_finds() -> None:
    assert patches.read_json_patch(b'[{"op":"add","frob":1}]', "Warn")[1] == ['json patch unknown field "[0].frob"']
    assert patches.read_merge_patch(b'{"a":{"b":1,"b":2}}', "Warn") == ({"a": {"b": 2}}, ['duplicate field "a.b"'])
    assert patches.read_apply_patch(b'{"a":{"b":1}}', "Strict") == ({"a": {"b": 1}}, [])
    with pytest.raises(BadRequest, match="error strict decoding YAML: error converting"):
        patches.read_apply_patch(b'{"a":1,"a":2}', "Strict")


def test_a_spoiled_document_is_shown_whole() -> None:
    document = {"data": "str", "metadata": {"name": "a"}, "kind": "ConfigMap", "apiVersion": "v1"}
    with pytest.raises(Invalid) as caught:
        patches.check_patched(document, known("v1", "ConfigMap"), "Warn", findings=[])
    assert caught.value.status.message == (
        ' "" is invalid: patch: Invalid value: "{\\"apiVersion\\":\\"v1\\",\\"data\\":\\"str\\",\\"kind\\":'
        '\\"ConfigMap\\",\\"metadata\\":{\\"name\\":\\"a\\"}}": json: cannot unmarshal string into Go '
        "struct field ConfigMap.data of type map[string]string"
    )
    assert caught.value.status.details is not None
    assert caught.value.status.details.causes[0].field == "patch"


def test_a_quantity_in_a_patch_may_be_a_number() -> None:
    document = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 0.1, "memory": 1}}}]}}
    obj, _ = patches.check_patched(document, known("v1", "Pod"), "Strict", findings=[])
    assert obj["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m", "memory": "1"}


def test_a_strategic_patch_is_shown_as_go_shows_maps() -> None:
    with pytest.raises(Invalid, match=re.escape('"map[data:str]": cannot restore map from string')):
        patches.check_patched(
            {"data": "str"}, known("v1", "ConfigMap"), "Warn", findings=[], strategic_patch={"data": "str"}
        )


def test_unknown_fields_of_a_patched_object_follow_the_directive() -> None:
    info = known("v1", "ConfigMap")
    document = {"metadata": {"z": 1}, "a": 1}
    assert patches.check_patched(document, info, "Warn", findings=["x"])[1] == [
        "x", 'unknown field "metadata.z"', 'unknown field "a"',
    ]  # fmt: skip
    assert patches.check_patched(document, info, "Ignore", findings=["x"])[1] == []
    with pytest.raises(Invalid, match="strict decoding error: x, unknown field"):
        patches.check_patched(document, info, "Strict", findings=["x"])


@given(st.sampled_from(VECTORS["objects"]))
def test_the_canonical_order_changes_nothing_else(vector: Raw) -> None:
    info = type_of(vector["apiVersion"], vector["kind"])
    assert info is not None
    shuffled = json.loads(json.dumps(vector["json"], sort_keys=True))
    assert canonical(shuffled, info) == vector["json"]
    if not vector["kind"].endswith("List") and vector["kind"] != "Status":
        ordered = canonical(shuffled, info)
        assert list(ordered) == list(vector["json"])


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(json_values)
def test_both_ways_to_parse_json_agree(value: object) -> None:
    text = msgspec.json.encode(value)
    assert json_text.syntax_error(text) == ""
    assert json_text.plain(json_text.parse_careful(text)) == json_text.parse(text)


@given(st.binary(max_size=30))
def test_text_is_refused_exactly_when_python_refuses_it(text: bytes) -> None:
    refused = json_text.syntax_error(text) != ""
    try:
        json.loads(text.decode("utf-8", "replace"), parse_constant=lambda _: 1 / 0)
    except (json.JSONDecodeError, ZeroDivisionError):
        assert refused
    else:
        assert not refused
