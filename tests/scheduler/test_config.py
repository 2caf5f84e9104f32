import pytest

from skysail.api.errors import ConfigError
from skysail.scheduler.config.decode import decode_configuration
from skysail.scheduler.config.defaults import EXTENSION_POINTS
from skysail.scheduler.config.durations import parse_duration
from skysail.scheduler.config.resolve import load_configuration
from skysail.scheduler.framework.feature_gates import DEFAULT_GATES, feature_gates

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def load(body: str = "", points=EXTENSION_POINTS, gates=DEFAULT_GATES):
    return load_configuration(HEAD + body, gates, points, file="sky.yaml")


def refused(body: str, points=EXTENSION_POINTS) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(body, points)
    return caught.value


def test_a_fault_names_the_file_the_path_and_what_is_accepted():
    error = refused("profiles: [{plugins: {score: {enabled: [{name: NodeAffinity}, {nam: x}]}}}]")
    assert str(error) == (
        "sky.yaml: profiles[0].plugins.score.enabled[1].nam: unknown field; accepted here: name, weight"
    )


def test_a_wrong_type_is_named_with_its_index():
    error = refused("profiles: [{}, {percentageOfNodesToScore: many}]")
    assert error.path == "profiles[1].percentageOfNodesToScore"
    assert error.message == "Expected int, got str"


def test_all_faults_of_a_file_are_told_at_once():
    error = refused("parallelism: 0\npercentageOfNodesToScore: 101")
    assert "parallelism" in str(error)
    assert "percentageOfNodesToScore" in str(error)


def test_a_key_given_twice_is_refused():
    assert "given twice" in str(refused("parallelism: 1\nparallelism: 2"))


def test_anchors_aliases_and_merge_keys_are_read_and_what_is_given_here_beats_what_is_merged():
    config = load(
        "profiles:\n- &first\n  schedulerName: a\n  percentageOfNodesToScore: 30\n- {<<: *first, schedulerName: b}"
    )
    assert [(each.scheduler_name, each.percentage_of_nodes_to_score) for each in config.profiles] == [
        ("a", 30),
        ("b", 30),
    ]


def test_what_looks_like_a_date_or_a_time_of_day_is_text():
    assert load("profiles: [{schedulerName: 2026-01-31}]").profiles[0].scheduler_name == "2026-01-31"
    assert refused("percentageOfNodesToScore: 1:30").message == "Expected int, got str"


def test_an_empty_document_behind_the_configuration_is_passed_over_and_a_second_one_refused():
    assert load("parallelism: 3\n---\n# nothing\n").source.parallelism == 3
    assert "single document" in str(refused("parallelism: 3\n---\nparallelism: 4\n"))


LAUGHS = "a0: &a0 [x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("profiles: &p [*p]", "contains itself"),
        ("profiles: &p\n- {schedulerName: a, plugins: *p}", "contains itself"),
        (LAUGHS, "aliases"),
        ("profiles: " + "[" * 900 + "]" * 900, "nested too deep"),
    ],
)
def test_a_document_that_grows_without_end_is_refused_at_once(body, said):
    assert said in str(refused(body))


@pytest.mark.parametrize(
    "body",
    [
        "clientConnection: {qps: .nan}",
        "clientConnection: {qps: .inf}",
        "parallelism: 2147483648",
        "podInitialBackoffSeconds: 99999999999999999999999",
        "profiles: [{percentageOfNodesToScore: 4294967296}]",
        "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: 2147483648}]}}}]",
    ],
)
def test_a_number_that_the_field_cannot_hold_is_refused(body):
    assert refused(body).path


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ("{kind: InterPodAffinityArgs}", "kind"),
        ("{apiVersion: v1, kind: NodeResourcesFitArgs}", "apiVersion"),
        ("{apiVersion: kubescheduler.config.k8s.io/v1beta3}", "apiVersion"),
    ],
)
def test_arguments_of_another_plugin_or_version_are_refused(args, field):
    error = refused(f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]")
    assert error.path == f"profiles[0].pluginConfig[0].args.{field}"


