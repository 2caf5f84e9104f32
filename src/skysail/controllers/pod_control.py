"""Making and deleting pods in the name of their owner, and telling people about it.

Source: pkg/controller/controller_utils.go `RealPodControl`, v1.36.
"""

from skysail.api.core import Pod
from skysail.api.errors import ApiError, NotFound
from skysail.api.kinds import PODS
from skysail.api.meta import ApiObject
from skysail.api.raw import Raw
from skysail.client.api_client import ApiClient
from skysail.controller.recorder import EventRecorder

NAMESPACE_TERMINATING = "NamespaceTerminating"


def is_namespace_terminating(error: ApiError) -> bool:
    """Whether a creation failed because its namespace is on its way out: then nothing is to be done about it."""
    details = error.status.details
    return details is not None and any(cause.reason == NAMESPACE_TERMINATING for cause in details.causes)


class PodControl:
    """Creates and deletes pods; every success and every failure becomes an Event on the owner.

    Args:
        client: Writes.
        recorder: Tells.
    """

    def __init__(self, client: ApiClient, recorder: EventRecorder) -> None:
        self._client, self._recorder = client, recorder

    async def create(self, body: Raw, owner: ApiObject) -> None:
        """Make a pod.

        Raises:
            ApiError: The server refused; the owner's Events say so, unless its namespace is terminating.
        """
        try:
            pod = await self._client.create(PODS, body, owner.metadata.namespace)
        except ApiError as error:
            if not is_namespace_terminating(error):
                self._recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {error.status.message}")
            raise
        self._recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {pod.name}")

    async def delete(self, pod: Pod, owner: ApiObject) -> None:
        """Delete a pod, if it is still that one.

        Raises:
            NotFound: It is gone already; no Event.
            ApiError: The server refused; the owner's Events say so.
        """
        try:
            await self._client.delete(PODS, pod.name, pod.namespace)
        except NotFound:
            raise
        except ApiError as error:
            self._recorder.event(owner, "Warning", "FailedDelete", f"Error deleting: {error.status.message}")
            raise
        self._recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")
