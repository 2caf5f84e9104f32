import base64
import os

import pytest
import yaml

from skysail.api.errors import ConfigError
from skysail.client import kubeconfig
from skysail.client.credentials import ClientCertificate
from skysail.client.locate import locate
from skysail.simulator.clock import WallClock

CA = b"-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"


def encoded(data):
    return base64.b64encode(data).decode()


def config(**changes):
    """A kubeconfig of one cluster, one user and one context; a change replaces one of the three or the current name."""
    cluster = changes.get("cluster", {"server": "https://one:6443", "certificate-authority-data": encoded(CA)})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": changes.get("current", "c"),
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": changes.get("user", {"token": "t"})}],
        "contexts": [{"name": "c", "context": changes.get("context", {"cluster": "k", "user": "u"})}],
    }


@pytest.fixture
def write(tmp_path):
    def write(content, name="config"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return str(file)

    return write


async def shown(loaded):
    """The credential a server is shown."""
    return await loaded.credentials.current(WallClock())


async def test_the_current_context_gives_server_trust_token_and_namespace(write):
    loaded = kubeconfig.load(write(config(context={"cluster": "k", "user": "u", "namespace": "team"})))
    assert (loaded.server, loaded.ca_data, loaded.namespace) == ("https://one:6443", CA, "team")
    assert (await shown(loaded)).authorization == "Bearer t"


async def test_another_context_can_be_asked_for(write):
    content = config()
    content["contexts"].append({"name": "d", "context": {"cluster": "k", "user": ""}})
    loaded = kubeconfig.load(write(content), context="d")
    assert (loaded.namespace, (await shown(loaded)).authorization) == ("default", "")


async def test_of_several_files_the_first_to_name_a_thing_counts(write):
    first = config(user={"token": "first"}, current="")
    second = config(user={"token": "second"}, cluster={"server": "https://two"})
    second["clusters"].append({"name": "other", "cluster": {"server": "https://other"}})
    second["contexts"].append({"name": "mixed", "context": {"cluster": "other", "user": "u"}})
    listed = os.pathsep.join((write(first, "a/config"), "/nowhere/config", write(second, "b/config")))
    loaded = kubeconfig.load(environ={"KUBECONFIG": listed})
    assert (loaded.server, (await shown(loaded)).authorization) == ("https://one:6443", "Bearer first")
    mixed = kubeconfig.load(environ={"KUBECONFIG": listed}, context="mixed")
    assert (mixed.server, (await shown(mixed)).authorization) == ("https://other", "Bearer first")


def test_without_a_word_the_file_in_the_home_directory_counts(write, tmp_path):
    write(config(), ".kube/config")
    assert kubeconfig.load(environ={"HOME": str(tmp_path)}).server == "https://one:6443"


async def test_files_are_named_relative_to_the_kubeconfig(write, tmp_path):
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (tmp_path / name).write_text(name)
    (tmp_path / "token").write_text("from-file\n")
    user = {"client-certificate": "tls.crt", "client-key": "tls.key", "tokenFile": "token", "token": "fallback"}
    loaded = kubeconfig.load(write(config(cluster={"server": "x:1", "certificate-authority": "ca.crt"}, user=user)))
    assert (loaded.server, loaded.ca_data) == ("https://x:1", b"ca.crt")
    credential = await shown(loaded)
    assert credential.authorization == "Bearer from-file"
    assert credential.certificate == ClientCertificate(b"tls.crt", b"tls.key")


async def test_embedded_data_counts_before_files(write):
    user = {
        "client-certificate": "/nowhere",
        "client-certificate-data": encoded(b"cert"),
        "client-key-data": encoded(b"key"),
    }
    cluster = {"server": "https://x", "certificate-authority": "/nowhere", "certificate-authority-data": encoded(CA)}
    loaded = kubeconfig.load(write(config(cluster=cluster, user=user)))
    assert loaded.ca_data == CA
    assert (await shown(loaded)).certificate == ClientCertificate(b"cert", b"key")


async def test_a_password_is_shown_as_basic_authorization(write):
    loaded = kubeconfig.load(write(config(user={"username": "me", "password": "secret"})))
    assert (await shown(loaded)).authorization == "Basic " + encoded(b"me:secret")


def test_tls_options_and_impersonation_are_read(write):
    cluster = {"server": "https://x", "insecure-skip-tls-verify": True, "tls-server-name": "name"}
    user = {"token": "t", "as": "bob", "as-groups": ["a", "b"], "as-uid": "7", "as-user-extra": {"Scope/x": ["y"]}}
    loaded = kubeconfig.load(write(config(cluster=cluster, user=user)))
    assert (loaded.insecure, loaded.tls_server_name) == (True, "name")
    assert loaded.headers == (
        ("impersonate-user", "bob"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "a"),
        ("impersonate-group", "b"),
        ("impersonate-extra-scope%2Fx", "y"),
    )


EXEC = {"command": "get-token", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("content", "path", "message"),
    [
        (config(current=""), "current-context", "no context is current"),
        (config(current="x"), "contexts", "there is no context 'x'; known: c"),
        (config(context={"cluster": "x", "user": "u"}), "clusters", "there is no cluster 'x'; known: k"),
        (config(context={"user": "u"}), "contexts[0].context.cluster", "names no cluster"),
        (config(context=None), "contexts[0].context", "is empty"),
        (config(cluster={}), "clusters[0].cluster.server", "is missing"),
        (config(cluster={"server": 5}), "clusters[0].cluster.server", "Expected `str`, got `int`"),
        (
            config(cluster={"server": "x", "proxy-url": "y"}),
            "clusters[0].cluster.proxy-url",
            "proxies are not supported",
        ),
        (
            config(cluster={"server": "x", "certificate-authority": "/nowhere"}),
            "clusters[0].cluster.certificate-authority",
            "'/nowhere' cannot be read",
        ),
        (
            config(cluster={"server": "x", "certificate-authority-data": "*"}),
            "clusters[0].cluster.certificate-authority-data",
            "is not base64",
        ),
        (
            config(cluster={"server": "x", "certificate-authority-data": "YQ==", "insecure-skip-tls-verify": True}),
            "clusters[0].cluster.insecure-skip-tls-verify",
            "cannot be combined",
        ),
        (config(user={"client-key-data": "YQ=="}), "users[0].user.client-certificate", "this one is missing"),
        (config(user={"client-certificate-data": "YQ=="}), "users[0].user.client-key", "this one is missing"),
        (config(user={"auth-provider": {"name": "gcp"}}), "users[0].user.auth-provider", "use `exec`"),
        (config(user={"exec": {**EXEC, "command": ""}}), "users[0].user.exec.command", "is missing"),
        (config(user={"exec": {**EXEC, "args": "x"}}), "users[0].user.exec.args", "Expected `array | null`"),
        (
            config(user={"exec": {**EXEC, "apiVersion": "v1alpha1"}}),
            "users[0].user.exec.apiVersion",
            "'v1alpha1' is not supported",
        ),
        (
            config(user={"exec": {**EXEC, "interactiveMode": ""}}),
            "users[0].user.exec.interactiveMode",
            "must be one of Never, IfAvailable, Always",
        ),
        ("a: [", "", "line 2: no YAML"),
        ("- a", "", "Expected `object`, got `array`"),
        ("", "current-context", "no context is current"),
    ],
)
def test_what_cannot_be_used_is_named_with_file_and_field(write, content, path, message):
    file = write(content)
    with pytest.raises(ConfigError) as raised:
        kubeconfig.load(file)
    assert (raised.value.file, raised.value.path) == (file, path)
    assert message in raised.value.message


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"/nowhere/config: cannot be read"):
        kubeconfig.load("/nowhere/config")
    with pytest.raises(ConfigError, match=r"\.kube/config: there is no such kubeconfig"):
        kubeconfig.load(environ={"HOME": str(tmp_path)})


def service_account(directory):
    directory.mkdir()
    for name, text in {"token": "pod-token", "ca.crt": "ca", "namespace": "team\n"}.items():
        (directory / name).write_text(text)
    return directory


async def test_a_pod_without_a_kubeconfig_uses_its_service_account(tmp_path):
    account = service_account(tmp_path / "account")
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    located = locate(environ=environ, service_account=account)
    assert (located.server, located.ca_data, located.namespace) == ("https://[fd00::1]:443", b"ca", "team")
    assert (await shown(located)).authorization == "Bearer pod-token"


def test_a_kubeconfig_counts_before_the_service_account(write, tmp_path):
    account = service_account(tmp_path / "account")
    environ = {
        "KUBECONFIG": write(config()),
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
    }
    assert locate(environ=environ, service_account=account).server == "https://one:6443"


def test_a_service_account_that_is_not_mounted_is_named(tmp_path):
    from skysail.client import incluster

    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match=r"ca\.crt: the service account is not mounted"):
        incluster.load(environ, tmp_path)
    with pytest.raises(ConfigError, match="not in a cluster"):
        incluster.load({}, tmp_path)
