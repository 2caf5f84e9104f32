"""What the README's first commands need is in the package that pip installs, not only in a clone."""

import tomllib
from pathlib import Path

import pytest

import skysail

ROOT = Path(__file__).parents[2]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]


@pytest.mark.parametrize("folder", ["examples/demo", "examples/batch"])
def test_the_demos_manifests_are_packed_where_the_command_looks_for_them(folder):
    package = Path(skysail.__file__).parent
    assert WHEEL["packages"] == [str(package.relative_to(ROOT))]
    assert WHEEL["force-include"][folder] == f"skysail/{folder}"
    assert list((ROOT / folder).rglob("*.yaml"))
