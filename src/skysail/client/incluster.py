"""The server a pod runs under: the service account's token and authority, re-read as they are rotated."""

import os
from collections.abc import Mapping
from pathlib import Path

from skysail.api.errors import ConfigError
from skysail.client.config import ServerConfig
from skysail.client.credentials import FileCredentials
from skysail.client.rotation import Rotated, token_in

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts the token, the certificate and the namespace."""


def is_in_cluster(environ: Mapping[str, str] = os.environ, directory: Path = SERVICE_ACCOUNT) -> bool:
    """Whether this process runs in a pod that may speak to its server."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and (directory / "token").is_file()


def load(environ: Mapping[str, str] = os.environ, directory: Path = SERVICE_ACCOUNT) -> ServerConfig:
    """The configuration every pod is given.

    Raises:
        ConfigError: This is no pod, or its service account is not mounted.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    host = f"[{host}]" if ":" in host else host
    source = str(directory)
    return ServerConfig(
        server=f"https://{host}:{port}",
        ca_data=_read(directory / "ca.crt"),
        ca_file=directory / "ca.crt",
        credentials=FileCredentials(Rotated(lambda: token_in(directory / "token", source))),
        namespace=_read(directory / "namespace").decode().strip() or "default",
        source=source,
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the service account is not mounted: {error.strerror}", file=str(path)) from error
