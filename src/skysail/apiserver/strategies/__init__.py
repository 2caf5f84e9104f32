"""What each kind does to an object on its way into the store: defaults, lifecycle, validation, field selectors.

`table` maps every resource to its `Strategy`; `generic` is the behaviour all kinds share, driven by a row of rules;
the other modules hold the kinds whose rules do not fit into a row. Nothing here reads the store except through
`ctx.reader`, and nothing knows HTTP.

>>> from skysail.apiserver.strategies import for_resource
>>> pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
>>> for_resource("", "pods").default(pod)
>>> pod["spec"]["containers"][0]["imagePullPolicy"]
'Always'
"""

from skysail.apiserver.strategies.table import for_resource

__all__ = ["for_resource"]
