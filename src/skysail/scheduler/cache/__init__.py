"""The schedulers' own account of the cluster: nodes, assigned pods, assumed pods.

Lives here: `ClusterCache` (the truth, fed by informers and by assume / forget), `NodeInfo` and `PodInfo` (accounts),
`NodeTable` and its derived columns (the same, as arrays), `Snapshot` (both, as one attempt sees them). Never here: a
clock of its own, a lock, I/O, anything about plugins.

Callers: both engines (pod-at-a-time and batch) use one cache, so that they cannot sell the same room twice; diagnosis
and `skysail explain` build one from objects. Read in this order: `pod_info`, `node_info`, `columns`, `table`,
`snapshot`, `cluster_cache`.
"""
