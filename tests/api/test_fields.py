import re

import pytest

from skysail.api.fields import FieldSelector, escape_value

POD = {"spec.nodeName": "n1", "status.phase": "Running"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("spec.nodeName=n1", True),
        ("spec.nodeName==n1,status.phase!=Failed", True),
        ("spec.nodeName!=n1", False),
        ("spec.unknown=", True),
        ("spec.unknown!=", False),
        (",,status.phase=Running,", True),
    ],
)
def test_every_requirement_must_hold_and_an_unknown_field_is_empty(text, matches):
    assert FieldSelector.parse(text).matches(POD.get) is matches


def test_the_canonical_form_sorts_terms_and_escapes_values():
    selector = FieldSelector.parse(r"b==x\,y\=z\\,a!=1")
    assert [(r.path, r.operator, r.value) for r in selector.requirements] == [("a", "!=", "1"), ("b", "=", "x,y=z\\")]
    assert str(selector) == r"a!=1,b=x\,y\=z\\"
    assert FieldSelector.parse(str(selector)) == selector
    assert escape_value("a,b=c\\") == r"a\,b\=c\\"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spec.nodeName", "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\b", r"invalid field selector: invalid escape sequence: \b"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_bad_selector_is_refused_in_upstream_words(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        FieldSelector.parse(text)


def test_a_selector_tells_the_single_value_it_demands():
    selector = FieldSelector.parse("metadata.name=web,metadata.namespace!=default")
    assert selector.exact_value("metadata.name") == "web"
    assert selector.exact_value("metadata.namespace") is None
    assert not selector.empty
    assert FieldSelector.parse(",").empty
