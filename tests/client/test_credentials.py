import logging
import stat
import sys
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from skysail.api.errors import ConfigError, Unreachable
from skysail.client import execplugin
from skysail.client.credentials import FileCredentials, Renewed
from skysail.client.execplugin import ExecPlugin
from skysail.client.rotation import Rotated, token_in
from skysail.simulator.clock import WallClock

V1, V1BETA1 = execplugin.API_VERSIONS


def token_file(path, fallback=None):
    return FileCredentials(Rotated(lambda: token_in(path, "conf"), fallback))


class StoppedClock:
    """A clock that moves when told."""

    def __init__(self):
        self.seconds = 1000.0

    def monotonic(self):
        return self.seconds

    def now(self):
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)


async def test_a_token_file_is_read_again_every_minute(tmp_path):
    file, clock = tmp_path / "token", StoppedClock()
    file.write_text("one\n")
    source = token_file(file)
    first = await source.current(clock)
    file.write_text("two")
    clock.seconds += 59
    assert await source.current(clock) is first
    clock.seconds += 1
    assert (await source.current(clock)).authorization == "Bearer two"


async def test_an_unchanged_token_stays_the_same_credential(tmp_path):
    file, clock = tmp_path / "token", StoppedClock()
    file.write_text("one")
    source = token_file(file)
    first = await source.current(clock)
    assert await source.current(clock, rejected=first) is first


async def test_a_token_file_that_vanishes_for_a_moment_is_survived(tmp_path, caplog):
    file, clock = tmp_path / "token", StoppedClock()
    file.write_text("one")
    source = token_file(file)
    first = await source.current(clock)
    file.unlink()
    clock.seconds += 60
    with caplog.at_level(logging.WARNING):
        assert await source.current(clock) is first
    assert "keeping what it held" in caplog.text


async def test_a_token_file_that_is_empty_for_a_moment_is_survived(tmp_path):
    file, clock = tmp_path / "token", StoppedClock()
    file.write_text("one")
    source = token_file(file)
    first = await source.current(clock)
    file.write_text("")
    clock.seconds += 60
    assert await source.current(clock) is first
    assert await source.current(clock, rejected=first) is first


async def test_a_file_that_stays_bad_is_complained_of_once(tmp_path, caplog):
    file, clock = tmp_path / "token", StoppedClock()
    file.write_text("one")
    source = token_file(file)
    first = await source.current(clock)
    file.write_text("")
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            await source.current(clock, rejected=first)
    assert len(caplog.records) == 1


async def test_a_token_file_that_never_was_is_an_error_unless_there_is_a_fallback(tmp_path):
    clock, missing = StoppedClock(), tmp_path / "missing"
    with pytest.raises(ConfigError, match=r"^conf: the token file .*missing cannot be read"):
        await token_file(missing).current(clock)
    assert (await token_file(missing, "spare").current(clock)).authorization == "Bearer spare"
    missing.write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        await token_file(missing).current(clock)


@pytest.fixture
def plugin(tmp_path):
    """A plugin that runs some Python code, which may `answer(**status)`."""
    count = tmp_path / "runs"

    def make(code="answer(token='t')", **options):
        script = tmp_path / "plugin"
        script.write_text(
            f"#!{sys.executable}\n"
            "import json, os, sys\n"
            f"with open({str(count)!r}, 'a') as runs: runs.write('x')\n"
            "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
            "def answer(api_version=info['apiVersion'], kind='ExecCredential', **status):\n"
            "    print(json.dumps({'apiVersion': api_version, 'kind': kind, 'status': status}))\n"
            f"{code}\n"
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return ExecPlugin("./plugin", directory=tmp_path, file="conf", path="users[0].user.exec", **options)

    make.runs = lambda: len(count.read_text())
    return make


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_plugin_gives_a_token_and_is_run_once(plugin, version):
    source = Renewed(plugin(api_version=version))
    first = await source.current(WallClock())
    assert first.authorization == "Bearer t"
    assert await source.current(WallClock()) is first
    assert plugin.runs() == 1
    await source.current(WallClock(), rejected=first)
    assert plugin.runs() == 2


async def test_a_plugin_is_run_again_shortly_before_its_credential_expires(plugin):
    clock = StoppedClock()
    expires = clock.now() + timedelta(seconds=100)
    code = f"answer(token='t', expirationTimestamp={expires.isoformat().replace('+00:00', 'Z')!r})"
    source = Renewed(plugin(code))
    await source.current(clock)
    clock.seconds += 89
    await source.current(clock)
    assert plugin.runs() == 1
    clock.seconds += 1
    await source.current(clock)
    assert plugin.runs() == 2


async def test_a_plugin_may_give_a_certificate(plugin):
    source = Renewed(plugin("answer(clientCertificateData='C', clientKeyData='K')"))
    certificate = (await source.current(WallClock())).certificate
    assert (certificate.certificate, certificate.key) == (b"C", b"K")


async def test_a_plugin_is_told_what_it_asked_for(plugin):
    code = "answer(token='|'.join([sys.argv[1], os.environ['EXTRA'], json.dumps(info, sort_keys=True)]))"
    cluster = {"server": "https://x"}
    made = plugin(code, arguments=("arg",), environment={"EXTRA": "more"}, cluster=cluster, interactive_mode="Never")
    argument, extra, info = (await Renewed(made).current(WallClock())).authorization[7:].split("|")
    assert (argument, extra) == ("arg", "more")
    assert msgspec.json.decode(info) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://x"}},
    }


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('hello')", r"^conf: users\[0\]\.user\.exec: the plugin did not print an ExecCredential"),
        ("answer(api_version='v2', token='t')", r"exec\.apiVersion: the plugin printed v2 ExecCredential, not client"),
        ("answer()", "neither a token nor a certificate"),
        ("answer(clientCertificateData='C')", "a certificate without its key"),
    ],
)
async def test_a_plugin_that_answers_nonsense_is_named(plugin, code, message):
    with pytest.raises(ConfigError, match=message):
        await plugin(code).make(WallClock())


async def test_a_plugin_that_fails_may_succeed_another_time(plugin):
    with pytest.raises(Unreachable, match="failed with exit code 3: no network"):
        await plugin("sys.exit(print('no network', file=sys.stderr) or 3)").make(WallClock())


async def test_a_plugin_that_hangs_is_killed(plugin, monkeypatch):
    monkeypatch.setattr(execplugin, "PLUGIN_SECONDS", 0.2)
    with pytest.raises(Unreachable, match="no answer in"):
        await plugin("import time; time.sleep(60)").make(WallClock())


async def test_a_missing_plugin_says_how_to_install_it(tmp_path):
    plugin = ExecPlugin("no-such-command", install_hint="get it at example.com", file="conf", path="exec")
    with pytest.raises(ConfigError, match=r"^conf: exec\.command: .*cannot be run.*; get it at example\.com"):
        await plugin.make(WallClock())


async def test_a_plugin_that_must_ask_the_user_needs_a_terminal(plugin):
    with pytest.raises(ConfigError, match=r"exec\.interactiveMode: the plugin needs a terminal"):
        await plugin(interactive_mode="Always").make(WallClock())
