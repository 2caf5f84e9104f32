"""Speaking to an API server: one typed client over two transports.

What lives here: `ApiClient` (kinds, errors, retries, paging), the transports it speaks through - `http` (a real
cluster, or a served embedded one) and `inprocess` (the embedded one, called directly) - and where to find a server and
who we are (`kubeconfig`, `incluster`, `credentials`). What never may: caching, watching for others (that is
`informer`), or knowing the embedded server; a `Handler` is handed in.

Third-party exceptions are translated here, once: whoever calls sees `ApiError` (the server said no), `Unreachable` (no
answer) or `ConfigError` (what the user wrote cannot be used).

Read in this order: `api_client`, `calls`, `retry`, `codec`, `inprocess`, `http`, `config`, `kubeconfig`, `credentials`,
`rotation`.

    transport = HttpTransport(kubeconfig.load(), clock=clock)
    client = ApiClient(transport, user_agent="my-controller", clock=clock, rng=rng)
    async for event in client.watch(PODS, "default"):
        ...
"""
