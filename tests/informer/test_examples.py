import doctest

import pytest

import skysail.controller
import skysail.informer
import skysail.workqueue
from skysail.informer import keys


@pytest.mark.parametrize(
    "module", [keys, skysail.informer, skysail.workqueue, skysail.controller], ids=lambda module: module.__name__
)
def test_the_examples_in_the_docstrings_are_true(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
