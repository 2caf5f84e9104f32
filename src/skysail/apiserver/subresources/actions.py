"""What most actions have in common: nothing to default, no field owners to note."""

from skysail.api.raw import Raw


class PlainAction:
    """An action whose answer is not the body it was sent."""

    tracked = False

    def default(self, body: Raw) -> None:
        """Nothing to fill in."""


class TrackedAction(PlainAction):
    """An action that answers with its body, field owners noted."""

    tracked = True
