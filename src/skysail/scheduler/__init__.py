"""The pod-at-a-time scheduler, faithful to kube-scheduler 1.36.

Lives here, downwards: `app` and `cycle` (the shell: informers, loops, binding tasks), `config`, `plugins`, `framework`,
`cache`, `queue`. The pure core (everything but the shell modules) takes no time and no dice but what it is given.

Read `cycle` first, then `queue`, `framework.runner`, one plugin, `cache.table`. The shell, in the order a pod meets it:

    app             wires everything, runs the tasks, stops in order
    watching        which informers it listens to;  `handlers`: from what they saw to cache and queue
    timers          when the queue is flushed
    cycle           one pod's way to its node;  `deciding`, `algorithm`: which node
    waiting_pods    pods held by Permit;  `binding`: Reserve to PostBind;  `binder`: bounded writes
    failure         what becomes of a failed attempt;  `status_writer`: conditions, off the critical path
    attempts        what the last attempts found out;  `instruments`, `metrics`: how long it took
    serving         health, metrics, debug over HTTP;  `consistency`: do cache and informers agree
    profiles        plugins made from a resolved configuration;  `registry`: the built-in ones
    scenario        a cluster made of objects;  `explain`: a decision as data;  `live`: a scenario of a running cluster
"""
