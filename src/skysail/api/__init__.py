"""Kubernetes objects and the ports every room may name.

Here live frozen Structs for the kinds Skysail reads (`core`, `node`, `apps`, ...), exact quantities, selectors, the
kind descriptors, the error tree, and the interfaces of clock and wire (`ports`). No I/O, no other room.

Read in this order: `ports`, `errors`, `meta`, `core`, `kinds`, then `quantity` and the selectors.

>>> import msgspec
>>> from skysail.api.core import Pod
>>> pod = msgspec.json.decode(b'{"metadata": {"name": "web"}, "spec": {"nodeName": "n1"}}', type=Pod)
>>> pod.name, pod.spec.node_name
('web', 'n1')
"""
