"""Modules that stand where the command was called count, as with `python -m`."""

import os
import sys


def search_working_directory() -> None:
    """Let imports find modules of the working directory."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
