"""StatefulSet: pods with names and volumes of their own, made and replaced in order.

Read `identity.py` (names, ordinals, what a pod of a set looks like), `claims.py` (its volumes, and who owns them),
`plan.py` (the next steps), `status.py`, then `loop.py`, which has `claim_keeper.py` write the claims.
"""
