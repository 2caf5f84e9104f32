"""kubernetes_asyncio: booleans as `True`, a watch with bookmarks."""

import asyncio
import sys

from kubernetes_asyncio import client, config, watch


async def main() -> None:
    await config.load_kube_config(sys.argv[1])
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        await core.create_namespaced_config_map("default", {"metadata": {"name": "m1"}, "data": {"a": "1"}})
        kinds = []
        stream = watch.Watch().stream(
            core.list_namespaced_config_map, "default", timeout_seconds=1, allow_watch_bookmarks=True
        )
        async with stream as events:
            async for event in events:
                kinds.append(event["type"])
        assert kinds == ["ADDED", "BOOKMARK"], kinds
        await core.delete_namespaced_config_map("m1", "default")


asyncio.run(main())
