"""DaemonSet: one pod on every node that fits.

Read `placement.py` (which nodes fit, and what a daemon pod looks like), `rollout.py` (replacing pods of an old
template), `plan.py` (what to make and delete), `status.py`, then `loop.py`.
"""
