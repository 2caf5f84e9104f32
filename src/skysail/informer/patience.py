"""How patient a reflector is: its settings, with their units, defaults and reasons."""

from dataclasses import dataclass, field

from skysail.informer.backoff import BackoffSettings


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """How patient a reflector is.

    Attributes:
        min_watch_seconds: A watch asks to be ended after a random time between this and the next.
        max_watch_seconds: See above; spreads the load of reopened watches.
        silence_seconds: A stream on which nothing, not even a bookmark, is heard for so long is abandoned. Servers send
            a bookmark every minute.
        initial_silence_seconds: The same, while the initial list is awaited.
        grace_seconds: How much later than it was asked to a server may end a watch.
        trust_seconds: A watch reopened after a failure counts as healthy after so long without another.
        page_size: Objects a page when paging.
        use_watch_list: Whether to try WatchList first.
        backoff: Waits between failed attempts.
    """

    min_watch_seconds: float = 300.0
    max_watch_seconds: float = 600.0
    silence_seconds: float = 180.0
    initial_silence_seconds: float = 30.0
    grace_seconds: float = 30.0
    trust_seconds: float = 5.0
    page_size: int = 500
    use_watch_list: bool = True
    backoff: BackoffSettings = field(default_factory=BackoffSettings)
