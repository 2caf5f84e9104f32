"""Skysail's commands as processes of their own, against a real control plane."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from e2e.harness.control_plane import ControlPlane

SKYSAIL = Path(sys.executable).with_name("skysail")


def scheduler_command(control_plane: ControlPlane, name: str, *options: str, elect: bool = False) -> list[str]:
    """The command line of `skysail scheduler` for the pods of one scheduler name."""
    path = control_plane.root / f"{name}.yaml"
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": elect, "resourceName": name},
        "profiles": [{"schedulerName": name}],
    }
    path.write_text(yaml.safe_dump(config))
    return [
        str(SKYSAIL), "scheduler", "--config", str(path), "--kubeconfig", str(control_plane.kubeconfig),
        "--secure-port", "0", *options,
    ]  # fmt: skip


@contextlib.contextmanager
def our_scheduler(
    control_plane: ControlPlane, name: str, *options: str, prefix: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """`skysail scheduler`, ended in order when the block is left; a prefix runs it elsewhere."""
    command = [*prefix, *scheduler_command(control_plane, name, *options)]
    with running(control_plane, name, command) as process:
        yield process


@contextlib.contextmanager
def our_controllers(control_plane: ControlPlane, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """`skysail controller-manager`, ended in order when the block is left."""
    command = [str(SKYSAIL), "controller-manager", "--kubeconfig", str(control_plane.kubeconfig), "-v", "0", *options]
    with running(control_plane, "sky-controllers", command) as process:
        yield process


@contextlib.contextmanager
def running(control_plane: ControlPlane, name: str, command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process with its output in `NAME.log`, ended in order when the block is left."""
    with (control_plane.root / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process as Ctrl-C does, if it still runs."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def cpu_seconds_of(pid: int) -> float:
    """User and system time of a running process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mebibytes_of(pid: int) -> float:
    """Peak resident memory of a running process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no VmHWM for {pid}")
