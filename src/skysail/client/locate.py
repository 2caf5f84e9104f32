"""Finding the server when nobody says which: a kubeconfig if there is one, else the cluster this pod runs in."""

import os
from collections.abc import Mapping
from pathlib import Path

from skysail.client import incluster, kubeconfig
from skysail.client.config import ServerConfig


def locate(
    path: str = "",
    *,
    context: str = "",
    environ: Mapping[str, str] = os.environ,
    service_account: Path = incluster.SERVICE_ACCOUNT,
) -> ServerConfig:
    """The server a command line means.

    Args:
        path: `--kubeconfig`; empty means `KUBECONFIG`, then `~/.kube/config`, then the pod's own service account.
        context: `--context`; only with a kubeconfig.
        environ: The environment.
        service_account: Where a pod's service account is mounted.

    Raises:
        ConfigError: Nothing is found, or what is found cannot be used.
    """
    nothing_named = not path and not context and not kubeconfig.exists(environ=environ)
    if nothing_named and incluster.is_in_cluster(environ, service_account):
        return incluster.load(environ, service_account)
    return kubeconfig.load(path, context=context, environ=environ)
