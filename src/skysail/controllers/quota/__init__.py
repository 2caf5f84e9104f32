"""ResourceQuota usage: what a namespace uses of what it may use.

The API server refuses what goes beyond, by what stands in a quota's status; this controller puts it there, and takes
off what is gone. Read `usage.py` (what an object costs), then `loop.py`.
"""
