import json
import re
from pathlib import Path

import msgspec
import pytest

from skysail.api.labels import EVERYTHING, NOTHING, Requirement, Selector, format_label_selector, requirement
from skysail.api.meta import LabelSelector

GOLDEN = Path(__file__).parents[1] / "golden/scheduler/functions"


def vectors(name):
    return json.loads((GOLDEN / f"{name}.json").read_text())


def exactly(message):
    return f"^{re.escape(message)}$"


@pytest.mark.parametrize("vector", vectors("labels_parse"), ids=lambda v: v["input"] or "empty")
def test_parses_as_recorded(vector):
    want = vector["output"]
    if "error" in want:
        with pytest.raises(ValueError, match=exactly(want["error"])):
            Selector.parse(vector["input"])
        return
    got = Selector.parse(vector["input"])
    assert (str(got), got.empty, got.selectable) == (want["canonical"], want["empty"], want["selectable"])
    requirements = [{"key": r.key, "operator": r.operator, "values": list(r.values)} for r in got.requirements]
    assert requirements == (want["requirements"] or [])


@pytest.mark.parametrize("vector", vectors("labels_match"), ids=lambda v: v["input"]["Selector"] or "empty")
def test_matches_as_recorded(vector):
    selector = Selector.parse(vector["input"]["Selector"])
    assert [selector.matches(labels) for labels in vector["input"]["Labels"]] == vector["output"]["matches"]


@pytest.mark.parametrize("vector", vectors("label_selector"), ids=lambda v: json.dumps(v["input"]["Selector"]))
def test_label_selector_objects_match_as_recorded(vector):
    selector = msgspec.convert(vector["input"]["Selector"], LabelSelector | None)
    want = vector["output"]
    if "error" in want:
        with pytest.raises(ValueError, match=exactly(want["error"])):
            Selector.from_label_selector(selector)
        assert format_label_selector(selector) == "<error>"
        return
    got = Selector.from_label_selector(selector)
    assert (str(got), format_label_selector(selector)) == (want["canonical"], want["formatted"])
    assert [got.matches(labels) for labels in vector["input"]["Labels"]] == want["matches"]


def test_no_selector_matches_nothing_and_an_empty_one_everything():
    assert not Selector.from_label_selector(None).matches({})
    assert not NOTHING.empty
    assert Selector.from_label_selector(LabelSelector()).matches({"a": "b"})
    assert EVERYTHING.empty


def test_equal_selectors_are_one_object():
    first = LabelSelector(match_labels={"a": "1", "b": "2"})
    second = LabelSelector(match_labels={"b": "2", "a": "1"})
    assert Selector.from_label_selector(first) is Selector.from_label_selector(second)
    assert Selector.parse("a=1") is Selector.parse("a=1")


def test_the_printed_form_of_a_label_set_reads_back_equal():
    selector = Selector.from_set({"app": "web", "a.b/c": ""})
    assert Selector.parse(str(selector)) == selector
    assert hash(Selector.parse(str(selector))) == hash(selector)


def test_a_selector_tells_the_single_value_it_demands():
    selector = Selector.parse("a in (x),b in (x,y),c!=z")
    assert [selector.exact_value(key) for key in "abcd"] == ["x", None, None, None]


def test_everything_wrong_with_a_requirement_is_said_at_once():
    with pytest.raises(ValueError, match=r"^\[p\.key: .*, p\.values\[0\]: .* must be an integer, p\.values\[0\]\[-\]"):
        requirement("-", "gt", ("-x",), path="p")
    with pytest.raises(ValueError, match='operator: Unsupported value: "~": supported values: "in", "notin"'):
        requirement("a", "~")
    for operator, values in (("=", ()), ("exists", ("x",)), ("in", ()), ("lt", ("1", "2"))):
        with pytest.raises(ValueError, match="values: Invalid value"):
            requirement("a", operator, values)


def test_numbers_beyond_int64_never_compare():
    assert not Requirement("a", "gt", ("1",)).matches({"a": "9223372036854775808"})
    assert Requirement("a", "gt", ("1",)).matches({"a": "9223372036854775807"})
    assert not Requirement("a", "lt", ("5",)).matches({"a": " 1"})


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("/name", "prefix part must be non-empty"),
        ("Prefix_/name", "prefix part a lowercase RFC 1123 subdomain"),
        ("example.com/", "name part must be non-empty"),
        ("a" * 254 + "/x", "prefix part must be no more than 253 bytes"),
        ("é" * 32, "name part must be no more than 63 bytes"),
    ],
)
def test_a_bad_key_is_refused_with_the_reason(key, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        Selector.parse(f"{key}=x")
