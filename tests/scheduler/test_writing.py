import pytest

from skysail.scheduler.config.defaults import EXTENSION_POINTS
from skysail.scheduler.config.resolve import load_configuration
from skysail.scheduler.config.writing import to_document, to_yaml
from skysail.scheduler.framework.feature_gates import DEFAULT_GATES

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "percentageOfNodesToScore: 0\nprofiles: [{schedulerName: a}, {schedulerName: b, percentageOfNodesToScore: 7}]",
        "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 9}]},"
        " filter: {disabled: [{name: '*'}]}}}]",
        "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 0}},"
        " {name: Mine, args: {a: [1]}}]}]",
    ],
)
def test_what_is_written_out_resolves_to_the_same(body):
    first = load_configuration(HEAD + body, DEFAULT_GATES, EXTENSION_POINTS)
    again = load_configuration(to_yaml(first), DEFAULT_GATES, EXTENSION_POINTS)
    assert again.profiles == first.profiles
    assert to_document(again) == to_document(first)


def test_an_unset_percentage_stays_unset():
    written = to_document(load_configuration(HEAD, DEFAULT_GATES, EXTENSION_POINTS))
    assert "percentageOfNodesToScore" not in written
