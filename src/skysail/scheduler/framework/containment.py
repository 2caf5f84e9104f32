"""The one place where a plugin's mistake is caught and named.

Source: the wrappings of errors in pkg/scheduler/framework/runtime/framework.go, v1.36.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from skysail.api.errors import SkysailError
from skysail.scheduler.framework.status import Status

P = ParamSpec("P")
R = TypeVar("R")


class PluginFailed(SkysailError):
    """A plugin raised, or answered nonsense: this pod's attempt fails with `Error`, the scheduler goes on.

    Attributes:
        plugin: Whose fault it is.
    """

    def __init__(self, plugin: str, message: str) -> None:
        self.plugin = plugin
        super().__init__(message)

    def status(self) -> Status:
        """The failure as an answer."""
        return Status.error(str(self), plugin=self.plugin)


def contained(plugin: str, doing: str, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call into a plugin.

    Args:
        plugin: Its name.
        doing: What it was asked for, as `running PreFilter plugin "X"`.
        call: The plugin's method.
        *args: Its arguments.
        **kwargs: Its arguments.

    Raises:
        PluginFailed: Whatever it raised, named.
    """
    try:
        return call(*args, **kwargs)
    except Exception as error:
        raise failed(plugin, doing, error) from error


def failed(plugin: str, doing: str, error: Exception) -> PluginFailed:
    """What to raise when a plugin raised: for the few callers that cannot afford one call more."""
    return PluginFailed(plugin, f"{doing}: {type(error).__name__}: {error}")
