"""Build the real control plane once, with Go and the module proxy, into a cache outside the repository.

    python e2e/build.py            builds what is missing, prints the folder
    python e2e/build.py --check    exits 1 when something is missing; builds nothing

The modules are pinned by `e2e/controlplane/go.mod`; kubectl comes from `tests/tools/fetch_kubectl.py`.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

MODULE = Path(__file__).parent / "controlplane"
TOOLS = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "etcd": "go.etcd.io/etcd/server/v3",
}


def kubernetes_version() -> str:
    """The version that go.mod pins, e.g. `v1.36.3`."""
    match = re.search(r"^\s*k8s\.io/kubernetes (v[\d.]+)\b", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise SystemExit("e2e/controlplane/go.mod pins no k8s.io/kubernetes")
    return match.group(1)


def folder() -> Path:
    """Where the binaries are kept: one folder a version."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "skysail" / "controlplane" / kubernetes_version()


def missing() -> list[str]:
    """The tools that are not built yet."""
    return [name for name in TOOLS if not (folder() / name).exists()]


def build(name: str) -> None:
    """Build one tool, whole or not at all."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,
    }
    flags = "-s -w " + " ".join(f"-X {key}={value}" for key, value in stamps.items())
    target = folder() / name
    partial = target.with_suffix(".partial")
    # Go 1.27's encoding/json/v2 no longer honours the `inline` tag that OpenAPI needs.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    if _go_version() >= (1, 27):
        environment["GOEXPERIMENT"] = "nojsonv2"
    command = ["go", "build", "-trimpath", "-ldflags", flags, "-o", str(partial), TOOLS[name]]
    subprocess.run(command, cwd=MODULE, env=environment, check=True)
    partial.replace(target)


def _go_version() -> tuple[int, int]:
    text = subprocess.run(["go", "env", "GOVERSION"], check=True, capture_output=True, text=True).stdout
    match = re.match(r"go(\d+)\.(\d+)", text)
    if match is None:
        raise SystemExit(f"cannot tell the version of Go from {text!r}")
    return int(match.group(1)), int(match.group(2))


def main() -> None:
    """Build what is missing."""
    lacking = missing()
    if "--check" in sys.argv[1:]:
        raise SystemExit(1 if lacking else 0)
    if lacking and shutil.which("go") is None:
        raise SystemExit(f"Go is needed to build {', '.join(lacking)}; it is not on this machine's PATH")
    folder().mkdir(parents=True, exist_ok=True)
    for name in lacking:
        sys.stderr.write(f"building {name} {kubernetes_version()}\n")
        build(name)
    sys.stdout.write(f"{folder()}\n")


if __name__ == "__main__":
    main()
