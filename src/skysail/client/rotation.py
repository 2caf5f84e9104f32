"""Files that somebody rotates: a service account's token, a client certificate and its key, authorities' certificates.

| what happens                                    | what is used                                              |
| ----------------------------------------------- | --------------------------------------------------------- |
| a minute has passed, or the server refuses it   | the files are read again                                  |
| the files hold the same                         | the same object, so that connections are kept             |
| a file is gone, empty, half written, mismatched | what was read last, with a warning; soon looked at again  |

Source: k8s.io/client-go/transport `token_source.go`, `cert_rotation.go`, `ca_rotation.go`, v1.36. Differs: certificates
are read again every minute, not every five; an authority's certificates also when a server is not trusted any more.
"""

import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from skysail.api.errors import ConfigError
from skysail.api.ports import Clock

T = TypeVar("T")

ROTATION_SECONDS = 60.0
"""How long what was read is used before the files are read again."""

_log = logging.getLogger(__name__)


class Rotated(Generic[T]):
    """What rotated files hold now.

    Args:
        read: Reads the files; raises `ConfigError` when they cannot be used.
        initial: What to use until they can be read; None when there is nothing else.
    """

    def __init__(self, read: Callable[[], T], initial: T | None = None) -> None:
        self._read, self._value = read, initial
        self._read_at: float | None = None
        self._complained = ""

    def current(self, clock: Clock, *, again: bool = False) -> T:
        """What to use now.

        Args:
            clock: Tells when the files were read last.
            again: Read them now: what they held was refused.

        Raises:
            ConfigError: They cannot be used, and never could.
        """
        now = clock.monotonic()
        if again or self._value is None or self._read_at is None or now - self._read_at >= ROTATION_SECONDS:
            self._value = self._read_or_keep()
            self._read_at = now
        return self._value

    def _read_or_keep(self) -> T:
        known = self._value
        try:
            found = self._read()
        except ConfigError as error:
            if known is None:
                raise
            if self._complained != str(error):
                _log.warning("rotated file cannot be used, keeping what it held", extra={"error": str(error)})
            self._complained = str(error)
            return known
        self._complained = ""
        return known if known is not None and found == known else found


def token_in(path: Path, source: str) -> str:
    """The token in a file.

    Raises:
        ConfigError: It cannot be read, or is empty.
    """
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token file {path} cannot be read: {error}", file=source) from error
    if not token:
        raise ConfigError(f"the token file {path} is empty", file=source)
    return token


def authorities_in(path: Path, source: str) -> bytes:
    """The authorities' certificates in a file, PEM.

    Raises:
        ConfigError: It cannot be read, or holds none.
    """
    try:
        data = path.read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=data.decode())
    except (OSError, ValueError) as error:
        raise ConfigError(f"no authorities' certificates in {path}: {error}", file=source) from error
    return data
