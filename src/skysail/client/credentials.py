"""Who we are to a server: a fixed token or certificate, one in files that somebody rotates, or a plugin.

A transport asks for the current credential before every request, and once more, naming the one the server rejected,
after a 401. Many requests may be rejected at once; only the first of them makes a new credential.
"""

import asyncio
import base64
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from skysail.api.errors import ConfigError
from skysail.api.ports import Clock
from skysail.client.rotation import Rotated

EXPIRY_LEEWAY_SECONDS = 10.0
"""How long before its expiry a credential is no longer used."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def load_into(self, context: ssl.SSLContext) -> None:
        """Let a TLS context show it. The ssl module reads key pairs from files only: a private one, for a moment.

        Raises:
            ssl.SSLError: These are no PEM certificate and its key.
        """
        handle, name = tempfile.mkstemp(suffix=".pem")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.certificate.rstrip() + b"\n" + self.key)
            context.load_cert_chain(name)
        finally:
            os.unlink(name)


def certificate_in(certificate: Path, key: Path, source: str) -> ClientCertificate:
    """The certificate and the key in two files.

    Raises:
        ConfigError: One cannot be read, or they do not belong together, as between the writing of the two.
    """
    try:
        found = ClientCertificate(certificate.read_bytes(), key.read_bytes())
        found.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    except (OSError, ValueError) as error:
        raise ConfigError(f"no certificate {certificate} with its key {key}: {error}", file=source) from error
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Credential:
    """What is shown to the server.

    Attributes:
        authorization: The value of the Authorization header; empty for none.
        certificate: For the TLS handshake.
        renewable: Whether asking again after a 401 can give another one.
    """

    authorization: str = ""
    certificate: ClientCertificate | None = None
    renewable: bool = False


class Credentials(Protocol):
    """A source of credentials."""

    async def current(self, clock: Clock, rejected: Credential | None = None) -> Credential:
        """The credential to use now.

        Args:
            clock: Tells what has expired.
            rejected: What the server has just refused; another one is made if this is still the current one.

        Raises:
            ConfigError: There is none and there cannot be one.
            Unreachable: A plugin failed this time.
        """
        ...


def bearer(token: str) -> str:
    """An Authorization header for a token; empty without one."""
    return f"Bearer {token}" if token else ""


def basic(username: str, password: str) -> str:
    """An Authorization header for a name and a password."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


class StaticCredentials:
    """The same for ever: a token, a password, a certificate, or nothing.

    Args:
        authorization: The value of the Authorization header.
        certificate: For the TLS handshake.
    """

    def __init__(self, authorization: str = "", certificate: ClientCertificate | None = None) -> None:
        self._credential = Credential(authorization, certificate)

    async def current(self, clock: Clock, rejected: Credential | None = None) -> Credential:
        """See `Credentials.current`."""
        return self._credential


class FileCredentials:
    """A token, a certificate, or both, that lie in files: read again every minute, and when the server refuses them.

    Args:
        token: The token, or the file that holds it; empty for none.
        certificate: For the TLS handshake.
        authorization: What to show when there is no token.
    """

    def __init__(
        self,
        token: Rotated[str] | None = None,
        *,
        certificate: Rotated[ClientCertificate] | ClientCertificate | None = None,
        authorization: str = "",
    ) -> None:
        self._token, self._certificate, self._authorization = token, certificate, authorization
        self._credential: Credential | None = None

    async def current(self, clock: Clock, rejected: Credential | None = None) -> Credential:
        """See `Credentials.current`."""
        known = self._credential
        again = rejected is not None and rejected is known
        certificate = self._certificate
        if isinstance(certificate, Rotated):
            certificate = certificate.current(clock, again=again)
        token = self._token.current(clock, again=again) if self._token is not None else ""
        authorization = bearer(token) or self._authorization
        if known is None or known.authorization != authorization or known.certificate is not certificate:
            self._credential = known = Credential(authorization, certificate, renewable=True)
        return known


class Renewed:
    """A credential that is made anew when it has expired or was rejected; one at a time."""

    def __init__(self, maker: "CredentialMaker") -> None:
        self._maker = maker
        self._making = asyncio.Lock()
        self._credential: Credential | None = None
        self._expires: float | None = None

    async def current(self, clock: Clock, rejected: Credential | None = None) -> Credential:
        """See `Credentials.current`."""
        async with self._making:
            known = self._credential
            if known is None or rejected is known or self._has_expired(clock):
                made = await self._maker.make(clock)
                known = self._credential = made.credential
                self._expires = made.expires
            return known

    def _has_expired(self, clock: Clock) -> bool:
        return self._expires is not None and clock.now().timestamp() >= self._expires - EXPIRY_LEEWAY_SECONDS


@dataclass(frozen=True, slots=True)
class MadeCredential:
    """A new credential.

    Attributes:
        credential: It.
        expires: When it ends, in seconds since the epoch; None when only a rejection ends it.
    """

    credential: Credential
    expires: float | None


class CredentialMaker(Protocol):
    """Makes credentials that expire."""

    async def make(self, clock: Clock) -> MadeCredential:
        """Make a new one; raises as `Credentials.current`."""
        ...
