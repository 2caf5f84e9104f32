"""What a user did wrong ends in one line that names it, exit code 2, and nothing started."""

import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

SKYSAIL = Path(sys.executable).with_name("skysail")


def skysail(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(SKYSAIL), *args], capture_output=True, text=True, timeout=60, check=False)


def refused(*args: str) -> str:
    """The one line on standard error with which a command is refused."""
    done = skysail(*args)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("skysail: ")
    return line


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert f"127.0.0.1:{port}" in refused("up", "--nodes", "1", "--port", str(port))


def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "tokens.csv" in refused("apiserver", "--port", "0", "--token-auth-file", str(tmp_path / "tokens.csv"))


def test_a_token_file_with_a_short_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text("token,user\n")
    assert "tokens.csv: [1]: want at least the columns token,user,uid" in refused(
        "apiserver", "--port", "0", "--token-auth-file", str(file)
    )


@pytest.mark.parametrize("value", ["soon", "-5s", "0s", "5"])
def test_a_compaction_interval_that_is_no_duration_is_named(value: str) -> None:
    assert f"'{value}' is no duration" in refused("apiserver", "--port", "0", f"--compaction-interval={value}")


def test_a_data_dir_of_another_version_is_left_as_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "skysail.db")) as database:
        database.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        database.execute("INSERT INTO meta VALUES ('format', 'skysail-store-999')")
        database.commit()
    before = (tmp_path / "skysail.db").read_bytes()
    line = refused("apiserver", "--port", "0", "--data-dir", str(tmp_path))
    assert str(tmp_path / "skysail.db") in line
    assert "skysail-store-999" in line
    assert (tmp_path / "skysail.db").read_bytes() == before


def test_a_data_dir_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert str(tmp_path / "data") in refused("apiserver", "--port", "0", "--data-dir", str(tmp_path / "data"))


def test_a_kubeconfig_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused(
        "up", "--port", "0", "--nodes", "0", "--kubeconfig-out", str(tmp_path / "file" / "config")
    )


def test_an_unknown_output_is_refused() -> None:
    assert "unknown output 'xml'" in refused("demo", "--output", "xml")


def test_a_scenario_file_that_is_no_json_is_named(tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    file.write_text("{")
    assert "scenario.json" in refused("explain", "-f", str(file))


def test_gates_and_a_configuration_go_with_a_live_pod_only(tmp_path: Path) -> None:
    assert "with --pod only" in refused("explain", "-f", str(tmp_path / "x.json"), "--feature-gates", "A=true")
    assert "'A=maybe'" in refused("explain", "--pod", "default/web", "--feature-gates", "A=maybe")


def test_help_lists_the_verbs() -> None:
    done = skysail("--help")
    assert done.returncode == 0
    assert all(verb in done.stdout for verb in ("up", "demo", "apiserver", "explain"))


def test_a_kubeconfig_that_cannot_be_written_is_named_and_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    assert f"{target}: cannot be written" in refused("apiserver", "--port", "0", "--kubeconfig-out", str(target))
    assert list(tmp_path.iterdir()) == [target]
