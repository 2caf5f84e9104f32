"""Transcripts: step by step, what controllers did when somebody acted; recorded from the real ones, replayed on ours.

A transcript is a JSON file: actions, and after each the state in which everything came to rest. `player` plays the
actions against an embedded server in virtual time, `observing` reduces what is then there to the transcript's own form,
`comparing` says where it differs from what was recorded.

Read in this order: `naming`, `observing`, `picking`, `acting`, `player`, `comparing`.
"""
