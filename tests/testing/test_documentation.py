import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[2] / "docs/testing.md").read_text()
BLOCKS = re.findall(r'```python(?: title="(.*?)")?\n(.*?)```', PAGE, re.DOTALL)


def test_the_tests_on_the_page_pass(pytester):
    pytester.makeini("[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n")
    for name, text in BLOCKS:
        if name:
            pytester.makepyfile(**{name.removesuffix(".py"): text})
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--asyncio-mode=strict")
    result.assert_outcomes(passed=4)


@pytest.mark.parametrize("text", [text for name, text in BLOCKS if not name])
def test_the_other_examples_on_the_page_are_true(text):
    exec(compile(text, "testing.md", "exec"), {})
