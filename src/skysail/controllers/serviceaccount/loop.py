"""Makes the service account `default` in every active namespace, and makes it again when somebody deletes it.

Source: pkg/controller/serviceaccount/serviceaccounts_controller.go, v1.36.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from skysail.api.cluster import Namespace, ServiceAccount
from skysail.api.errors import AlreadyExists, ApiError
from skysail.api.kinds import SERVICE_ACCOUNTS
from skysail.controller.controller import Result
from skysail.controller.watches import Added, Deleted, For, Updated, Watch, Watches
from skysail.controllers.builtin import BuiltinController
from skysail.informer.keys import Key

DEFAULT = "default"


class ServiceAccountController(BuiltinController):
    """Keeps a default service account in every namespace."""

    name = "serviceaccount"
    workers = 1

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """Namespaces that come or change, and service accounts that go."""
        return (
            For(Namespace, on=(Added, Updated)),
            Watches(ServiceAccount, on=(Deleted,), map=_namespace_of),
        )

    async def reconcile(self, key: Key) -> Result | None:
        """Make the account, if the namespace is active and lacks it."""
        namespace = self.lister(Namespace).get(key)
        if namespace is None or namespace.status.phase == "Terminating":
            return None
        if self.lister(ServiceAccount).named(DEFAULT, key.name) is not None:
            return None
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEFAULT, "namespace": key.name}}
        try:
            await self.api.create(SERVICE_ACCOUNTS, body, key.name)
        except AlreadyExists:
            return None
        except ApiError as error:
            if not error.is_namespace_terminating:
                raise
        return None


def _namespace_of(account: ServiceAccount) -> Iterable[Key]:
    return (Key("", account.namespace),)
