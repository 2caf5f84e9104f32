"""The batch engine's picture of the world: queues, jobs, tasks, slots, claims, outcomes. Values and plain accounts.

Lives here: what readers of API objects fill in (`specs`, frozen), what the engine keeps about them (`job`, `queue`,
`slot`, `claim`: accounts that only the engine changes), what it answers (`outcome`). Never here: API objects other than
pods and nodes, policy, I/O, time.

Read in this order: `resources`, `specs`, `outcome`, `job`, `queue`; then `skysail.batch.world`, which holds them all.
"""
