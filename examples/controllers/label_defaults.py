"""Gives every Deployment of a namespace the labels that the namespace's `LabelDefaults` object asks for.

    skysail crd gen examples.controllers.label_defaults:LabelDefaults | kubectl apply -f -
    python examples/controllers/label_defaults.py --kubeconfig my.kubeconfig

Shows: a kind of one's own with its CustomResourceDefinition, a map from one kind to another, patches of just what is
missing, and a status that is written only when it has changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from skysail.api.apps import Deployment
from skysail.api.kinds import DEPLOYMENTS
from skysail.api.meta import ApiObject, Struct
from skysail.cli.run_controllers import run_controllers
from skysail.controller import Controller, For, Key, Watch, Watches
from skysail.controller.customresources import Column, CustomResource, custom_kind


class LabelDefaultsSpec(Struct, frozen=True, gc=False, kw_only=True):
    """The labels to set on Deployments that lack them; a value that is there is never changed."""

    labels: Mapping[str, str]


class LabelDefaultsStatus(Struct, frozen=True, gc=False, kw_only=True):
    """How many Deployments have all the labels."""

    labelled: int = 0


class LabelDefaults(ApiObject, frozen=True, gc=False, kw_only=True):
    """Default labels for the Deployments of a namespace."""

    resource: ClassVar[CustomResource] = CustomResource(
        "example.com", "v1", "labeldefaults", columns=(Column("Labelled", ".status.labelled", "integer"),)
    )
    spec: LabelDefaultsSpec
    status: LabelDefaultsStatus = LabelDefaultsStatus()


LABEL_DEFAULTS = custom_kind(LabelDefaults)


class LabelDefaulter(Controller):
    """Sets the labels that Deployments lack."""

    @property
    def watches(self) -> Sequence[Watch[Any]]:
        """The defaults, and the Deployments they are for."""
        return (For(LABEL_DEFAULTS), Watches(Deployment, map=self.defaults_for))

    def defaults_for(self, deployment: Deployment) -> Iterable[Key]:
        """The keys of all defaults in a Deployment's namespace."""
        return self.lister(LABEL_DEFAULTS).indexer.keys_by_index("namespace", deployment.namespace)

    async def reconcile(self, key: Key) -> None:
        """Label the Deployments of one namespace."""
        defaults = self.lister(LABEL_DEFAULTS).get(key)
        if defaults is None:
            return
        deployments = self.lister(Deployment).list(key.namespace)
        for deployment in deployments:
            missing = {k: v for k, v in defaults.spec.labels.items() if k not in deployment.metadata.labels}
            if missing:
                await self.client.patch(DEPLOYMENTS, deployment.name, key.namespace, {"metadata": {"labels": missing}})
        status = msgspec.structs.replace(defaults.status, labelled=len(deployments))
        await self.client.patch_status(LABEL_DEFAULTS, defaults, msgspec.structs.replace(defaults, status=status))


if __name__ == "__main__":
    run_controllers(LabelDefaulter())
