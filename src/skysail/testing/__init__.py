"""What tests of schedulers and controllers are written with; shipped to users.

What lives here: builders for objects (`builders`, `placement`, `workloads`), a whole cluster for one test in virtual
time (`cluster`, and the pytest fixture of that name in `plugin`), and everything that can go wrong in it (`faults`,
`faulty_server`, `switch`). It may import every room but the command line, and no room imports it.

Read in this order: `builders`, `cluster`, `faults`, `faulty_server`, `component`, `plugin`.

>>> from skysail.testing import make_pod, require_nodes, affinity
>>> make_pod("web", affinity=affinity(nodes=require_nodes({"disk": "ssd"}))).key
'default/web'

The package itself gives only what needs nothing but `skysail.api`, so that pytest starts quickly with the plugin
installed; `Cluster` is in `skysail.testing.cluster`.
"""

from skysail.testing.builders import (
    HOSTNAME,
    ZONE,
    make_container,
    make_node,
    make_nodes,
    make_pod,
    owner_of,
    taint,
    tolerate,
)
from skysail.testing.faults import FOR_EVER, Action, Chaos, Crashed, Faults
from skysail.testing.placement import affinity, away_from, near, node_term, require_nodes, spread_over
from skysail.testing.workloads import (
    make_config_map,
    make_deployment,
    make_disruption_budget,
    make_job,
    make_namespace,
    make_priority_class,
    make_replica_set,
    make_service,
    pod_template,
)

__all__ = [
    "FOR_EVER",
    "HOSTNAME",
    "ZONE",
    "Action",
    "Chaos",
    "Crashed",
    "Faults",
    "affinity",
    "away_from",
    "make_config_map",
    "make_container",
    "make_deployment",
    "make_disruption_budget",
    "make_job",
    "make_namespace",
    "make_node",
    "make_nodes",
    "make_pod",
    "make_priority_class",
    "make_replica_set",
    "make_service",
    "near",
    "node_term",
    "owner_of",
    "pod_template",
    "require_nodes",
    "spread_over",
    "taint",
    "tolerate",
]
