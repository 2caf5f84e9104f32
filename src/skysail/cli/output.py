"""Standard output, which a reader may have left, a disk may refuse, and a caller may not have opened at all."""

import os
import sys

from skysail.api.errors import SkysailError


class OutputLost(SkysailError):
    """Standard output takes no more; `unread` when its reader has gone, which is nobody's fault."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"cannot write to standard output: {error.strerror}")
        self.unread = isinstance(error, BrokenPipeError)


def say(text: str) -> None:
    """Print a line, or several, that a pipe's reader gets at once.

    Raises:
        OutputLost: They cannot be written.
    """
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        raise OutputLost(error) from error


def open_missing() -> None:
    """Give the standard descriptors that the caller has closed to /dev/null.

    Otherwise the first socket becomes number 1 or 2, and what is printed goes to its peer.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(opened, True)
    os.close(opened)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def drop_unwritten() -> None:
    """Let what is buffered for a lost output go nowhere, so that the interpreter's end does not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
