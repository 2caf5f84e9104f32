"""Making room for an important pod by evicting less important ones.

Lives here: who may be evicted from a node, who is spared (`victims`, `budgets`), the search over nodes (`candidates`,
with a quick form for pods that only need resources), the choice among candidates (`picking`), and the plugin
(`default_preemption`), all pure; and `evictor`, the shell that carries a decision out.

Read in this order: `budgets`, `victims`, `candidates`, `picking`, `default_preemption`, `evictor`.

Source: pkg/scheduler/framework/preemption, pkg/scheduler/framework/plugins/defaultpreemption, v1.36.
"""
