"""lightkube: strategic patch, apply, chunked lists, watch, deletecollection."""

import sys

from lightkube import Client, KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

client = Client(config=KubeConfig.from_file(sys.argv[1]), field_manager="lk")


def config_map(name: str, **data: str) -> ConfigMap:
    metadata = ObjectMeta(name=name, namespace="default")
    return ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=metadata, data=data)


client.create(config_map("m1", a="b"))
assert client.patch(ConfigMap, "m1", {"data": {"c": "d"}}, namespace="default").data == {"a": "b", "c": "d"}
client.apply(config_map("m2", x="y"))
assert [each.metadata.name for each in client.list(ConfigMap, namespace="default", chunk_size=1)] == ["m1", "m2"]
seen = client.watch(ConfigMap, namespace="default", resource_version="0", server_timeout=2)
assert [(kind, each.metadata.name) for kind, each in (next(seen), next(seen))] == [("ADDED", "m1"), ("ADDED", "m2")]
client.replace(config_map("m1", q="r"))
assert client.get(ConfigMap, "m1", namespace="default").data == {"q": "r"}
client.deletecollection(ConfigMap, namespace="default")
assert list(client.list(ConfigMap, namespace="default")) == []
