"""ReplicaSet: keeps a number of equal pods.

Read `ranking.py` (which pods go first), `plan.py` (how many to make or delete, and the status), then `loop.py`.
"""
