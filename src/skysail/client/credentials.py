"""Who we are to a server: a fixed token or certificate, a token in a file that somebody rotates, or a plugin.

A transport asks for the current credential before every request, and once more, naming the one the server rejected,
after a 401. Many requests may be rejected at once; only the first of them makes a new credential.
"""

import asyncio
import base64
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from skysail.api.errors import ConfigError
from skysail.api.ports import Clock

_log = logging.getLogger(__name__)

TOKEN_FILE_SECONDS = 60.0
"""How long a token from a file is used before the file is read again."""
EXPIRY_LEEWAY_SECONDS = 10.0
"""How long before its expiry a credential is no longer used."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


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


class FileToken:
    """A token in a file: read again every minute, and at once when the server rejects it.

    Args:
        path: The file.
        fallback: The token to use until the file can be read.
        certificate: For the TLS handshake.
        source: The configuration that names the file, for messages.
    """

    def __init__(
        self, path: Path, *, fallback: str = "", certificate: ClientCertificate | None = None, source: str = ""
    ) -> None:
        self._path, self._fallback, self._certificate, self._source = path, fallback, certificate, source
        self._credential: Credential | None = None
        self._read_at = 0.0

    async def current(self, clock: Clock, rejected: Credential | None = None) -> Credential:
        """See `Credentials.current`."""
        known = self._credential
        stale = clock.monotonic() - self._read_at >= TOKEN_FILE_SECONDS
        if known is None or stale or rejected is known:
            self._credential = known = self._read(known)
            self._read_at = clock.monotonic()
        return known

    def _read(self, known: Credential | None) -> Credential:
        try:
            token = self._path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            if known is not None:
                _log.warning("token file cannot be read, keeping the old token", extra={"path": str(self._path)})
                return known
            if self._fallback:
                return Credential(bearer(self._fallback), self._certificate, renewable=True)
            raise ConfigError(f"the token file {self._path} cannot be read: {error}", file=self._source) from error
        if not token:
            raise ConfigError(f"the token file {self._path} is empty", file=self._source)
        if known is not None and known.authorization == bearer(token):
            return known
        return Credential(bearer(token), self._certificate, renewable=True)


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
