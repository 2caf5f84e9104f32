"""What docs/controllers.md shows is true."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from skysail.api.cluster import Event, Namespace
from skysail.testing import make_namespace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/controllers.md").read_text()
BLOCKS = re.findall(r'```python(?: title="(.*?)")?\n(.*?)```', PAGE, re.DOTALL)


@pytest.mark.parametrize("text", [text for _, text in BLOCKS])
def test_the_examples_on_the_page_run(text, monkeypatch):
    module = ModuleType("shown")
    monkeypatch.setitem(sys.modules, "shown", module)
    exec(compile(text, "controllers.md", "exec"), module.__dict__)


async def test_the_shortest_controller_does_what_it_says(cluster):
    shown: dict[str, object] = {}
    exec(compile(dict(BLOCKS)["labeller.py"], "labeller.py", "exec"), shown)
    await cluster.start(shown["Labeller"])
    await cluster.create(make_namespace("red-dev"))
    await cluster.settle()
    assert (await cluster.get(Namespace, "red-dev", "")).metadata.labels["team"] == "red"
    assert "team is red" in [event.message for event in await cluster.list(Event)]


@pytest.mark.parametrize("path", re.findall(r"\]\((\.\./examples/[^)]+|\w+\.md)\)", PAGE))
def test_every_link_leads_somewhere(path):
    assert (ROOT / "docs" / path).exists()


def test_every_metric_that_is_named_exists():
    sources = "".join(path.read_text() for path in (ROOT / "src/skysail").rglob("metrics.py"))
    sources += (ROOT / "src/skysail/controller/run_loop.py").read_text()
    names = set(re.findall(r"`((?:workqueue|controller_runtime|reflector|informer)_\w+)`", PAGE))
    assert len(names) > 12
    assert {name for name in names if f'"{name}"' not in sources} == set()
