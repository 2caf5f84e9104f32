"""A configuration file that may change while the engine runs: read at the start of each cycle, if it changed.

A changed file takes effect between cycles; one that cannot be used is refused with its error, and the old one stays.
"""

import logging
from pathlib import Path

from skysail.api.errors import ConfigError
from skysail.batch.config import load_configuration
from skysail.batch.session import Configuration

_log = logging.getLogger(__name__)


class ConfigurationFile:
    """The file, as a function that says what runs now.

    Args:
        path: Where it is.

    Raises:
        ConfigError: It cannot be used at the start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._stamp()
        self._configuration = self._load()
        self.refusal = ""
        """Why the file as it is now is not used; empty while it is."""

    def __call__(self) -> Configuration:
        """What runs now."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            try:
                self._configuration, self.refusal = self._load(), ""
            except ConfigError as error:
                self.refusal = str(error)
                _log.warning("configuration refused, the old one stays", extra={"error": self.refusal})
            else:
                _log.info("configuration taken over", extra={"file": str(self._path)})
        return self._configuration

    def _load(self) -> Configuration:
        try:
            text = self._path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot be read: {error}", file=str(self._path)) from error
        return load_configuration(text, str(self._path))

    def _stamp(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_size
