"""Standard output that takes nothing ends a command quietly, or in one line; never in a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SKYSAIL = Path(sys.executable).with_name("skysail")
COMMANDS = [("up", "--port", "0", "--nodes", "1"), ("demo", "--nodes", "3")]


def run(command: tuple[str, ...], stdout: int, runtime: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
    return subprocess.run(
        [str(SKYSAIL), *command],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What is on standard error beside the demo's progress."""
    progress = ("control plane", "applied", "3 hollow nodes")
    return [line for line in done.stderr.splitlines() if not line.startswith(progress)]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_has_gone_ends_a_command_without_a_word(command: tuple[str, ...], tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(command, writing, tmp_path)
    os.close(writing)
    assert (done.returncode, complaints(done)) == (1, [])
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_behind_standard_output_is_named(command: tuple[str, ...], tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = run(command, full.fileno(), tmp_path)
    assert (done.returncode, complaints(done)) == (
        1,
        ["skysail: cannot write to standard output: No space left on device"],
    )


def test_a_caller_without_standard_output_and_error_gets_the_exit_code_all_the_same(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{SKYSAIL} demo --nodes 3 <&- >&- 2>&-"], timeout=60, check=False, cwd=tmp_path
    )
    assert done.returncode == 0


def test_piped_tables_have_no_trailing_blanks(tmp_path: Path) -> None:
    lines = run(("demo", "--nodes", "3"), subprocess.PIPE, tmp_path).stdout.splitlines()
    assert len(lines) > 10
    assert [line for line in lines if line != line.rstrip()] == []
