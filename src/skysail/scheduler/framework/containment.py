"""The one place where a plugin's mistake is caught and named.

Whatever a plugin raises counts, cancellation included: in a plain call nobody can have cancelled anything, so that is
the plugin's own doing too. Only what ends the process (`SystemExit`, `KeyboardInterrupt`) passes.

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
    except BaseException as error:
        raise failed(plugin, doing, error) from error


def failed(plugin: str, doing: str, error: BaseException) -> PluginFailed:
    """What to raise when a plugin raised: for the few callers that cannot afford one call more.

    Raises:
        KeyboardInterrupt: That is what it raised.
        SystemExit: Likewise.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    return PluginFailed(plugin, f"{doing}: {type(error).__name__}: {error}")


def checked_status(answer: object) -> Status:
    """A plugin's answer, if it is a Status.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(answer, Status):
        raise TypeError(f"answered {answer!r}, which is no Status")
    return answer


def checked_pair(answer: object, kind: type[R]) -> tuple[Status, R]:
    """A plugin's answer, if it is a Status and a `kind`.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], kind):
        raise TypeError(f"answered {answer!r}; a Status and a {kind.__name__} are wanted")
    return checked_status(answer[0]), answer[1]
