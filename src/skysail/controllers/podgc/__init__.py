"""Pod garbage collection: pods that nobody will ever finish.

Read `plan.py` (which pods, and why), then `loop.py`.
"""
