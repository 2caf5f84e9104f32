import asyncio
import datetime
import ipaddress
import ssl
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from skysail.api.errors import ConfigError, Unauthorized, Unreachable
from skysail.api.ports import Request
from skysail.client.config import ServerConfig
from skysail.client.credentials import (
    ClientCertificate,
    Credential,
    FileCredentials,
    MadeCredential,
    Renewed,
    StaticCredentials,
    bearer,
)
from skysail.client.http import HttpTransport, Lane, lane_of
from skysail.client.rotation import Rotated, token_in
from skysail.simulator.clock import WallClock

NOW = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def make_certificate(name, issuer=None, authority=False):
    """A certificate and its key, both PEM, and the objects to sign others with."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer_name, signer_key = (issuer[2].subject, issuer[3]) if issuer else (subject, key)
    names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW)
        .not_valid_after(NOW.replace(year=2100))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .sign(signer_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private, certificate, key


@pytest.fixture(scope="module")
def authority():
    return make_certificate("test authority", authority=True)


@pytest.fixture(scope="module")
def server_tls(authority, tmp_path_factory):
    """A server that accepts, and asks for, certificates of the authority."""
    certificate, key, *_ = make_certificate("server.test", authority)
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    file.write_bytes(certificate + key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority[0].decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # a server in Go is not strict either
    context.load_cert_chain(file)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@asynccontextmanager
async def listening(handler, tls=None):
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    server = TestServer(application, scheme="https" if tls else "http")
    await server.start_server(ssl=tls)
    try:
        yield str(server.make_url(""))
    finally:
        await server.close()


async def peer(http):
    """Says whose certificate it was shown."""
    shown = http.transport.get_extra_info("peercert") or {}
    return web.Response(text=dict(part[0] for part in shown.get("subject", ())).get("commonName", "nobody"))


@asynccontextmanager
async def connected(url, **config):
    transport = HttpTransport(ServerConfig(url, **config), clock=WallClock())
    try:
        yield transport
    finally:
        await transport.close()


async def ask(url, path="/who", times=1, method="GET", **config):
    async with connected(url, **config) as transport:
        return [(await transport.request(Request(method, path))) for _ in range(times)]


@pytest.fixture(params=["GET", "POST"])
def method(request):
    """Reads and writes travel over different code, and promise the same."""
    return request.param


async def test_a_server_of_the_given_authority_is_trusted(method, authority, server_tls):
    async with listening(peer, server_tls) as url:
        (response,) = await ask(url, method=method, ca_data=authority[0])
        assert response.body == b"nobody"


async def test_a_server_nobody_vouches_for_is_not_spoken_to(method, server_tls):
    stranger = make_certificate("stranger", authority=True)
    async with listening(peer, server_tls) as url:
        for trusted in (b"", stranger[0]):
            with pytest.raises(Unreachable, match=r"(?i)certificate"):
                await ask(url, method=method, ca_data=trusted)


async def test_verification_can_be_switched_off_and_the_expected_name_set(method, authority, server_tls):
    async with listening(peer, server_tls) as url:
        assert (await ask(url, method=method, insecure=True))[0].status == 200
        assert (await ask(url, method=method, ca_data=authority[0], tls_server_name="server.test"))[0].status == 200
        with pytest.raises(Unreachable, match=r"(?i)hostname|other\.test"):
            await ask(url, method=method, ca_data=authority[0], tls_server_name="other.test")


async def test_a_client_certificate_is_shown(method, authority, server_tls):
    certificate, key, *_ = make_certificate("alice", authority)
    credentials = StaticCredentials(certificate=ClientCertificate(certificate, key))
    async with listening(peer, server_tls) as url:
        (response,) = await ask(url, method=method, ca_data=authority[0], credentials=credentials)
        assert response.body == b"alice"


class Sequence:
    """Makes one credential after the other."""

    def __init__(self, *credentials, expires=None):
        self.left, self.made, self.expires = list(credentials), 0, expires

    async def make(self, clock):
        self.made += 1
        await asyncio.sleep(0)
        return MadeCredential(self.left.pop(0), self.expires)


async def test_a_renewed_certificate_is_shown_on_new_connections(method, authority, server_tls):
    async def refuse_alice(http):
        who = (await peer(http)).text
        return web.Response(status=401 if who == "alice" else 200, text=who)

    people = [make_certificate(name, authority)[:2] for name in ("alice", "bob")]
    maker = Sequence(*(Credential("", ClientCertificate(*pair), renewable=True) for pair in people))
    async with listening(refuse_alice, server_tls) as url:
        responses = await ask(url, method=method, times=2, ca_data=authority[0], credentials=Renewed(maker))
        assert [response.body for response in responses] == [b"bob", b"bob"]
        assert maker.made == 2


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ServerConfig("ftp://x"), "not the URL of a server"),
        (ServerConfig("https://"), "not the URL of a server"),
        (ServerConfig("https://[::1"), "not the URL of a server"),
        (ServerConfig("https://x:99999"), "not the URL of a server"),
        (ServerConfig("https://x:port"), "not the URL of a server"),
        (ServerConfig("https://x", ca_data=b"rubbish", source="f"), "^f: certificate-authority: no PEM certificates"),
    ],
)
async def test_a_config_that_cannot_work_is_refused_at_once(config, message):
    with pytest.raises(ConfigError, match=message):
        HttpTransport(config, clock=WallClock())


async def test_a_broken_client_certificate_is_refused(method, authority):
    credentials = StaticCredentials(certificate=ClientCertificate(b"rubbish", b"rubbish"))
    with pytest.raises(ConfigError, match="client-certificate: no PEM certificate with its key"):
        await ask("https://127.0.0.1:1", method=method, credentials=credentials)


async def test_a_refused_connection_is_unreachable(method):
    for scheme in ("http", "https"):
        with pytest.raises(Unreachable, match=rf"{method} {scheme}://127\.0\.0\.1:1/who: .*refused|failed") as caught:
            await ask(f"{scheme}://127.0.0.1:1", method=method)
        assert " object at " not in str(caught.value)


def token_file(path):
    return FileCredentials(Rotated(lambda: token_in(path, "conf")))


def only(token):
    """A server that accepts one token."""
    seen = []

    async def check(http):
        seen.append(http.headers.get("authorization"))
        status = 200 if seen[-1] == f"Bearer {token[0]}" else 401
        return web.Response(text='{"reason":"Unauthorized","message":"who?"}\n', status=status)

    return check, seen


async def test_a_rotated_token_file_is_read_again_after_a_401(method, tmp_path):
    file, accepted = tmp_path / "token", ["old"]
    file.write_text("old\n")
    check, seen = only(accepted)
    async with listening(check) as url, connected(url, credentials=token_file(file)) as transport:
        assert (await transport.request(Request(method, "/"))).status == 200
        file.write_text("new")
        accepted[0] = "new"
        assert (await transport.request(Request(method, "/"))).status == 200
        assert seen == ["Bearer old", "Bearer old", "Bearer new"]
        accepted[0] = "unknown"
        assert (await transport.request(Request(method, "/"))).status == 401
        assert len(seen) == 4, "the same token is not sent twice"


async def test_a_watch_renews_its_token_too(tmp_path):
    file, accepted = tmp_path / "token", ["new"]
    file.write_text("old")
    check, seen = only(accepted)
    async with listening(check) as url, connected(url, credentials=token_file(file)) as transport:
        with pytest.raises(Unauthorized, match="who"):
            await anext(transport.stream(Request("GET", "/")))
        file.write_text("new")
        assert len([line async for line in transport.stream(Request("GET", "/"))]) == 1
    assert seen == ["Bearer old", "Bearer old", "Bearer new"]


async def test_many_rejected_requests_make_one_new_credential(method):
    check, _ = only(["good"])
    maker = Sequence(Credential(bearer("bad"), renewable=True), Credential(bearer("good"), renewable=True))
    async with listening(check) as url, connected(url, credentials=Renewed(maker)) as transport:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(transport.request(Request(method, "/"))) for _ in range(8)]
        assert [task.result().status for task in tasks] == [200] * 8
        assert maker.made == 2


async def test_a_path_in_the_servers_url_comes_first_and_groups_are_separate_headers(method):
    async def show(http):
        return web.json_response([http.path, http.headers.getall("impersonate-group", [])])

    headers = (("impersonate-user", "u"), ("impersonate-group", "a"), ("impersonate-group", "b"))
    async with listening(show) as url:
        (response,) = await ask(f"{url}/k8s/clusters/c1/", "/api", method=method, headers=headers)
        assert response.body == b'["/k8s/clusters/c1/api", ["a", "b"]]'


@pytest.mark.parametrize(
    ("path", "lane"),
    [
        ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x", Lane.LEASES),
        ("/api/v1/namespaces/default/events", Lane.EVENTS),
        ("/api/v1/events", Lane.EVENTS),
        ("/apis/events.k8s.io/v1/namespaces/default/events/web.1", Lane.EVENTS),
        ("/api/v1/namespaces/default/pods/web/binding", Lane.MAIN),
        ("/api/v1/namespaces/default/pods/events/status", Lane.MAIN),
        ("/", Lane.MAIN),
    ],
)
def test_leases_and_events_have_lanes_of_their_own(path, lane):
    assert lane_of(Request("POST", path)) is lane


async def test_a_lease_is_renewed_while_every_other_connection_is_busy():
    release = asyncio.Event()

    async def serve(http):
        if "leases" not in http.path:
            await release.wait()
        return web.json_response({})

    async with listening(serve) as url, connected(url) as transport, asyncio.TaskGroup() as group:
        for number in range(Lane.MAIN.value + 8):
            group.create_task(transport.request(Request("POST", f"/api/v1/namespaces/d/pods/{number}/binding")))
        lease = Request("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l")
        assert (await transport.request(lease)).status == 200
        release.set()
