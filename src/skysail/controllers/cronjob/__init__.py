"""CronJob: makes jobs on a schedule.

Read `schedule.py` (what `*/5 * * * *` means), `plan.py` (which run is due, and what becomes of old ones), then
`loop.py`.
"""
