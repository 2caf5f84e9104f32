"""PodDisruptionBudget status: how many pods may be taken away on purpose right now.

Read `plan.py` (the arithmetic), then `loop.py`, which finds the pods and the sizes of what owns them. The API server
reads the answer when somebody evicts.
"""
