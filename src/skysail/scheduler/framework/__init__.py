"""The scheduling framework: what a plugin is, and how the answers of many become one decision.

Lives here: statuses and codes, the cycle state, the extension points, the runner of a profile with its incremental
evaluation, the diagnosis. Never here: a plugin (the framework is handed them), a clock, I/O.

Read in this order: `status`, `cycle_state`, `codes`, `plugin`, `handle`, `diagnosis`, then the runner.
"""
