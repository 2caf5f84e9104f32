"""From `skysail up --nodes 5` to kubectl's first answer, as a person waits for it."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SKYSAIL = Path(sys.executable).with_name("skysail")
_KUBECTL = Path(__file__).resolve().parents[1] / ".cache" / "kubectl" / "1.36" / "kubectl"
_TARGET_SECONDS = 1.5
_RUNS = 5


def main() -> None:
    if not _KUBECTL.exists():
        print("kubectl is not fetched; run `make test` once")
        return
    answers, ready = zip(*(_once() for _ in range(_RUNS)), strict=True)
    print(
        f"kubectl's first answer after {statistics.median(answers):.2f} s (target {_TARGET_SECONDS} s), "
        f"5 nodes Ready after {statistics.median(ready):.2f} s; medians of {_RUNS}"
    )


def _once() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        started = time.perf_counter()
        command = [str(_SKYSAIL), "up", "--nodes", "5", "--port", "0", "--kubeconfig-out", str(kubeconfig)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            process.stdout.readline()  # the export line: the kubeconfig is written
            environment = {"HOME": folder, "KUBECONFIG": str(kubeconfig), "PATH": os.environ["PATH"]}
            subprocess.run([str(_KUBECTL), "get", "nodes"], check=True, capture_output=True, env=environment)
            answered = time.perf_counter() - started
            while not process.stdout.readline().startswith("ready"):
                pass
            return answered, time.perf_counter() - started
        finally:
            process.terminate()
            process.wait(20)
