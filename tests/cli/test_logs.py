"""A log line shows the fields it came with; a refusal of the API server is one of them."""

import logging
from typing import Any

from skysail.api.errors import Conflict
from skysail.cli.logs import FieldFormatter


def line(error: Exception | None = None, **fields: Any) -> str:
    told = (type(error), error, None) if error is not None else None
    record = logging.LogRecord("room", logging.WARNING, __file__, 1, "went wrong", (), told)
    vars(record).update(fields)
    return FieldFormatter("%(levelname).1s %(message)s").format(record)


def test_fields_follow_the_message_quoted_where_they_have_blanks() -> None:
    assert line(pod="default/a", why="not found") == 'W went wrong pod=default/a why="not found"'
    assert line() == "W went wrong"


def test_what_the_server_refused_is_a_field_and_brings_no_traceback() -> None:
    assert line(Conflict("it changed"), key="default/a") == 'W went wrong key=default/a error="it changed"'


def test_any_other_exception_brings_its_traceback_below_the_fields() -> None:
    assert line(ValueError("odd"), key="a").splitlines() == ["W went wrong key=a", "ValueError: odd"]
