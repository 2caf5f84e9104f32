"""Amounts of resources, in integers, by flavor and resource.

A flavor is a class of nodes (`default` when nobody defines any). `ANY` stands for all flavors together: a queue that
names plain figures means the sum over flavors. Vectors that are charged carry both, so that one check serves both.

Units: `cpu` milli, everything else whole units; `pods` counts pods.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

FlavorResource: TypeAlias = tuple[str, str]
Amounts: TypeAlias = Mapping[str, int]
"""Amounts by resource, where no flavor is known yet: a task's request."""

ANY: Final = "*"
DEFAULT_FLAVOR: Final = "default"
PODS: Final = "pods"
UNLIMITED: Final = 1 << 62
"""For a deserved share without bound (KAI's -1): as much as is asked for."""


class ResourceVector(Mapping[FlavorResource, int]):
    """Amounts by (flavor, resource). Never changed; entries of zero are left out.

    >>> one = ResourceVector.of({"cpu": 2000, "nvidia.com/gpu": 8}, "h100")
    >>> (one * 3)["h100", "nvidia.com/gpu"], (one - one) == ResourceVector()
    (24, True)
    """

    __slots__ = ("_amounts",)

    def __init__(self, amounts: Mapping[FlavorResource, int] | None = None) -> None:
        self._amounts = {key: amount for key, amount in (amounts or {}).items() if amount}

    @classmethod
    def of(cls, amounts: Amounts, flavor: str = DEFAULT_FLAVOR) -> "ResourceVector":
        """These amounts, of one flavor."""
        return cls({(flavor, resource): amount for resource, amount in amounts.items()})

    def __getitem__(self, key: FlavorResource) -> int:
        return self._amounts[key]

    def __iter__(self) -> Iterator[FlavorResource]:
        return iter(self._amounts)

    def __len__(self) -> int:
        return len(self._amounts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceVector) and self._amounts == other._amounts

    def __hash__(self) -> int:
        return hash(frozenset(self._amounts.items()))

    def __add__(self, other: "ResourceVector") -> "ResourceVector":
        total = dict(self._amounts)
        for key, amount in other._amounts.items():
            total[key] = total.get(key, 0) + amount
        return ResourceVector(total)

    def __sub__(self, other: "ResourceVector") -> "ResourceVector":
        return self + other * -1

    def __mul__(self, times: int) -> "ResourceVector":
        return ResourceVector({key: amount * times for key, amount in self._amounts.items()})

    def amount(self, key: FlavorResource) -> int:
        """The amount, 0 when there is none: for vectors that count, where absent and zero are the same."""
        return self._amounts.get(key, 0)

    def over_all_flavors(self) -> "ResourceVector":
        """With the sums over flavors added under `ANY`."""
        total = {key: amount for key, amount in self._amounts.items() if key[0] != ANY}
        for (flavor, resource), amount in self._amounts.items():
            if flavor != ANY:
                total[ANY, resource] = total.get((ANY, resource), 0) + amount
        return ResourceVector(total)

    def __repr__(self) -> str:
        return f"ResourceVector({self._amounts})"


def amount_text(resource: str, amount: int) -> str:
    """An amount as people write it: cpu in cores or `m`, bytes with the largest suffix that loses nothing.

    >>> amount_text("cpu", 1500), amount_text("cpu", 2000), amount_text("memory", 3 << 30), amount_text("pods", 7)
    ('1500m', '2', '3Gi', '7')
    """
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for shift, suffix in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
            if amount and amount % (1 << shift) == 0:
                return f"{amount >> shift}{suffix}"
    return str(amount)