@pytest.mark.parametrize("timeout", ["banana", "-5s", "15"])
def test_a_time_out_of_an_extender_that_is_none_is_refused(timeout):
    error = refused(f"extenders: [{{urlPrefix: 'http://x.test', filterVerb: f, httpTimeout: '{timeout}'}}]")
    assert error.path == "extenders[0].httpTimeout"


@pytest.mark.parametrize("text", ["[1, 2]", "", "just text", "{"])
def test_what_is_no_configuration_is_refused(text):
    with pytest.raises(ConfigError):
        decode_configuration(text, "x.yaml")


def test_null_means_unset():
    config = load("parallelism: null\nprofiles: null")
    assert (config.source.parallelism, config.profiles[0].scheduler_name) == (16, "default-scheduler")


def test_an_unset_percentage_is_told_from_an_explicit_zero():
    assert load().profiles[0].percentage_of_nodes_to_score is None
    assert load("percentageOfNodesToScore: 0").profiles[0].percentage_of_nodes_to_score == 0
    both = load("percentageOfNodesToScore: 50\nprofiles: [{percentageOfNodesToScore: 30}]")
    assert both.profiles[0].percentage_of_nodes_to_score == 30


def test_a_default_plugin_that_is_not_built_is_left_out_and_listed():
    points = {name: where for name, where in EXTENSION_POINTS.items() if name != "VolumeZone"}
    profile = load(points=points).profiles[0]
    assert profile.left_out == ("VolumeZone",)
    assert "VolumeZone" not in profile.names


def test_a_configuration_that_asks_by_name_for_a_plugin_that_is_not_built_does_not_start():
    points = {name: where for name, where in EXTENSION_POINTS.items() if name != "VolumeZone"}
    error = refused("profiles: [{plugins: {multiPoint: {enabled: [{name: VolumeZone}]}}}]", points)
    assert error.path == "profiles[0].plugins.multiPoint.enabled[0]"
    assert "not built" in error.message


def test_switching_off_a_plugin_that_is_not_built_is_fine():
    points = {name: where for name, where in EXTENSION_POINTS.items() if name != "VolumeZone"}
    profile = load("profiles: [{plugins: {multiPoint: {disabled: [{name: VolumeZone}]}}}]", points).profiles[0]
    assert profile.left_out == ()


def test_a_third_partys_plugin_takes_part_where_it_is_enabled_and_gets_its_arguments_as_they_stand():
    points = {**EXTENSION_POINTS, "Mine": frozenset({"filter", "score"})}
    profile = load(
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Mine, weight: 4}]}},"
        " pluginConfig: [{name: Mine, args: {a: 1}}]}]",
        points,
    ).profiles[0]
    assert profile.plugins["filter"][-1] == "Mine"
    assert profile.weights["Mine"] == 4
    assert profile.args["Mine"] == {"a": 1}


def test_all_profiles_share_one_queue_sort():
    points = {**EXTENSION_POINTS, "Mine": frozenset({"queue_sort"})}
    error = refused(
        "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort:"
        " {disabled: [{name: '*'}], enabled: [{name: Mine}]}}}]",
        points,
    )
    assert error.path == "profiles[1].plugins.queueSort"


def test_a_negative_weight_is_refused():
    error = refused("profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: -1}]}}}]")
    assert error.path == "profiles[0].plugins.score.enabled[0].weight"


def test_feature_gates_change_the_default_plugins():
    profile = load(gates=feature_gates({"DynamicResourceAllocation": False, "GangScheduling": True})).profiles[0]
    assert "DynamicResources" not in profile.names
    assert "GangScheduling" in profile.names


@pytest.mark.parametrize(
    ("text", "seconds"), [("15s", 15.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("0", 0.0), ("-2s", -2.0), ("300ms", 0.3)]
)
def test_go_durations_are_read(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "15", "s", "1x", "1s 2s"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)


def test_a_wrong_duration_in_a_configuration_is_named():
    assert refused("leaderElection: {leaseDuration: soon}").path == "leaderElection.leaseDuration"
