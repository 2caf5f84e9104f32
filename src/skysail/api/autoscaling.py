"""The scale subresource: how many replicas are wanted, and how many there are."""

from skysail.api.meta import ApiObject, Struct


class ScaleSpec(Struct, frozen=True, gc=False):
    """How many are wanted."""

    replicas: int = 0


class ScaleStatus(Struct, frozen=True, gc=False):
    """How many there are, and the selector that finds them (text form)."""

    replicas: int = 0
    selector: str = ""


class Scale(ApiObject, frozen=True, gc=False):
    """What a scalable object shows at its `scale` subresource (autoscaling/v1)."""

    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()
