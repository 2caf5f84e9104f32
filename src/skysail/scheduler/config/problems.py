"""Faults in a configuration, each with the path of its field; the words are upstream's."""

from collections.abc import Iterable

from skysail.api.errors import ConfigError


class Problems:
    """Collects every fault, so that a user fixes a file in one go."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def found(self) -> tuple[tuple[str, str], ...]:
        """The faults so far: (path, message)."""
        return tuple(self._found)

    def add(self, path: str, message: str) -> None:
        """A fault in other words."""
        self._found.append((path, message))

    def invalid(self, path: str, value: object, allowed: str) -> None:
        """A value out of range."""
        self.add(path, f"Invalid value: {_shown(value)}: {allowed}")

    def required(self, path: str, why: str = "") -> None:
        """A value is missing."""
        self.add(path, f"Required value: {why}" if why else "Required value")

    def duplicate(self, path: str, value: object) -> None:
        """A value that must be unique is not."""
        self.add(path, f"Duplicate value: {_shown(value)}")

    def forbidden(self, path: str, why: str) -> None:
        """A value that must not be there."""
        self.add(path, f"Forbidden: {why}")

    def unsupported(self, path: str, value: object, supported: Iterable[str]) -> None:
        """A value that is none of a fixed list."""
        choices = ", ".join(f'"{choice}"' for choice in supported)
        self.add(path, f"Unsupported value: {_shown(value)}: supported values: {choices}")

    def raise_if_any(self, file: str = "") -> None:
        """End here when there was a fault.

        Raises:
            ConfigError: One fault with its path, or all of them in one list.
        """
        if not self._found:
            return
        if len(self._found) == 1:
            path, message = self._found[0]
            raise ConfigError(message, file=file, path=path)
        listed = ", ".join(f"{path}: {message}" for path, message in self._found)
        raise ConfigError(f"[{listed}]", file=file)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)
