"""A real control plane on loopback: etcd and kube-apiserver with TLS, a token file and RBAC.

On request its scheduler and controller manager too. Everything lives in one folder and ends with `stop`.
"""

import base64
import contextlib
import http.client
import json
import secrets
import signal
import socket
import ssl
import subprocess
import threading
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from e2e.build import folder
from skysail.api.raw import Raw
from skysail.apiserver.certificates import make_serving_certificate
from skysail.simulator.clock import WallClock

HOST = "127.0.0.1"
_START_SECONDS = 60.0
_LAST = ("kube-apiserver", "etcd")


def free_port() -> int:
    """A port that is free, and that no client is given for its own end while a killed server is away."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)  # systems deal out higher ones
        with contextlib.suppress(OSError), socket.create_server((HOST, port)):
            return port


@dataclass
class ControlPlane:
    """The processes, and how to reach them.

    Attributes:
        root: Certificates, tokens, logs and etcd's data lie here.
        version: Of kube-apiserver, as it was built; the pinned one when empty. Everything else is of the pinned one.
        addresses: IP addresses to be reached at, beside loopback.
        processes: By name; alive until `kill` or `stop`.
    """

    root: Path
    version: str = ""
    port: int = field(default_factory=free_port)
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    users: dict[str, tuple[str, str]] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._etcd_client, self._etcd_peer = free_port(), free_port()
        certificate = make_serving_certificate((HOST, "localhost", *self.addresses), WallClock().now())
        self.ca = certificate.ca
        (self.root / "ca.crt").write_bytes(certificate.ca)
        (self.root / "tls.crt").write_bytes(certificate.certificate)
        (self.root / "tls.key").write_bytes(certificate.key)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (self.root / "service-account.key").write_bytes(pem)
        self.add_user(self.token, "admin", "system:masters")

    @property
    def url(self) -> str:
        """Where kube-apiserver listens."""
        return f"https://{HOST}:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self.kubeconfig_for(self.token, "admin")

    def add_user(self, token: str, name: str, groups: str) -> None:
        """Let a token stand for a user; before `start_apiserver`."""
        self.users[token] = (name, groups)
        rows = (f'{token},{user},,"{members}"' for token, (user, members) in self.users.items())
        (self.root / "tokens.csv").write_text("\n".join(rows) + "\n")

    def kubeconfig_for(self, token: str, name: str) -> Path:
        """A kubeconfig for one user."""
        return self.write_kubeconfig(name, {"token": token})

    def write_kubeconfig(self, name: str, user: Raw, *, host: str = HOST, port: int = 0, **cluster: str) -> Path:
        """A kubeconfig as somebody wants it.

        Args:
            name: Of the user, and of the file.
            user: The user's entry, as in the file.
            host: Where to reach the server.
            port: Where to reach the server, if not on its own port.
            cluster: The cluster's entry, beside the server; the authority's certificate when empty.
        """
        path = self.root / f"{name}.kubeconfig"
        known = cluster or {"certificate-authority-data": base64.b64encode(self.ca).decode()}
        cluster = {"server": f"https://{host}:{port or self.port}", **known}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": name}}],
            "current-context": "real",
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def start(self) -> None:
        """Start etcd and kube-apiserver, and wait until it is ready."""
        self.start_etcd()
        self.start_apiserver()

    def start_etcd(self) -> None:
        """Start etcd, on its data as it stands."""
        client, peer = f"http://{HOST}:{self._etcd_client}", f"http://{HOST}:{self._etcd_peer}"
        self.run(
            "etcd",
            f"--data-dir={self.root / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )

    def compact(self) -> None:
        """Let etcd forget all history."""
        status = json.loads(self._ask_etcd("maintenance/status", {}))
        self._ask_etcd("kv/compaction", {"revision": status["header"]["revision"], "physical": True})

    def _ask_etcd(self, path: str, body: Raw) -> bytes:
        url = f"http://{HOST}:{self._etcd_client}/v3/{path}"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return bytes(answer.read())

    def start_apiserver(self, *options: str) -> None:
        """Start kube-apiserver and wait until `/readyz` says ok."""
        self.run(
            "kube-apiserver",
            f"--etcd-servers=http://{HOST}:{self._etcd_client}",
            f"--bind-address={'0.0.0.0' if self.addresses else HOST}",
            f"--advertise-address={HOST}",
            f"--secure-port={self.port}",
            f"--tls-cert-file={self.root / 'tls.crt'}",
            f"--tls-private-key-file={self.root / 'tls.key'}",
            f"--token-auth-file={self.root / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--anonymous-auth=false",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.root / 'service-account.key'}",
            f"--service-account-signing-key-file={self.root / 'service-account.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            "--disable-admission-plugins=ServiceAccount",
            f"--audit-log-path={self.root / 'audit.log'}",
            f"--audit-policy-file={self._audit_policy()}",
            "--max-requests-inflight=3000",
            "--max-mutating-requests-inflight=1000",
            *options,
        )
        self._wait_ready()

    def start_scheduler(self, config: Path | None = None, *options: str) -> None:
        """Start the real kube-scheduler."""
        chosen = (f"--config={config}",) if config is not None else (f"--kubeconfig={self.kubeconfig}",)
        self.run("kube-scheduler", *chosen, "--secure-port=0", *options)

    def start_controller_manager(self, controllers: str = "*", *options: str) -> None:
        """Start the real kube-controller-manager with the named controllers."""
        self.run(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            "--secure-port=0",
            "--leader-elect=false",
            f"--controllers={controllers}",
            f"--service-account-private-key-file={self.root / 'service-account.key'}",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            *options,
        )

    def run(self, name: str, *arguments: str) -> None:
        """Start one binary, its output in `NAME.log`."""
        with (self.root / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(self._binary(name)), *arguments], stdout=log, stderr=subprocess.STDOUT, cwd=self.root
            )

    def _binary(self, name: str) -> Path:
        return folder(self.version if name == "kube-apiserver" else "") / name

    def kill(self, name: str) -> None:
        """End one process as `kill -9` does."""
        process = self.processes.pop(name)
        process.kill()
        process.wait(20)

    def stop(self) -> None:
        """End everything; kube-apiserver last but one, because it will not end without etcd."""
        for name in sorted(self.processes, key=lambda name: _LAST.index(name) if name in _LAST else -1):
            process = self.processes.pop(name)
            process.send_signal(signal.SIGTERM if name != "etcd" else signal.SIGKILL)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(15)

    def log_tail(self, name: str, lines: int = 20) -> str:
        """The end of a process's log."""
        return "\n".join((self.root / f"{name}.log").read_text(errors="replace").splitlines()[-lines:])

    def _audit_policy(self) -> Path:
        path = self.root / "audit-policy.yaml"
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"]}
        path.write_text(yaml.safe_dump({**policy, "rules": [{"level": "Metadata"}]}))
        return path

    def _wait_ready(self) -> None:
        context = ssl.create_default_context(cadata=self.ca.decode())
        pause, ended = threading.Event(), self.processes["kube-apiserver"]
        for _ in range(int(_START_SECONDS / 0.1)):
            if ended.poll() is not None:
                raise AssertionError(f"kube-apiserver ended:\n{self.log_tail('kube-apiserver')}")
            try:
                connection = http.client.HTTPSConnection(HOST, self.port, timeout=5, context=context)
                connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {self.token}"})
                status = connection.getresponse().status
                connection.close()
            except OSError:
                status = 0
            if status == 200:
                return
            pause.wait(0.1)
        raise AssertionError(f"kube-apiserver never became ready:\n{self.log_tail('kube-apiserver')}")
