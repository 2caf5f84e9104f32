import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r'```python(?: title="(.*?)")?\n(.*?)```', re.DOTALL)
TESTS = {"testing.md": 4, "scheduler.md": 2}


def blocks(page):
    return BLOCK.findall((DOCS / page).read_text())


@pytest.mark.parametrize("page", TESTS)
def test_the_tests_on_a_page_pass(page, pytester):
    pytester.makeini("[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n")
    pytester.syspathinsert()
    for name, text in blocks(page):
        if name:
            pytester.makepyfile(**{name.removesuffix(".py"): text})
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--asyncio-mode=strict")
    result.assert_outcomes(passed=TESTS[page])


@pytest.mark.parametrize("text", [text for page in TESTS for name, text in blocks(page) if not name])
def test_the_other_examples_on_the_pages_are_true(text):
    exec(compile(text, "an example", "exec"), {})
