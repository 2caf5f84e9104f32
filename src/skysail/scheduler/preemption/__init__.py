"""Making room for an important pod by evicting less important ones.

Lives here: who may be evicted from a node, who is spared (`victims`, `budgets`), the search over nodes (`candidates`,
with a quick form for pods that only need resources), the choice among candidates (`picking`), and the plugin
(`default_preemption`). Never here: the eviction itself, which the cycle does with what PostFilter answers.

Read in this order: `budgets`, `victims`, `candidates`, `picking`, `default_preemption`.

Source: pkg/scheduler/framework/preemption, pkg/scheduler/framework/plugins/defaultpreemption, v1.36.
"""
