"""Certificates and tokens that somebody replaces while we run: the server is reached all the same."""

import logging
import socket
import ssl
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from aiohttp import web

from skysail.api.errors import Unreachable
from skysail.api.ports import Request
from skysail.client import incluster, kubeconfig
from skysail.client.http import HttpTransport, open_socket
from tests.client.test_http import listening, make_certificate, peer


class StoppedClock:
    """A clock that moves when told."""

    def __init__(self):
        self.seconds = 1000.0

    def monotonic(self):
        return self.seconds

    def now(self):
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)


class World:
    """An authority, a server of its, and a kubeconfig whose certificates are files."""

    def __init__(self, folder):
        self.folder, self.clock = folder, StoppedClock()
        self.authority = make_certificate("first authority", authority=True)
        (folder / "ca.crt").write_bytes(self.authority[0])
        self.be("alice")

    def be(self, name, authority=None):
        certificate, key, *_ = make_certificate(name, authority or self.authority)
        (self.folder / "tls.crt").write_bytes(certificate)
        (self.folder / "tls.key").write_bytes(key)

    def serving(self, authority=None, clients=None):
        """TLS of a server whose certificate the authority signed, and that asks for one."""
        certificate, key, *_ = make_certificate("server.test", authority or self.authority)
        file = self.folder / "server.pem"
        file.write_bytes(certificate + key)
        trusted = clients or self.authority
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=trusted[0].decode())
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # a server in Go is not strict either
        context.load_cert_chain(file)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def transport(self, url):
        cluster = {"server": url, "certificate-authority": "ca.crt"}
        user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
        content = {
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        }
        file = self.folder / "kubeconfig"
        file.write_text(yaml.safe_dump(content))
        return HttpTransport(kubeconfig.load(str(file)), clock=self.clock)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture(params=["GET", "POST"])
def body_of(request):
    """Asks by reading or by writing: the two go over connections of their own."""

    async def body_of(transport):
        return (await transport.request(Request(request.param, "/who"))).body

    return body_of


async def test_a_replaced_client_certificate_is_shown_within_a_minute(world, body_of):
    async with listening(peer, world.serving()) as url:
        transport = world.transport(url)
        assert await body_of(transport) == b"alice"
        world.be("bob")
        assert await body_of(transport) == b"alice"
        world.clock.seconds += 60
        assert await body_of(transport) == b"bob"
        await transport.close()


async def test_a_refused_client_certificate_is_looked_for_anew_at_once(world, body_of):
    async def refuse_alice(http):
        who = (await peer(http)).text
        return web.Response(status=401 if who == "alice" else 200, text=who)

    async with listening(refuse_alice, world.serving()) as url:
        transport = world.transport(url)
        assert (await transport.request(Request("GET", "/who"))).status == 401
        world.be("bob")
        assert await body_of(transport) == b"bob"
        await transport.close()


@pytest.mark.parametrize("harm", ["mismatched", "gone", "empty"])
async def test_a_pair_that_is_being_replaced_is_not_used_half(world, body_of, harm, caplog):
    async with listening(peer, world.serving()) as url:
        transport = world.transport(url)
        assert await body_of(transport) == b"alice"
        if harm == "mismatched":
            (world.folder / "tls.crt").write_bytes(make_certificate("bob", world.authority)[0])
        elif harm == "gone":
            (world.folder / "tls.key").unlink()
        else:
            (world.folder / "tls.crt").write_bytes(b"")
        world.clock.seconds += 60
        with caplog.at_level(logging.WARNING):
            assert await body_of(transport) == b"alice"
        assert "keeping what it held" in caplog.text
        world.be("bob")
        world.clock.seconds += 60
        assert await body_of(transport) == b"bob"
        await transport.close()


async def test_a_server_of_a_new_authority_is_trusted_once_the_file_names_it(world, body_of):
    second = make_certificate("second authority", authority=True)
    async with listening(peer, world.serving(second)) as url:
        transport = world.transport(url)
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await body_of(transport)
        (world.folder / "ca.crt").write_bytes(world.authority[0] + second[0])
        assert await body_of(transport) == b"alice", "a refusal makes it look again at once"
        await transport.close()


async def test_an_authority_that_was_removed_is_not_trusted_after_a_minute(world, body_of):
    second = make_certificate("second authority", authority=True)
    async with listening(peer, world.serving()) as url:
        transport = world.transport(url)
        assert await body_of(transport) == b"alice"
        (world.folder / "ca.crt").write_bytes(second[0])
        assert await body_of(transport) == b"alice"
        world.clock.seconds += 60
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await body_of(transport)
        await transport.close()


@pytest.mark.parametrize("content", [b"", b"rubbish", None])
async def test_authorities_that_cannot_be_read_leave_the_old_ones_trusted(world, body_of, content):
    async with listening(peer, world.serving()) as url:
        transport = world.transport(url)
        assert await body_of(transport) == b"alice"
        if content is None:
            (world.folder / "ca.crt").unlink()
        else:
            (world.folder / "ca.crt").write_bytes(content)
        world.clock.seconds += 60
        world.be("bob")
        assert await body_of(transport) == b"bob"
        await transport.close()


async def test_new_authorities_break_no_open_watch(world, body_of):
    lines = [b"one\n", b"two\n"]

    async def serve(http):
        response = web.StreamResponse()
        await response.prepare(http)
        for line in lines:
            await response.write(line)
        return response

    async with listening(serve, world.serving()) as url:
        transport = world.transport(url)
        watch = transport.stream(Request("GET", "/watch"))
        assert await anext(watch) == b"one"
        second = make_certificate("second authority", authority=True)
        (world.folder / "ca.crt").write_bytes(world.authority[0] + second[0])
        world.clock.seconds += 60
        await body_of(transport)
        assert await anext(watch) == b"two"
        await watch.aclose()
        await transport.close()


async def test_in_a_pod_the_authority_is_a_file_as_well(world, body_of):
    for name, text in {"token": "pod-token", "namespace": "team"}.items():
        (world.folder / name).write_text(text)
    second = make_certificate("second authority", authority=True)
    async with listening(peer, world.serving(second)) as url:
        host, port = url.removeprefix("https://").rstrip("/").split(":")
        environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        transport = HttpTransport(incluster.load(environ, world.folder), clock=world.clock)
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await body_of(transport)
        (world.folder / "ca.crt").write_bytes(second[0])
        assert await body_of(transport) == b"nobody"
        await transport.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system cannot be told so")
def test_a_connection_whose_other_end_is_gone_is_noticed_within_45_seconds():
    with open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        asked = [made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
                 for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")]  # fmt: skip
        assert asked[0] + asked[1] * asked[2] == 45
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 45_000
