"""The embedded Kubernetes API server: one process, one store, every built-in resource and what CRDs add.

What lives here: the MVCC store with its watch window, the table of kinds and fields, decoding, patches, the strategies
of single kinds, admission, subresources, custom resources, and the HTTP front. What never may: a controller, a
scheduler, a client - this room imports `skysail.api` and nothing else of ours.

Who calls it: `skysail up` and `skysail apiserver` serve it over HTTP; tests, simulations and the demo call
`ApiServer.handle` in process, under real or virtual time.

A request's way:

    http ▶ front ▶ server ▶ routing ▶ endpoints ▶ registry ▶ store ▶ watching ▶ streams ▶ http
    bytes, tokens, waiting  │ from here to the store: synchronous, no clock of its own, no sockets, one step a request

The order to read the files in:

    contract        the seams: what a strategy, a subresource and the registry promise one another
    store           revisions, objects, history; then watching, reading (lists), streams (watches)
    catalogue       every kind's `Handle`; then registry, lifecycle, changing, deleting: what happens to an object
    requests        queries and Accept; then routing, bodies, forms, endpoints: what each verb does
    server          the shell that waits; then durable (the disk), front, http, authentication, authorization
    schema/ decoding/ patching/ strategies/ validation/ admission/ subresources/ tables/ customresources/

    >>> from skysail.apiserver.contract import GroupResource
    >>> from skysail.apiserver.store import Store
    >>> store, pods = Store(), GroupResource("", "pods")
    >>> pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web", "namespace": "shop"}}
    >>> store.put(pods, pod, {}).body
    b'{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1","name":"web","namespace":"shop"}}'
    >>> [record.key for record in store.list(pods, "shop")]
    ['shop/web']
"""
