"""Credentials from a command, as cloud providers ship them (client.authentication.k8s.io v1 and v1beta1).

The command is told its API version, whether it may ask the user, and (when wanted) which cluster it is for, in
`KUBERNETES_EXEC_INFO`; it prints an ExecCredential with a token or a certificate, and perhaps an expiry.

Source: k8s.io/client-go/plugin/pkg/client/auth/exec, v1.36.
"""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec

from skysail.api.errors import ConfigError, Unreachable
from skysail.api.ports import Clock
from skysail.api.raw import Raw
from skysail.client.credentials import ClientCertificate, Credential, MadeCredential, bearer

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
PLUGIN_SECONDS = 60.0
"""How long a plugin may take, unless it may ask the user."""


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _ExecStatus | None = None


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A plugin and how to run it; a `CredentialMaker`.

    Attributes:
        command: Looked up on the PATH, or relative to `directory` when it contains a slash.
        arguments: Its arguments.
        environment: The whole environment it runs in.
        api_version: One of `API_VERSIONS`.
        interactive_mode: One of `INTERACTIVE_MODES`: whether it may use the terminal.
        install_hint: What to tell the user when the command is missing.
        cluster: What it is told about the cluster; None when it did not ask.
        directory: Where the kubeconfig lies.
        file: The kubeconfig, for messages.
        path: The field in it, for messages.
    """

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    api_version: str = API_VERSIONS[0]
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    cluster: Raw | None = None
    directory: Path = Path()
    file: str = ""
    path: str = ""

    async def make(self, clock: Clock) -> MadeCredential:
        """Run the plugin.

        Raises:
            ConfigError: The command is missing, may not run here, or answers nonsense.
            Unreachable: It failed or took too long; another time it may succeed.
        """
        return self._read(await self._run())

    async def _run(self) -> bytes:
        interactive = self.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self.interactive_mode == "Always" and not interactive:
            raise self._wrong("the plugin needs a terminal to ask the user, and there is none", "interactiveMode")
        try:
            process = await asyncio.create_subprocess_exec(
                self._program(),
                *self.arguments,
                env={**self.environment, "KUBERNETES_EXEC_INFO": self._info(interactive)},
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"; {self.install_hint.strip()}" if self.install_hint else ""
            raise self._wrong(f"{self.command!r} cannot be run: {error.strerror}{hint}", "command") from error
        try:
            async with asyncio.timeout(None if interactive else PLUGIN_SECONDS):
                output, complaint = await process.communicate()
        except TimeoutError as error:
            raise Unreachable(f"credential plugin {self.command!r}: no answer in {PLUGIN_SECONDS:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            said = (complaint or b"").decode("utf-8", "replace").strip()[-1024:]
            raise Unreachable(f"credential plugin {self.command!r} failed with exit code {process.returncode}: {said}")
        return output

    def _program(self) -> str:
        return str(self.directory / self.command) if "/" in self.command else self.command

    def _info(self, interactive: bool) -> str:
        spec: Raw = {"interactive": interactive}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(info).decode()

    def _read(self, output: bytes) -> MadeCredential:
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.DecodeError as error:
            raise self._wrong(f"the plugin did not print an ExecCredential: {error}") from error
        if answer.api_version != self.api_version or answer.kind != "ExecCredential":
            got = f"{answer.api_version} {answer.kind}"
            raise self._wrong(f"the plugin printed {got}, not {self.api_version} ExecCredential", "apiVersion")
        status = answer.status or _ExecStatus()
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._wrong("the plugin gave a certificate without its key, or a key without a certificate")
        if not status.token and not status.client_certificate_data:
            raise self._wrong("the plugin gave neither a token nor a certificate")
        certificate = None
        if status.client_certificate_data:
            certificate = ClientCertificate(status.client_certificate_data.encode(), status.client_key_data.encode())
        expires = status.expiration_timestamp.timestamp() if status.expiration_timestamp else None
        return MadeCredential(Credential(bearer(status.token), certificate, renewable=True), expires)

    def _wrong(self, message: str, field_name: str = "") -> ConfigError:
        path = f"{self.path}.{field_name}" if field_name else self.path
        return ConfigError(message, file=self.file, path=path)
