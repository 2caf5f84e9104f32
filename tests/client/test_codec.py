import doctest

from hypothesis import given
from hypothesis import strategies as st

from skysail.client import api_client
from skysail.client.codec import merge_difference

values = st.recursive(
    st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=1), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.text("abc", min_size=1, max_size=1), values, max_size=3)


def merge(target, patch):
    """RFC 7386, as its pseudocode has it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


@given(objects, objects)
def test_the_difference_turns_the_old_object_into_the_new_one(old, new):
    assert merge(old, merge_difference(old, new)) == new


@given(objects)
def test_equal_objects_have_no_difference(obj):
    assert merge_difference(obj, dict(obj)) == {}


def test_the_examples_in_the_docstrings_are_true():
    assert doctest.testmod(api_client).failed == 0
