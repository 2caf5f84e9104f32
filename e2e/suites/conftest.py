"""A real control plane for each test that asks for one; the whole folder is left out while it is not built."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.build import missing
from e2e.harness.control_plane import ControlPlane

collect_ignore_glob = ["test_*.py"] if missing() else []


@pytest.fixture
def control_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """Etcd and kube-apiserver, ready."""
    control_plane = ControlPlane(tmp_path)
    try:
        control_plane.start()
        yield control_plane
    finally:
        control_plane.stop()
