"""Build the real control plane once, with Go and the module proxy, into a cache outside the repository.

    python e2e/build.py                      builds what is missing, prints the folder
    python e2e/build.py --check              exits 1 when something is missing; builds nothing
    python e2e/build.py --also v1.34.4       the API server of another version, too, for the skew suite

The modules of the pinned version are those of `e2e/controlplane/go.mod`; for other versions a `go.mod` is made beside
the binaries, from the one that Kubernetes published. kubectl comes from `tests/tools/fetch_kubectl.py`.
"""

import argparse
import json
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
SKEWED_TOOLS = ("kube-apiserver",)
"""What is built of other versions; etcd is that of the pinned one."""


def kubernetes_version() -> str:
    """The version that go.mod pins, e.g. `v1.36.3`."""
    match = re.search(r"^\s*k8s\.io/kubernetes (v[\d.]+)\b", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise SystemExit("e2e/controlplane/go.mod pins no k8s.io/kubernetes")
    return match.group(1)


def folder(version: str = "") -> Path:
    """Where the binaries of a version are kept; of the pinned one when none is named."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "skysail" / "controlplane" / (version or kubernetes_version())


def missing(version: str = "") -> list[str]:
    """The tools of a version that are not built yet."""
    pinned = version in ("", kubernetes_version())
    return [name for name in (TOOLS if pinned else SKEWED_TOOLS) if not (folder(version) / name).exists()]


def build(name: str, version: str = "") -> None:
    """Build one tool, whole or not at all."""
    module = MODULE if version in ("", kubernetes_version()) else _generated_module(version)
    version = version or kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,
    }
    flags = "-s -w " + " ".join(f"-X {key}={value}" for key, value in stamps.items())
    target = folder(version) / name
    partial = target.with_suffix(".partial")
    # Go 1.27's encoding/json/v2 no longer honours the `inline` tag that OpenAPI needs.
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    if _go_version() >= (1, 27):
        environment["GOEXPERIMENT"] = "nojsonv2"
    command = ["go", "build", "-trimpath", "-ldflags", flags, "-o", str(partial), TOOLS[name]]
    subprocess.run(command, cwd=module, env=environment, check=True)
    partial.replace(target)


def _generated_module(version: str) -> Path:
    """A folder with a go.mod that pins one version of Kubernetes and the staging modules that belong to it."""
    module = folder(version) / "module"
    if not (module / "go.mod").exists():
        module.mkdir(parents=True, exist_ok=True)
        command = ["go", "mod", "download", "-json", f"k8s.io/kubernetes@{version}"]
        found = subprocess.run(command, cwd=module, capture_output=True, text=True, check=False)
        if found.returncode != 0:
            raise SystemExit(f"k8s.io/kubernetes {version} cannot be had: {found.stdout}{found.stderr}")
        (module / "go.mod").write_text(go_mod_of(version, Path(json.loads(found.stdout)["GoMod"]).read_text()))
    return module


def go_mod_of(version: str, published: str) -> str:
    """The go.mod that builds the tools of a version.

    Args:
        version: Of Kubernetes, e.g. `v1.34.4`.
        published: Kubernetes' own go.mod, whose staging modules are folders; outside it they are `v0.34.4`.
    """
    staged = re.findall(r"^\s*(k8s\.io/[\w-]+) => \./staging/", published, re.MULTILINE)
    language = re.findall(r"^(?:go|godebug) .*$", published, re.MULTILINE)
    return "\n".join(
        [
            "module skysail/controlplane",
            *language,
            f"require k8s.io/kubernetes {version}",
            *(f"replace {name} => {name} {version.replace('v1.', 'v0.', 1)}" for name in staged),
            "",
        ]
    )


def _go_version() -> tuple[int, int]:
    text = subprocess.run(["go", "env", "GOVERSION"], check=True, capture_output=True, text=True).stdout
    match = re.match(r"go(\d+)\.(\d+)", text)
    if match is None:
        raise SystemExit(f"cannot tell the version of Go from {text!r}")
    return int(match.group(1)), int(match.group(2))


def main() -> None:
    """Build what is missing."""
    parser = argparse.ArgumentParser(description="Build the real control plane.")
    parser.add_argument("--check", action="store_true", help="build nothing; exit 1 when something is missing")
    parser.add_argument("--also", action="append", default=[], help="another version's API server", metavar="VERSION")
    arguments = parser.parse_args()
    versions = [kubernetes_version(), *arguments.also]
    lacking = [(name, version) for version in versions for name in missing(version)]
    if arguments.check:
        raise SystemExit(1 if lacking else 0)
    if lacking and shutil.which("go") is None:
        names = ", ".join(f"{name} {version}" for name, version in lacking)
        raise SystemExit(f"Go is needed to build {names}; it is not on this machine's PATH")
    for name, version in lacking:
        sys.stderr.write(f"building {name} {version}\n")
        folder(version).mkdir(parents=True, exist_ok=True)
        build(name, version)
    for version in versions:
        sys.stdout.write(f"{folder(version)}\n")
        for line in versions_in(version):
            sys.stdout.write(f"    {line}\n")


def versions_in(version: str) -> list[str]:
    """What the binaries of a version say they are."""
    lines = []
    for name in (name for name in TOOLS if (folder(version) / name).exists()):
        said = subprocess.run([folder(version) / name, "--version"], check=True, capture_output=True, text=True).stdout
        lines.append(f"{name}: {said.splitlines()[0]}")
    return lines


if __name__ == "__main__":
    main()
