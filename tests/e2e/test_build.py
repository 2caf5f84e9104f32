"""What builds the API servers of other versions, without building one."""

from e2e.build import folder, go_mod_of, missing

PUBLISHED = """\
module k8s.io/kubernetes

go 1.24.0

godebug default=go1.24

require (
\tgithub.com/blang/semver/v4 v4.0.0
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kube-scheduler => ./staging/src/k8s.io/kube-scheduler
)
"""


def test_the_modules_of_a_version_are_pinned_to_it():
    assert go_mod_of("v1.34.4", PUBLISHED).splitlines() == [
        "module skysail/controlplane",
        "go 1.24.0",
        "godebug default=go1.24",
        "require k8s.io/kubernetes v1.34.4",
        "replace k8s.io/api => k8s.io/api v0.34.4",
        "replace k8s.io/kube-scheduler => k8s.io/kube-scheduler v0.34.4",
    ]


def test_of_other_versions_only_the_api_server_is_wanted(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert missing() == ["kube-apiserver", "kube-scheduler", "kube-controller-manager", "etcd"]
    assert missing("v1.34.4") == ["kube-apiserver"]
    folder("v1.34.4").mkdir(parents=True)
    (folder("v1.34.4") / "kube-apiserver").touch()
    assert missing("v1.34.4") == []
