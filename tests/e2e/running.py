"""A whole `skysail up` in a process of its own, and the unmodified kubectl that drives it."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path


def kubectl_of(version: str) -> Path:
    """The unmodified kubectl of a version, as `tests/tools/fetch_kubectl.py` brought it."""
    return Path(__file__).resolve().parents[2] / ".cache" / "kubectl" / version / "kubectl"


KUBECTL = kubectl_of("1.36")
SKYSAIL = Path(sys.executable).with_name("skysail")


@dataclass(frozen=True)
class Running:
    """A running `skysail` and how to talk to it."""

    process: subprocess.Popen[str]
    kubeconfig: Path
    home: Path

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True, timeout: float = 60) -> str:
        """Run kubectl to its end; its standard output, with standard error behind it when `check` is off."""
        done = self.kubectl_process(*args, stdin=stdin, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)} exited {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout if check else done.stdout + done.stderr

    def kubectl_process(
        self, *args: str, stdin: str | None = None, timeout: float = 60, cwd: Path | None = None, binary: Path = KUBECTL
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl to its end, whatever its exit code."""
        return subprocess.run(
            [str(binary), *args],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={"HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig), "PATH": os.environ["PATH"]},
            check=False,
        )

    def wait(self, *args: str, timeout: str = "60s") -> None:
        """`kubectl wait`: the watch does the waiting."""
        self.kubectl("wait", *args, f"--timeout={timeout}", timeout=90)


def start(tmp_path: Path, *args: str) -> Running:
    """Start `skysail up` and return once it says that all nodes are Ready."""
    return _start(tmp_path, "up", *args)


def start_apiserver(tmp_path: Path, *args: str) -> Running:
    """Start `skysail apiserver` and return once it serves."""
    return _start(tmp_path, "apiserver", *args)


def _start(tmp_path: Path, verb: str, *args: str) -> Running:
    kubeconfig = tmp_path / "kubeconfig"
    command = [str(SKYSAIL), verb, "--port", "0", "--kubeconfig-out", str(kubeconfig), *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready"):
            watchdog.cancel()
            return Running(process, kubeconfig, tmp_path)
    raise AssertionError(f"skysail {verb} never became ready:\n{process.communicate()}")


def kill(running: Running) -> None:
    """End it as `kill -9` does."""
    running.process.kill()
    running.process.communicate(timeout=20)
    assert running.process.returncode == -signal.SIGKILL


def stop(running: Running) -> tuple[str, str]:
    """End it as Ctrl-C does; its standard output and error."""
    running.process.send_signal(signal.SIGINT)
    try:
        return running.process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        running.process.kill()
        running.process.communicate()
        raise
