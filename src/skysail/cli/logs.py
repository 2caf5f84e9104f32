"""Log lines on standard error: a constant message and, behind it, the fields it came with."""

import logging
import sys

from skysail.api.errors import ApiError

_OWN = frozenset([*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"])
"""What a record holds beside fields: logging's own, and uvicorn's message with colours."""


class FieldFormatter(logging.Formatter):
    """`scheduling failed, will retry pod=default/web-1 error="not found"`.

    What the API server refuses is told in a field; only other exceptions come with the way they took.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One record as text."""
        fields = {key: value for key, value in vars(record).items() if key not in _OWN}
        told = record.exc_info
        if told and isinstance(told[1], ApiError):
            fields.setdefault("error", told[1])
            record.exc_info = None
        line = super().format(record)
        record.exc_info = told
        head, *trace = line.split("\n", 1)
        return "\n".join([" ".join([head, *(f"{key}={_quoted(value)}" for key, value in fields.items())]), *trace])


def _quoted(value: object) -> str:
    text = str(value)
    return f'"{text}"' if not text or any(char.isspace() for char in text) else text


def log_to_stderr(verbosity: int) -> None:
    """Send logs to standard error: 0 warnings, 2 info, 4 debug."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FieldFormatter("%(asctime)s %(levelname).1s %(name)s %(message)s"))
    level = logging.WARNING if verbosity < 2 else logging.INFO if verbosity < 4 else logging.DEBUG
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("uvicorn.error").setLevel(max(level, logging.WARNING))  # its name for all it has to say
