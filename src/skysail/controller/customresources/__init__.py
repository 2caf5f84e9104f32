"""Kinds of one's own: where they live (`definition`), and what they look like (`schema`).

class Backup(ApiObject, frozen=True, gc=False, kw_only=True):
resource: ClassVar = CustomResource("example.com", "v1", "backups")
spec: BackupSpec

BACKUPS = custom_kind(Backup)            # for watches and the client
manifest = definition_of(Backup)         # what `skysail crd gen module:Backup` prints
"""

from skysail.controller.customresources.definition import (
    Column,
    CustomResource,
    ScalePaths,
    custom_kind,
    definition_of,
)
from skysail.controller.customresources.schema import list_map, list_set, rule, schema_of_object

__all__ = [
    "Column",
    "CustomResource",
    "ScalePaths",
    "custom_kind",
    "definition_of",
    "list_map",
    "list_set",
    "rule",
    "schema_of_object",
]
