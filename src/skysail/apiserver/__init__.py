"""The embedded Kubernetes API server: one process, one store, every built-in resource.

What lives here: the MVCC store with its watch window, the table of kinds and fields, decoding, patches, the strategies
of single kinds, admission, subresources, and the HTTP front. What never may: a controller, a scheduler, a client - this
room imports `skysail.api` and nothing else of ours.

Who calls it: `skysail up` and `skysail apiserver` serve it over HTTP; tests, simulations and the demo call
`ApiServer.handle` in process, under real or virtual time.

A request's way, and the order to read the files in:

    http -> server -> requests/routing -> registry -> decoding -> strategies + admission -> store -> watching
            (async)   (pure from here on: synchronous, no clock of its own, no sockets)

`contract.py` states the seams between these parts and is the file to read second.
"""
