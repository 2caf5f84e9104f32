"""Volumes: claims find volumes, volumes are made and given back, and neither goes while it is used.

    plan.py         what becomes of a claim, and of a volume: pure
    loop.py         the binder's shell
    topology.py     where a volume that is made can be used: pure
    provisioner.py  makes and deletes volumes that are nothing but objects: CSI drivers' stand-in in hollow clusters
    ephemeral.py    makes the claims of pods' ephemeral volumes
    protection.py   lets claims and volumes go once nobody uses them

Read them in that order. Nothing here ever touches a disk: beside a real cluster's own controllers, switch these off.
"""
