import asyncio
import os
import signal

import pytest
import yaml
from typer.testing import CliRunner

from skysail.api.errors import ConfigError
from skysail.cli.main import app
from skysail.cli.scheduler import _run_until_stopped, parse_feature_gates
from skysail.scheduler.consistency import Differences


def run(*args: str):
    return CliRunner().invoke(app, ["scheduler", *args])


def test_the_configuration_is_written_out_and_nothing_is_started(tmp_path):
    target = tmp_path / "full.yaml"
    result = run("--write-config-to", str(target))
    assert result.exit_code == 0
    written = yaml.safe_load(target.read_text())
    assert written["kind"] == "KubeSchedulerConfiguration"
    assert written["profiles"][0]["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--config", "/nowhere/sky.yaml"], "cannot be read"),
        (["--feature-gates", "GangScheduling"], "Name=true or Name=false is wanted"),
        (["--plugin", "no_such_module:Plugin"], "cannot be loaded"),
        (["--bind-address", "0.0.0.0"], "not loopback"),
        (["--write-config-to", "/nowhere/full.yaml"], "cannot be written"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_started(args, said):
    with pytest.raises(ConfigError, match=said):
        raise run(*args).exception


def test_a_wrong_field_is_named_with_file_and_path(tmp_path):
    config = tmp_path / "sky.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{plugin: {}}]\n"
    )
    with pytest.raises(ConfigError) as caught:
        raise run("--config", str(config)).exception
    assert str(caught.value).startswith(f"{config}: profiles[0].plugin: unknown field")


def test_a_plugin_of_the_working_directory_is_found(tmp_path, monkeypatch):
    (tmp_path / "of_here_only.py").write_text("class Mine:\n    name = 'Mine'\n    def filter(self): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path.parent))  # what the command adds is taken off again afterwards
    assert run("--plugin", "of_here_only:Mine", "--write-config-to", "full.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("names", "configured", "lease"),
    [
        (["default-scheduler"], "", "kube-scheduler"),
        (["sky-packing", "default-scheduler"], "", "kube-scheduler"),
        (["sky-packing", "sky-spreading"], "", "sky-packing"),
        (["sky-packing"], "mine", "mine"),
    ],
)
def test_a_second_scheduler_does_not_take_the_first_ones_lease(names, configured, lease, tmp_path):
    text = yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": name} for name in names],
            **({"leaderElection": {"resourceName": configured}} if configured else {}),
        }
    )
    (tmp_path / "sky.yaml").write_text(text)
    assert run("--config", str(tmp_path / "sky.yaml"), "--write-config-to", str(tmp_path / "full.yaml")).exit_code == 0
    full = yaml.safe_load((tmp_path / "full.yaml").read_text())
    assert full["leaderElection"]["resourceName"] == lease


class Quiet:
    """A scheduler that only runs until it is asked to stop, and has something to report."""

    def __init__(self) -> None:
        self.stopping, self.compared = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        await self.stopping.wait()

    def stop(self) -> None:
        self.stopping.set()

    def compare_caches(self) -> Differences:
        self.compared.set()
        return Differences(missed_pods=("default/a", "default/b"))


def test_on_sigusr2_it_says_where_cache_and_informers_disagree_and_when_cancelled_it_stops_in_order(capsys):
    async def main() -> None:
        scheduler = Quiet()
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            task = group.create_task(_run_until_stopped(scheduler))
            await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGUSR2)
            await scheduler.compared.wait()
            task.cancel()
            await scheduler.stopping.wait()

    asyncio.run(main())
    assert capsys.readouterr().err == ("skysail: cache and informers disagree: missed_pods: default/a, default/b\n")


def test_feature_gates_are_read(capsys):
    assert parse_feature_gates("GangScheduling=true, SidecarContainers=False,") == {
        "GangScheduling": True, "SidecarContainers": False,
    }  # fmt: skip
    assert capsys.readouterr().err == ""


def test_a_gate_that_changes_nothing_is_warned_of(capsys):
    assert parse_feature_gates("GangSchedulng=true,Other=false") == {"GangSchedulng": True, "Other": False}
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("GangSchedulng changes nothing in this scheduler; did you mean GangScheduling?")
    assert second.endswith("Other changes nothing in this scheduler")
