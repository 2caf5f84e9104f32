"""The extenders as plugins see them: who they are, which pods they care about, and a way to ask one.

Asking is a conversation (`skysail.scheduler.framework.conversation`); of the points that decide only PostFilter holds
any, in `post_filter_asking`.
"""

from collections.abc import Iterable, Mapping, Sequence

from skysail.api.core import Pod
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.config.types import Extender
from skysail.scheduler.extenders.chain import Candidate, ExtenderChain, is_interested
from skysail.scheduler.framework.conversation import Conversation, ExtenderCall
from skysail.scheduler.framework.status import Status
from skysail.scheduler.preemption.victims import Victims


class ExtenderView:
    """One extender.

    Attributes:
        name: Its `urlPrefix`.
        is_ignorable: Whether an attempt goes on when it fails.
        is_filter: Whether it filters.
        is_prioritizer: Whether it scores.
        is_binder: Whether it binds.
        supports_preemption: Whether it has a say in preemption.
    """

    def __init__(self, extender: Extender) -> None:
        self._extender, self._chain = extender, ExtenderChain((extender,))
        self.name, self.is_ignorable = extender.url_prefix, extender.ignorable
        self.is_filter, self.is_prioritizer = bool(extender.filter_verb), bool(extender.prioritize_verb)
        self.is_binder, self.supports_preemption = bool(extender.bind_verb), bool(extender.preempt_verb)

    def is_interested(self, pod: Pod) -> bool:
        """Whether it is asked about this pod."""
        return is_interested(self._extender, pod)

    def filter(
        self, pod: Pod, candidates: Sequence[Candidate], statuses: dict[str, Status], calls: list[ExtenderCall]
    ) -> Conversation[Sequence[Candidate]]:
        """See `ExtenderChain.filter`."""
        return self._chain.filter(pod, candidates, statuses, calls)

    def prioritize(
        self, pod: Pod, candidates: Sequence[Candidate], calls: list[ExtenderCall]
    ) -> Conversation[Mapping[str, Sequence[int]]]:
        """See `ExtenderChain.prioritize`."""
        return self._chain.prioritize(pod, candidates, calls)

    def process_preemption(
        self, pod: Pod, victims: Mapping[str, Victims], snapshot: Snapshot, calls: list[ExtenderCall]
    ) -> Conversation[Mapping[str, Victims]]:
        """See `ExtenderChain.preempt`."""
        return self._chain.preempt(pod, victims, snapshot, calls)


def views(extenders: Iterable[Extender]) -> tuple[ExtenderView, ...]:
    """All of a configuration, in the order in which they are asked: those that may be ignored come last."""
    return tuple(ExtenderView(each) for each in sorted(extenders, key=lambda each: each.ignorable))
