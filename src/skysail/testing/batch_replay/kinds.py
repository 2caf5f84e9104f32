"""The kinds a scenario may speak of: built-in ones, ours, other systems', and those it defines itself."""

from collections.abc import Iterable
from typing import Any, Final

from skysail.api.kinds import KINDS, Kind
from skysail.api.raw import Raw
from skysail.batch.foreign.definitions import foreign_definitions
from skysail.batch.kinds import batch_definitions
from skysail.controller.customresources.installing import DEFINITIONS

DEFINITION: Final = "CustomResourceDefinition"


def kinds_defined(definitions: Iterable[Raw]) -> list[Kind[Raw]]:
    """The kinds of some CustomResourceDefinitions, every version."""
    found = []
    for definition in definitions:
        spec = definition.get("spec") or {}
        names, namespaced = spec.get("names") or {}, spec.get("scope") == "Namespaced"
        for version in spec.get("versions") or ():
            below = ("status",) if "status" in (version.get("subresources") or {}) else ()
            found.append(
                Kind(
                    spec.get("group", ""), version.get("name", ""), names.get("kind", ""), names.get("plural", ""),
                    namespaced, dict, below,
                )
            )  # fmt: skip
    return found


class KnownKinds:
    """A table of kinds, asked by name.

    Args:
        defined: Kinds the scenario defines itself.
    """

    def __init__(self, defined: Iterable[Kind[Raw]] = ()) -> None:
        self._kinds: tuple[Kind[Any], ...] = (
            *kinds_defined(batch_definitions()), *KINDS, DEFINITIONS, *kinds_defined(foreign_definitions()), *defined,
        )  # fmt: skip

    def find(self, name: str, api_version: str = "") -> list[Kind[Any]]:
        """All kinds of that name, ours first, then built-in ones, then other systems'.

        Args:
            name: The kind, its plural, or either in lower case.
            api_version: The API that is meant; empty for any.
        """
        wanted = name.lower()
        return [
            kind
            for kind in self._kinds
            if wanted in (kind.name.lower(), kind.plural, kind.resource) and api_version in ("", kind.api_version)
        ]

    def named(self, name: str, api_version: str) -> Kind[Any] | None:
        """The kind of an object that says both."""
        return next((kind for kind in self.find(name, api_version) if kind.name == name), None)
