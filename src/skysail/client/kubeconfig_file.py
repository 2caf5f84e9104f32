"""The kubeconfig file's own shape (`kind: Config`); fields nobody here reads are ignored, as kubectl ignores them."""

from collections.abc import Mapping

import msgspec

from skysail.api.raw import Raw


class _Part(msgspec.Struct, frozen=True, rename="kebab"):
    """A part of the file; its fields are written with hyphens."""


class Extension(_Part, frozen=True):
    """A named blob; plugins may be handed one."""

    name: str = ""
    extension: Raw | None = None


class Cluster(_Part, frozen=True):
    """Where a server is, and how to trust it."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: tuple[Extension, ...] | None = ()


class EnvironmentVariable(_Part, frozen=True):
    """One variable a plugin is given."""

    name: str = ""
    value: str = ""


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A credential plugin."""

    command: str = ""
    args: tuple[str, ...] | None = ()
    env: tuple[EnvironmentVariable, ...] | None = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(_Part, frozen=True):
    """Who we are."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] | None = ()
    as_user_extra: Mapping[str, tuple[str, ...]] | None = None
    auth_provider: Raw | None = None
    exec: Exec | None = None


class Context(_Part, frozen=True):
    """A cluster, as a user, in a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(_Part, frozen=True):
    """An entry of `clusters`."""

    name: str
    cluster: Cluster | None = None


class NamedUser(_Part, frozen=True):
    """An entry of `users`."""

    name: str
    user: User | None = None


class NamedContext(_Part, frozen=True):
    """An entry of `contexts`."""

    name: str
    context: Context | None = None


class Kubeconfig(_Part, frozen=True):
    """One file."""

    current_context: str = ""
    clusters: tuple[NamedCluster, ...] | None = ()
    users: tuple[NamedUser, ...] | None = ()
    contexts: tuple[NamedContext, ...] | None = ()
