"""Reading kubeconfig files: which server, and who we are to it.

Several files (`KUBECONFIG=a:b`) are merged as kubectl merges them: of each cluster, user and context the first file
that names it counts, and so does the first current context. Paths in a file are relative to that file.

Source: k8s.io/client-go/tools/clientcmd, v1.36. Differs: `proxy-url` and `auth-provider` are refused with a sentence.
"""

import base64
import binascii
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec
import yaml

from skysail.api.errors import ConfigError
from skysail.api.raw import Raw
from skysail.client.config import ServerConfig
from skysail.client.credentials import (
    ClientCertificate,
    Credentials,
    FileCredentials,
    Renewed,
    StaticCredentials,
    basic,
    bearer,
    certificate_in,
)
from skysail.client.execplugin import API_VERSIONS, INTERACTIVE_MODES, ExecPlugin
from skysail.client.kubeconfig_file import Cluster, Context, Exec, Kubeconfig, User
from skysail.client.rotation import Rotated, token_in

T = TypeVar("T")

DEFAULT_PATH = Path(".kube/config")
"""Below the home directory: the file that counts when none is named."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    """A named thing, and where it stands."""

    value: T
    file: Path
    path: str

    def wrong(self, message: str, field: str = "") -> ConfigError:
        return ConfigError(message, file=str(self.file), path=f"{self.path}.{field}" if field else self.path)


def load(path: str = "", *, context: str = "", environ: Mapping[str, str] = os.environ) -> ServerConfig:
    """The server and user of a context.

    Args:
        path: The file; empty means those `KUBECONFIG` names, or `~/.kube/config`.
        context: The context; empty means the current one.
        environ: Where `KUBECONFIG` and `HOME` are looked up, and what plugins run in.

    Raises:
        ConfigError: With the file and the field that cannot be used.
    """
    files = [(file, read_file(file)) for file in _files(path, environ)]
    where = os.pathsep.join(str(file) for file, _ in files)
    name = context or next((parsed.current_context for _, parsed in files if parsed.current_context), "")
    if not name:
        raise ConfigError("no context is current, and none was asked for", file=where, path="current-context")
    chosen = _find(files, "contexts", name, where, lambda file: [(e.name, e.context) for e in file.contexts or ()])
    cluster = _referred(files, chosen, "cluster", lambda file: [(e.name, e.cluster) for e in file.clusters or ()])
    user = None
    if chosen.value.user:
        user = _referred(files, chosen, "user", lambda file: [(e.name, e.user) for e in file.users or ()])
    return _server_config(chosen, cluster, user, environ)


def exists(path: str = "", environ: Mapping[str, str] = os.environ) -> bool:
    """Whether there is any kubeconfig to load."""
    return bool(path) or any(file.is_file() for file in _candidates(environ))


def read_file(file: Path) -> Kubeconfig:
    """Read one file.

    Raises:
        ConfigError: It cannot be read, is no YAML, or a field has the wrong type.
    """
    try:
        document = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(file)) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(f"{line}no YAML: {getattr(error, 'problem', None) or error}", file=str(file)) from error
    try:
        return msgspec.convert({} if document is None else document, Kubeconfig)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at ")
        raise ConfigError(message, file=str(file), path=re.sub(r"^`\$\.?|`$", "", where)) from error


def _candidates(environ: Mapping[str, str]) -> list[Path]:
    listed = [Path(each) for each in environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    return listed or [Path(environ.get("HOME") or Path.home()) / DEFAULT_PATH]


def _files(path: str, environ: Mapping[str, str]) -> list[Path]:
    """The files that count: a named one must exist, of several listed ones those that exist."""
    if path:
        return [Path(path)]
    candidates = _candidates(environ)
    found = [file for file in candidates if file.exists()]
    if not found:
        listed = os.pathsep.join(map(str, candidates))
        raise ConfigError("there is no such kubeconfig; name one with --kubeconfig or KUBECONFIG", file=listed)
    return found


def _find(
    files: Iterable[tuple[Path, Kubeconfig]],
    section: str,
    name: str,
    where: str,
    entries: Callable[[Kubeconfig], Iterable[tuple[str, T | None]]],
) -> _Entry[T]:
    known = []
    for file, parsed in files:
        for index, (each, value) in enumerate(entries(parsed)):
            if each == name:
                path = f"{section}[{index}].{section[:-1]}"
                if value is None:
                    raise ConfigError("is empty", file=str(file), path=path)
                return _Entry(value, file, path)
            known.append(each)
    listed = ", ".join(sorted(set(known))) or "none"
    raise ConfigError(f"there is no {section[:-1]} {name!r}; known: {listed}", file=where, path=section)


def _referred(
    files: list[tuple[Path, Kubeconfig]],
    context: _Entry[Context],
    what: str,
    entries: Callable[[Kubeconfig], Iterable[tuple[str, T | None]]],
) -> _Entry[T]:
    """What a context refers to by name."""
    name = str(getattr(context.value, what))
    if not name:
        raise context.wrong(f"names no {what}", what)
    return _find(files, f"{what}s", name, str(context.file), entries)


def _server_config(
    context: _Entry[Context], cluster: _Entry[Cluster], user: _Entry[User] | None, environ: Mapping[str, str]
) -> ServerConfig:
    where = cluster.value
    if not where.server:
        raise cluster.wrong("is missing", "server")
    if where.proxy_url:
        raise cluster.wrong("proxies are not supported; remove it, or use a tunnel", "proxy-url")
    ca = _pem(cluster, "certificate-authority", where.certificate_authority, where.certificate_authority_data)
    if where.insecure_skip_tls_verify and ca:
        raise cluster.wrong("cannot be combined with a certificate authority", "insecure-skip-tls-verify")
    return ServerConfig(
        server=where.server if "://" in where.server else f"{'https' if ca else 'http'}://{where.server}",
        ca_data=ca,
        ca_file=_rotating(cluster, where.certificate_authority, where.certificate_authority_data),
        insecure=where.insecure_skip_tls_verify,
        tls_server_name=where.tls_server_name,
        credentials=_credentials(user, cluster, ca, environ) if user else StaticCredentials(),
        headers=_impersonation(user.value) if user else (),
        namespace=context.value.namespace or "default",
        source=str(cluster.file),
    )


def _credentials(user: _Entry[User], cluster: _Entry[Cluster], ca: bytes, environ: Mapping[str, str]) -> Credentials:
    who = user.value
    if who.auth_provider is not None:
        raise user.wrong("auth providers were removed from Kubernetes; use `exec`", "auth-provider")
    source = str(user.file)
    certificate = _certificate(user)
    token = None
    if who.token_file:
        path = user.file.parent / who.token_file
        token = Rotated(lambda: token_in(path, source), who.token or None)
    authorization = bearer(who.token) or (basic(who.username, who.password) if who.username else "")
    files = (_rotating(user, who.client_certificate, who.client_certificate_data),
             _rotating(user, who.client_key, who.client_key_data))  # fmt: skip
    if files[0] is not None and files[1] is not None:
        shown = Rotated(partial(certificate_in, files[0], files[1], source), certificate)
        return FileCredentials(token, certificate=shown, authorization=authorization)
    if token is not None:
        return FileCredentials(token, certificate=certificate)
    if who.exec is not None and not authorization and certificate is None:
        return Renewed(_plugin(user, who.exec, cluster.value, ca, environ))
    return StaticCredentials(authorization, certificate)


def _certificate(user: _Entry[User]) -> ClientCertificate | None:
    who = user.value
    certificate = _pem(user, "client-certificate", who.client_certificate, who.client_certificate_data)
    key = _pem(user, "client-key", who.client_key, who.client_key_data)
    if bool(certificate) != bool(key):
        missing = "client-key" if certificate else "client-certificate"
        raise user.wrong("a client certificate and its key only work together, and this one is missing", missing)
    return ClientCertificate(certificate, key) if certificate else None


def _pem(entry: "_Entry[Cluster] | _Entry[User]", field: str, path: str, data: str) -> bytes:
    """The bytes of `field-data`, or of the file that `field` names."""
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise entry.wrong(f"is not base64: {error}", f"{field}-data") from error
    if not path:
        return b""
    try:
        return (entry.file.parent / path).read_bytes()
    except OSError as error:
        raise entry.wrong(f"{path!r} cannot be read: {error.strerror}", field) from error


def _rotating(entry: "_Entry[Cluster] | _Entry[User]", path: str, data: str) -> Path | None:
    """The file that a field names, when it is the file that counts: somebody may replace it while we run."""
    return entry.file.parent / path if path and not data else None


def _plugin(user: _Entry[User], spec: Exec, cluster: Cluster, ca: bytes, environ: Mapping[str, str]) -> ExecPlugin:
    if not spec.command:
        raise user.wrong("is missing", "exec.command")
    if spec.api_version not in API_VERSIONS:
        raise user.wrong(f"{spec.api_version!r} is not supported; use {' or '.join(API_VERSIONS)}", "exec.apiVersion")
    mode = spec.interactive_mode or ("" if spec.api_version == API_VERSIONS[0] else "IfAvailable")
    if mode not in INTERACTIVE_MODES:
        allowed = ", ".join(INTERACTIVE_MODES)
        raise user.wrong(f"{mode!r} is not allowed; it must be one of {allowed}", "exec.interactiveMode")
    return ExecPlugin(
        command=spec.command,
        arguments=spec.args or (),
        environment={**environ, **{each.name: each.value for each in spec.env or ()}},
        api_version=spec.api_version,
        interactive_mode=mode,
        install_hint=spec.install_hint,
        cluster=_cluster_info(cluster, ca) if spec.provide_cluster_info else None,
        directory=user.file.parent,
        file=str(user.file),
        path=f"{user.path}.exec",
    )


def _cluster_info(cluster: Cluster, ca: bytes) -> Raw:
    info: Raw = {"server": cluster.server}
    if ca:
        info["certificate-authority-data"] = base64.b64encode(ca).decode()
    if cluster.tls_server_name:
        info["tls-server-name"] = cluster.tls_server_name
    if cluster.insecure_skip_tls_verify:
        info["insecure-skip-tls-verify"] = True
    wanted = "client.authentication.k8s.io/exec"
    config = next((each.extension for each in cluster.extensions or () if each.name == wanted), None)
    return {**info, "config": config} if config is not None else info


def _impersonation(user: User) -> tuple[tuple[str, str], ...]:
    """The headers that act as somebody else; several groups are several headers."""
    if not user.as_:
        return ()
    headers = [("impersonate-user", user.as_)]
    if user.as_uid:
        headers.append(("impersonate-uid", user.as_uid))
    headers += [("impersonate-group", group) for group in user.as_groups or ()]
    for key, values in (user.as_user_extra or {}).items():
        headers += [(f"impersonate-extra-{quote(key.lower(), safe='')}", value) for value in values]
    return tuple(headers)
