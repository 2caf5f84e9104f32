"""What the conformance tests wait to see."""

from typing import Any

from skysail.api.core import Pod
from skysail.controllers.pods import is_ready


def all_ready(count: int, image: str = "") -> Any:
    def satisfied(pods: list[Pod]) -> bool:
        right = [each for each in pods if is_ready(each) and (not image or each.spec.containers[0].image == image)]
        return len(right) == len(pods) == count

    return satisfied


def has_ended(how: str) -> Any:
    return lambda found: (
        [item.type for each in found for item in each.status.conditions if item.status == "True" and item.type == how]
        == [how]
    )
