"""Every namespace has a service account `default`. Read `loop.py`; there is nothing to plan."""
