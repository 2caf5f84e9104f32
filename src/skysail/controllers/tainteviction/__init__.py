"""Taint eviction: pods leave nodes that bear a NoExecute taint they do not tolerate, or tolerate only for a while.

Read `plan.py` (when a pod has to go), then `loop.py`.
"""
