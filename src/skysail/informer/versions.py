"""Which resourceVersion a reflector asks for next: the one decision that makes relists cheap and right.

| asked for | state                                        | version                                                  |
| --------- | -------------------------------------------- | -------------------------------------------------------- |
| list      | never synced                                 | `"0"`: whatever the server has in its cache              |
| list      | synced                                       | the last one: at least as new as what was seen           |
| list      | the last one was said to be unavailable      | `""`: a quorum read                                      |
| watchlist | never synced, or unavailable                 | `""`: the most recent, consistent                        |
| watchlist | synced                                       | the last one                                             |

Source: k8s.io/client-go/tools/cache/reflector.go `relistResourceVersion`, `rewatchResourceVersion`, v1.36. Differs: a
410 from a watch, too, marks the version as unavailable, so the relist that follows cannot meet the same 410.
"""


class VersionTracker:
    """The versions one reflector has seen."""

    def __init__(self) -> None:
        self.last = ""
        """The version last synced; watches go on from here."""
        self.unavailable = False
        """Whether the server said that `last` has expired, or lies ahead of it."""

    def list_version(self) -> str:
        """The version a list asks for."""
        if self.unavailable:
            return ""
        return self.last or "0"

    def watch_list_version(self) -> str:
        """The version a watch that sends the initial list asks for."""
        return "" if self.unavailable else self.last

    def synced(self, version: str) -> None:
        """A list of that version has been taken over."""
        self.last = version
        self.unavailable = False

    def advance(self, version: str) -> None:
        """A watch event or bookmark of that version has been taken over."""
        if version:
            self.last = version

    def mark_unavailable(self) -> None:
        """The server cannot serve the last version: ask without one."""
        self.unavailable = True


def is_too_large(message: str, cause_reasons: tuple[str, ...]) -> bool:
    """Whether a time-out means that the asked-for version lies ahead of the server's, as after a restore."""
    return "ResourceVersionTooLarge" in cause_reasons or "Too large resource version" in message


def version_number(version: str) -> int:
    """A version as a number, for comparing two of the same collection; 0 when it is none.

    Kubernetes promises since 1.35 that versions of one resource are comparable integers (KEP-5504).
    """
    return int(version) if version.isascii() and version.isdigit() else 0
