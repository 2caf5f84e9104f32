"""A server that holds so many pods and nothing else, as plain and quick as it can be: it must not be what is measured.

    python -m bench._hollow_pods COUNT

prints its port, then serves lists (paged), watches (with or without the initial list), and below `/expired` a server
whose every watch is 410. `GET /count` gives the number of lists since the last time.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qsl

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def pod(index: int) -> dict:
    """A pod of about 5 kB, one of fifty of its ReplicaSet, as a real server gives it."""
    owner = index // 50
    name, app = f"web-{owner:03d}-7d4b9c6f5", f"web-{owner}"
    reference = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"rs-{owner}", "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
    times = [f"2026-01-01T00:{index % 60:02d}:0{second}Z" for second in range(3)]
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    token = f"kube-api-access-{index % 997:05d}"
    managed = {
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": "v1",
        "time": times[0],
        "subresource": "status",
    }
    fields = {f"f:field-{number}": {".": {}, "f:name": {}, "f:value": {}} for number in range(40)}
    return {
        "metadata": {
            "name": f"{name}-{index:05d}", "generateName": f"{name}-", "namespace": f"ns-{owner % 20}",
            "uid": f"{index:08d}-aaaa-bbbb-cccc-{owner:012d}", "resourceVersion": str(100_000 + index),
            "creationTimestamp": times[0], "ownerReferences": [reference],
            "labels": {"app": app, "pod-template-hash": "7d4b9c6f5", "tier": "front"},
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": "x" * 64},
            "managedFields": [managed | {"fieldsType": "FieldsV1", "fieldsV1": fields}],
        },
        "spec": {
            "volumes": [{"name": token, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            ]}}],
            "containers": [{
                "name": "main", "image": "registry.example.com/team/web:v1.2.3", "args": ["--port=8080"],
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "env": [{"name": f"VAR_{number}", "value": "value" * 3} for number in range(10)],
                "resources": {
                    "limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"},
                },
                "volumeMounts": [{"name": token, "readOnly": True, "mountPath": "/var/run/secrets"}],
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10},
                "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "IfNotPresent",
            }],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "nodeName": f"node-{index % 500:04d}", "securityContext": {},
            "schedulerName": "default-scheduler", "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ],
        },
        "status": {
            "phase": "Running", "hostIP": f"10.1.{index % 250}.1", "podIP": f"10.2.{index // 250}.{index % 250}",
            "podIPs": [{"ip": f"10.2.{index // 250}.{index % 250}"}], "startTime": times[0], "qosClass": "Burstable",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": times[1]}
                for kind in kinds
            ],
            "containerStatuses": [{
                "name": "main", "state": {"running": {"startedAt": times[2]}}, "lastState": {}, "ready": True,
                "restartCount": 0, "image": "registry.example.com/team/web:v1.2.3", "started": True,
                "imageID": "registry.example.com/team/web@sha256:" + "ab" * 32, "containerID": f"containerd://{index:064d}",
            }],
        },
    }  # fmt: skip


class HollowServer:
    """Answers from bytes made beforehand."""

    def __init__(self, count: int) -> None:
        pods = sorted((pod(index) for index in range(count)), key=_key)
        self.items = [json.dumps(each, separators=(",", ":")).encode() for each in pods]
        self.lists = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                target = head.split(b" ", 2)[1].decode()
                if not await self.answer(target, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, target: str, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection may be used again."""
        path, _, text = target.partition("?")
        query = dict(parse_qsl(text))
        if path == "/count":
            _send(writer, str(self.lists).encode())
            self.lists = 0
        elif query.get("watch", "").lower() == "true":
            return await self.watch(path.startswith("/expired"), query, writer)
        else:
            self.lists += 1
            _send(writer, self.page([] if path.startswith("/expired") else self.items, query))
        await writer.drain()
        return True

    def page(self, items: list[bytes], query: dict[str, str]) -> bytes:
        """One page of the list."""
        start, limit = int(query.get("continue", 0)), int(query.get("limit", 0)) or len(items)
        token = str(start + limit) if start + limit < len(items) else ""
        meta = json.dumps({"resourceVersion": "200000", "continue": token})
        chunk = b",".join(items[start : start + limit])
        return b'{"kind":"PodList","apiVersion":"v1","metadata":%s,"items":[%s]}' % (meta.encode(), chunk)

    async def watch(self, expired: bool, query: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        """A watch: 410, or the initial list if asked for, and then silence."""
        if expired:
            body = b'{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old"}'
            writer.write(
                b"HTTP/1.1 410 Gone\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
            )
            writer.write(body)
            await writer.drain()
            return True
        writer.write(HEAD + b"connection: close\r\n\r\n")
        if query.get("sendInitialEvents") == "true":
            for item in self.items:
                writer.write(b'{"type":"ADDED","object":' + item + b"}\n")
                await writer.drain()
            meta = b'{"resourceVersion":"200000","annotations":{"k8s.io/initial-events-end":"true"}}'
            writer.write(b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":' + meta + b"}}\n")
        await writer.drain()
        await asyncio.sleep(3600)
        return False


def _key(raw: dict) -> tuple[str, str]:
    return raw["metadata"]["namespace"], raw["metadata"]["name"]


def _send(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)


async def main(count: int) -> None:
    """Serve until killed."""
    hollow = HollowServer(count)
    server = await asyncio.start_server(hollow.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], sum(map(len, hollow.items)), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
