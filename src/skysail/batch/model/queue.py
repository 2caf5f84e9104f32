"""The tree of queues, and where each stands.

Built anew whenever a queue changes, which is seldom. A queue whose parent is missing or whose ancestors form a circle
hangs at the root and is named in `problems`; nothing is refused for it.
"""

from collections.abc import Iterable, Iterator, Mapping

from skysail.batch.model.resources import ANY, FlavorResource
from skysail.batch.model.specs import ROOT, Figures, QueueSpec

NO_FIGURES = Figures()


class Queue:
    """A queue at its place in the tree.

    Attributes:
        spec: What it says of itself.
        parent: Its parent, or None at the top.
        children: Below it, by name.
        path: Itself and its ancestors, leaf to root: where everything it uses is charged.
    """

    __slots__ = ("children", "parent", "path", "spec")

    def __init__(self, spec: QueueSpec) -> None:
        self.spec = spec
        self.parent: Queue | None = None
        self.children: list[Queue] = []
        self.path: tuple[Queue, ...] = (self,)

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name

    @property
    def is_spot(self) -> bool:
        """Whether it lives on what is idle."""
        return self.spec.type == "Spot"

    @property
    def names_flavors(self) -> bool:
        """Whether its figures are by flavor rather than for all of them together."""
        return any(flavor != ANY for flavor, _ in self.spec.figures)

    def figures(self, key: FlavorResource) -> Figures:
        """Its figures for one (flavor, resource); all absent when it names none."""
        return self.spec.figures.get(key, NO_FIGURES)

    def limit(self, key: FlavorResource) -> int | None:
        """The most it may use; None is no limit. A queue of named flavors may use none of the others."""
        return self.figures(key).capability

    def __repr__(self) -> str:
        return f"Queue({self.name})"


class QueueTree(Mapping[str, Queue]):
    """All queues.

    Attributes:
        roots: Queues at the top, by name.
        problems: What is wrong with a queue's place, by its name.
    """

    def __init__(self, specs: Iterable[QueueSpec] = ()) -> None:
        self._queues = {spec.name: Queue(spec) for spec in sorted(specs, key=lambda spec: spec.name)}
        self.roots: list[Queue] = []
        self.problems: dict[str, str] = {}
        for queue in self._queues.values():
            self._hang(queue)
        for queue in self._queues.values():
            queue.path = tuple(_upwards(queue))

    def _hang(self, queue: Queue) -> None:
        parent = self._queues.get(queue.spec.parent)
        if parent is None:
            if queue.spec.parent not in ("", ROOT):
                self.problems[queue.name] = f"parent {queue.spec.parent!r} does not exist"
            self.roots.append(queue)
        elif any(each is queue for each in _upwards_by_spec(self._queues, parent)):
            self.problems[queue.name] = f"queue {queue.name!r} is its own ancestor"
            self.roots.append(queue)
        else:
            queue.parent = parent
            parent.children.append(queue)

    def __getitem__(self, name: str) -> Queue:
        return self._queues[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queues)

    def __len__(self) -> int:
        return len(self._queues)

    def siblings_of(self, queue: Queue) -> list[Queue]:
        """The queues beside it, itself included."""
        return queue.parent.children if queue.parent is not None else self.roots

    def below_common_ancestor(self, one: Queue, other: Queue) -> tuple[Queue, Queue]:
        """The ancestors (or themselves) of two queues just below where their paths meet; equal when one is the other.

        When one lies above the other, the upper one stands for itself.
        """
        first, second = list(reversed(one.path)), list(reversed(other.path))
        depth = 0
        while depth < min(len(first), len(second)) and first[depth] is second[depth]:
            depth += 1
        return first[min(depth, len(first) - 1)], second[min(depth, len(second) - 1)]


def _upwards(queue: Queue) -> Iterator[Queue]:
    at: Queue | None = queue
    while at is not None:
        yield at
        at = at.parent


def _upwards_by_spec(queues: Mapping[str, Queue], queue: Queue) -> Iterator[Queue]:
    seen: set[str] = set()
    at: Queue | None = queue
    while at is not None and at.name not in seen:
        seen.add(at.name)
        yield at
        at = queues.get(at.spec.parent)
