"""The batch engine: schedules jobs, not pods. Everything a job needs is found in one snapshot, or nothing is taken.

Lives here: `model` (queues, jobs, tasks, slots, claims, outcomes), `ledger` (who holds what), `entitlement` (who may
hold what), `expressions` (how plugins' answers are combined), `statement` (a transaction over the session), `session`
(one cycle's world), `actions` and `plugins`, `engine` (a cycle, pure), `app` (the shell: informers in, bindings,
evictions and statuses out). Never here: a second idea of whether a pod fits a node; that is the pod-at-a-time engine's,
over the same cluster cache.

Read in this order: `model`, `ledger`, `statement`, `session`, `actions.allocate_job`, `engine`.
"""
