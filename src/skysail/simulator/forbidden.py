"""What the virtual-time loop refuses: everything that would bring in real time from outside."""

from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from skysail.api.errors import SkysailError


class NotInVirtualTime(SkysailError):
    """A thread, socket or process was asked for where only virtual time exists."""


_REFUSALS: Final = {
    "threads and executors": (
        "run_in_executor", "set_default_executor", "getaddrinfo", "getnameinfo",
    ),
    "sockets": (
        "create_connection", "create_server", "create_datagram_endpoint", "create_unix_connection",
        "create_unix_server", "connect_accepted_socket", "start_tls", "sendfile", "sock_accept", "sock_connect",
        "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into", "sock_sendall", "sock_sendto",
        "sock_sendfile", "add_reader", "remove_reader", "add_writer", "remove_writer",
    ),
    "pipes and subprocesses": (
        "connect_read_pipe", "connect_write_pipe", "subprocess_exec", "subprocess_shell",
    ),
    "signals": ("add_signal_handler", "remove_signal_handler"),
}  # fmt: skip
"""What is refused, and the methods of the event loop by which one would get it."""


def _refusal(method: str, what: str) -> Callable[..., NoReturn]:
    def refuse(*_args: object, **_kwargs: object) -> NoReturn:
        raise NotInVirtualTime(
            f"loop.{method}(): {what} do not exist in virtual time, where a real millisecond could look like a year; "
            "hand in the inline form of the component, or run it on a real loop"
        )

    refuse.__name__ = method
    return refuse


FORBIDDEN: Final[Mapping[str, Callable[..., NoReturn]]] = {
    method: _refusal(method, what) for what, methods in _REFUSALS.items() for method in methods
}
"""The replacing methods by name."""
