import sys
import types

import pytest

from skysail.api.errors import ConfigError
from skysail.scheduler.config.defaults import EXTENSION_POINTS
from skysail.scheduler.profiles import extension_points, plugin_factories
from skysail.scheduler.registry import REGISTRY


class Sorter:
    name = "Sorter"

    def sort_key(self, info):
        return 0


class Rows:
    name = "Rows"

    def filter_rows(self, state, pod, table, rows):
        """Never called."""

    def score(self, state, pod, node):
        """Never called."""


@pytest.fixture
def module(monkeypatch):
    made = types.ModuleType("plugins_of_a_user")
    made.Sorter, made.Rows, made.nothing, made.Anonymous = Sorter, Rows, 5, type("Anonymous", (), {})
    made.Taken = type("Taken", (), {"name": "NodeName"})
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made.__name__


def test_a_plugin_is_loaded_by_module_and_class(module):
    factories = plugin_factories([f"{module}:Sorter", f"{module}:Rows"])
    assert factories["Sorter"] is Sorter
    assert set(REGISTRY) <= set(factories)


@pytest.mark.parametrize(
    "spec", ["no_such_module:X", "{m}:Missing", "{m}", "{m}:nothing", "{m}:Anonymous", "{m}:Taken"]
)
def test_what_is_no_plugin_is_refused_with_a_sentence(module, spec):
    with pytest.raises(ConfigError, match=r"--plugin"):
        plugin_factories([spec.format(m=module)])


def test_a_third_partys_points_show_in_its_methods():
    points = extension_points({"Sorter": Sorter, "Rows": Rows})
    assert points == {"Sorter": {"queue_sort"}, "Rows": {"filter", "score"}}


def test_the_built_plugins_have_the_methods_of_the_points_the_table_gives_them():
    methods = {
        "pre_enqueue": ("pre_enqueue",), "queue_sort": ("sort_key",), "pre_filter": ("pre_filter",),
        "filter": ("filter", "filter_rows"), "post_filter": ("post_filter",), "pre_score": ("pre_score",),
        "score": ("score", "score_rows"), "reserve": ("reserve",), "permit": ("permit",),
        "pre_bind": ("pre_bind",), "bind": ("bind",), "post_bind": ("post_bind",),
    }  # fmt: skip
    for name, factory in REGISTRY.items():
        has = {point for point, names in methods.items() if any(hasattr(factory, each) for each in names)}
        assert has == EXTENSION_POINTS[name], name
