"""A network namespace with one cable to this machine, which can be pulled: packets vanish and nobody is told.

Needs root and `ip` (iproute2); where it cannot be had, tests skip and say so.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


def reason_against() -> str:
    """Why no network namespace can be made here; empty when one can."""
    if shutil.which("ip") is None:
        return "network namespaces need `ip` (iproute2)"
    name = f"sky-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return f"network namespaces cannot be made here: {made.stderr.strip()}"
    _ip("netns", "delete", name)
    return ""


class Namespace:
    """A network namespace and its cable.

    Args:
        number: 0 to 255, one each on a machine.
    """

    def __init__(self, number: int) -> None:
        self.name = f"sky-{number}"
        self.outside, self.inside = f"10.231.{number}.1", f"10.231.{number}.2"
        self._cable = f"sky{number}"

    @property
    def prefix(self) -> list[str]:
        """What to put before a command to run it inside."""
        return ["ip", "netns", "exec", self.name]

    def pull(self) -> None:
        """Pull the cable."""
        _ip("link", "set", self._cable, "down")

    def plug(self) -> None:
        """Plug it in again."""
        _ip("link", "set", self._cable, "up")

    def make(self) -> None:
        """Make it, plugged in."""
        _ip("netns", "add", self.name)
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _ip("address", "add", f"{self.outside}/30", "dev", self._cable)
        _ip("-netns", self.name, "address", "add", f"{self.inside}/30", "dev", "eth0")
        _ip("-netns", self.name, "link", "set", "lo", "up")
        _ip("-netns", self.name, "link", "set", "eth0", "up")
        self.plug()

    def remove(self) -> None:
        """Take it away; the cable goes along."""
        for command in (["link", "delete", self._cable], ["netns", "delete", self.name]):
            subprocess.run(["ip", *command], capture_output=True, check=False)


@contextmanager
def namespace() -> Iterator[Namespace]:
    """A namespace while the block runs."""
    made = Namespace(os.getpid() % 256)
    made.remove()
    try:
        made.make()
        yield made
    finally:
        made.remove()


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
