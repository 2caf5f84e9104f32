import doctest

import pytest

from skysail.api import fields, intstr, labels, nodeselector, quantity


@pytest.mark.parametrize("module", [fields, intstr, labels, nodeselector, quantity], ids=lambda m: m.__name__)
def test_the_examples_in_the_docstrings_are_true(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
