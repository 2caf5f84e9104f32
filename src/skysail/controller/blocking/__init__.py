"""The client for code that blocks: an event loop in a thread (`portal`), and the typed client through it (`client`).

`client` is written by `source` out of the asynchronous one. Notebooks begin with `skysail.cli.notebook.connect`.
"""
