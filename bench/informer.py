"""A list of pods into an informer's cache, one watch event, and a server that answers 410: beside the other clients.

    python -m bench.informer [--pods 5000] [--peers DIRECTORY]

Each client runs in a process of its own against the same hollow server. CPU is that of the client's process; memory is
what it grew by. The other clients are fetched once into a directory of their own (`--peers`); without a network they
are left out.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench._informer_contenders import CONTENDERS, OUTAGE_SECONDS

_PEERS = Path(__file__).resolve().parents[1] / ".cache" / "bench-peers"
_CLIENTS = ("kubernetes", "kubernetes_asyncio")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.informer", description=__doc__)
    parser.add_argument("--pods", type=int, default=5_000)
    parser.add_argument("--peers", default=str(_PEERS))
    options = parser.parse_args()
    fetch_peers(Path(options.peers))
    command = [sys.executable, "-m", "bench._hollow_pods", str(options.pods)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            port, size = (server.stdout or sys.stdin).readline().split()
            print(f"{options.pods} pods, {int(size) / 1e6:.1f} MB")
            report({name: run(name, f"http://127.0.0.1:{port}", options.peers) for name in CONTENDERS})
        finally:
            server.kill()


def fetch_peers(directory: Path) -> None:
    """Install the other clients beside us, once."""
    if not directory.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(directory), *_CLIENTS]
        subprocess.run(command, capture_output=True, check=False)


def run(name: str, url: str, peers: str) -> dict[str, Any] | None:
    """One contender's figures; None when it is not installed."""
    environment = dict(os.environ)
    if peers and not name.startswith("skysail"):
        environment["PYTHONPATH"] = os.pathsep.join([peers, os.getcwd()])
    command = [sys.executable, "-m", "bench._informer_contenders", name, url]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)
    if done.returncode and "ModuleNotFoundError" in done.stderr:
        return None
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def report(results: dict[str, dict[str, Any] | None]) -> None:
    """One line a client, with ratios to the first."""
    first = next(each for each in results.values() if each is not None)
    print(f"{'':20} {'list, CPU s':>16} {'held MiB':>16} {'peak MiB':>10} {'event, us':>16} {'lists at 410':>13}")
    for name, figures in results.items():
        if figures is None:
            print(f"{name:20} not installed")
            continue
        cells = [
            f"{figures[field]:.{digits}f} ({figures[field] / first[field]:.1f}x)"
            for field, digits in (("cpu_seconds", 2), ("held_mib", 1), ("event_microseconds", 1))
        ]
        lists = "-" if figures["lists"] is None else f"{figures['lists']} in {OUTAGE_SECONDS:.0f} s"
        print(f"{name:20} {cells[0]:>16} {cells[1]:>16} {figures['peak_mib']:>10.1f} {cells[2]:>16} {lists:>13}")


if __name__ == "__main__":
    main()
