"""Where a server is and who we are to it: what `kubeconfig` and `incluster` find, and `http` uses."""

from dataclasses import dataclass, field
from pathlib import Path

from skysail.client.credentials import Credentials, StaticCredentials


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One API server, as one user.

    Attributes:
        server: Its URL, with scheme; a path in it is put before every request's path.
        ca_data: PEM certificates its own must be signed by; empty means those the system trusts.
        ca_file: The file `ca_data` was read from, to be read again when it may have changed; None for embedded data.
        insecure: Whether its certificate is not checked at all.
        tls_server_name: The name its certificate must bear; empty means the host of `server`.
        credentials: Who we are.
        headers: Sent with every request (impersonation).
        namespace: The one commands work in unless told otherwise.
        source: Where this was found, for messages.
    """

    server: str
    ca_data: bytes = b""
    ca_file: Path | None = None
    insecure: bool = False
    tls_server_name: str = ""
    credentials: Credentials = field(default_factory=StaticCredentials)
    headers: tuple[tuple[str, str], ...] = ()
    namespace: str = "default"
    source: str = ""
