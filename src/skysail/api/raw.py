"""Whole API objects as plain dictionaries, where every field matters and no Struct may lose one."""

from typing import Any

Raw = dict[str, Any]
"""A decoded JSON object as it stands on the wire. The only place where `Any` is welcome in pure modules."""
