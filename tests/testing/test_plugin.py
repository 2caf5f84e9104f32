import pytest

pytest_plugins = ["pytester"]

INI = """
[pytest]
filterwarnings = error
"""


@pytest.fixture
def run(pytester):
    """Run a test module with the plugin, in pytest-asyncio's given mode or without it."""

    def run(text, *arguments):
        pytester.makeini(INI + "asyncio_default_fixture_loop_scope = function\n")
        pytester.makepyfile(text)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)

    return run


PASSING = """
import asyncio
from skysail.api.core import Pod

async def test_sleeps_for_an_hour(cluster):
    await asyncio.sleep(3600)
    assert await cluster.list(Pod) == []

class TestInAClass:
    async def test_with_self(self, cluster, tmp_path):
        assert tmp_path.exists() and self is not None and cluster.clock.monotonic() == 0.0
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--asyncio-mode=auto"],
        ["--asyncio-mode=strict"],
        ["-p", "no:asyncio", "-o", "asyncio_default_fixture_loop_scope="],
    ],
    ids=["auto", "strict", "none"],
)
def test_tests_run_in_virtual_time_whatever_plugin_for_asyncio_is_there(run, arguments):
    if "no:asyncio" in arguments:
        arguments = ["-p", "no:asyncio", "-W", "ignore"]
    run(PASSING, *arguments).assert_outcomes(passed=2)


def test_a_failing_test_shows_its_own_error(run):
    result = run("async def test_it(cluster):\n    assert 1 == 2\n", "--asyncio-mode=strict")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E       assert 1 == 2"])


def test_skips_and_failures_by_word_are_understood(run):
    text = """
import pytest
async def test_skip(cluster):
    pytest.skip("not today")
async def test_fail(cluster):
    pytest.fail("on purpose")
@pytest.mark.xfail(strict=True)
async def test_xfail(cluster):
    raise ValueError
"""
    run(text, "--asyncio-mode=strict").assert_outcomes(skipped=1, failed=1, xfailed=1)


def test_a_test_that_waits_for_ever_is_ended_at_its_horizon(run):
    text = """
import asyncio, pytest
@pytest.mark.cluster(horizon_seconds=1000)
async def test_it(cluster):
    await asyncio.Event().wait()
"""
    result = run(text, "--asyncio-mode=strict")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*NotSettled: the test took more than 1000 s of virtual time"])


def test_a_plain_test_with_a_cluster_is_told_to_be_async(run):
    result = run("def test_it(cluster):\n    pass\n", "--asyncio-mode=strict")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*a test that takes `cluster` must be `async def`*"])


def test_somebody_elses_fixture_of_that_name_is_left_alone(run):
    text = """
import pytest
@pytest.fixture
def cluster():
    return 5
def test_it(cluster):
    assert cluster == 5
"""
    run(text, "--asyncio-mode=strict").assert_outcomes(passed=1)
