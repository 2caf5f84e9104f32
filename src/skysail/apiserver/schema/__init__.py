"""One table of every resource, field and type of Kubernetes 1.36; everything generic in the server is driven by it.

`load()` reads the packaged data; `types` says what a row means; `table` holds rows and what CRDs add. It drives
decoding (unknown fields, wrong types, protobuf), strategic merge, server-side apply, discovery, OpenAPI and Tables.

    >>> from skysail.apiserver import schema
    >>> table = schema.load()
    >>> table.resource("apps", "v1", "deployments").kind
    'Deployment'
    >>> pod = table.type_of("", "v1", "Pod")
    >>> pod.target(pod.fields["spec"]).fields["containers"].patch_merge_key
    'name'

The data file is made by `tools/apiserver_schema.py`.
"""

from skysail.apiserver.schema.table import Schema, load, storage_version_hash
from skysail.apiserver.schema.types import FieldInfo, Shape, TypeInfo, made_from

__all__ = ["FieldInfo", "Schema", "Shape", "TypeInfo", "load", "made_from", "storage_version_hash"]
