"""TTL after finished: jobs are deleted some time after they are done, if they ask for it.

Read `plan.py`, then `loop.py`.
"""
