"""The pod-at-a-time scheduler, faithful to kube-scheduler 1.36.

Lives here, downwards: `app` and `cycle` (the shell: informers, loops, binding tasks), `config`, `plugins`, `framework`,
`cache`, `queue`. The pure core (everything but the shell modules) takes no time and no dice but what it is given.

Read `cycle` first, then `queue`, `framework.runner`, one plugin, `cache.table`.
"""
