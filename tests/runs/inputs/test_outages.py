"""Models and logs brought onto a machine: by name, by file, and back from a file, byte for byte."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipistrelle.models.reliability.outage_summary import summarise
from pipistrelle.platforms.description import Platform, Pool, homogeneous
from pipistrelle.platforms.failures.durations import Fixed
from pipistrelle.platforms.failures.outage import Outage, OutageError, Outages, csv_chunks
from pipistrelle.runs.inputs.outages import clock_time, failure_plan, on_machine
from pipistrelle.traces.outages.load import load_outage_log

MACHINE = homogeneous(8, "eight")
YEAR = 31557600.0


def text_of(outages):
    """Return outages as CSV."""
    return b"".join(csv_chunks(outages))


@pytest.fixture
def saved(tmp_path):
    """Return a function that writes bytes and returns the file's path."""

    def save(content, name="saved.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return save


rows = st.builds(
    lambda node, down, length, cause: Outage(node, down, down + length, cause),
    st.integers(0, 7),
    st.floats(0, 1e9),
    st.floats(1, 1e6),
    st.text("ab,\"' ;:é", max_size=5).map(lambda text: text.strip() or "failure"),
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(rows, max_size=20, unique_by=lambda row: row.node))
def test_saved_outages_replay_to_the_same_bytes(saved, found):
    """Written outages are read back equal, and written again as the same bytes."""
    outages = Outages.of(found)
    again = on_machine(load_outage_log(saved(text_of(outages))), MACHINE)

    assert again == outages
    assert text_of(again) == text_of(outages)


def test_a_models_stream_replays_to_the_same_bytes(saved):
    """The same holds for a stream of several models, with domains."""
    plan = failure_plan(
        ["weibull,mtbf=10d,shape=0.7", "exponential,mtbf=30d,domain=switch:4"], MACHINE, Fixed(3600.0), 2.0
    )
    outages = plan.outages(7, YEAR)

    assert len(outages) > 100
    assert text_of(on_machine(load_outage_log(saved(text_of(outages))), MACHINE)) == text_of(outages)


def test_a_fitted_file_is_a_model(saved):
    """A TOML file's name stands where a model's name stands, with options behind."""
    name = saved('name = "m"\nnodes = 4\n[failures]\ndistribution = "exponential"\nmean = 7200.0\n', "m.toml")
    plan = failure_plan([f"{name},factor=2"], MACHINE, Fixed(1.0))

    assert plan.sources[0].model.uptime.mean == 3600.0


def test_errors_say_which_model(saved):
    """With several models, the message quotes the one that is wrong."""
    with pytest.raises(OutageError, match="--failures exponential,mtbf=1h,pool=x: platform 'eight' has no pool 'x'"):
        failure_plan(["exponential,mtbf=1h", "exponential,mtbf=1h,pool=x"], MACHINE, Fixed(1.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node,down,up\n1,1,2\n8,1,2\n9,1,2\n", "line 3: an outage names an unknown node: expected a node of 'eight'"),
        ("node,down,up\n1,1,5\n1,4,6\n", "lines 2 and 3: two outages of one node overlap"),
    ],
)
def test_input_that_does_not_fit_the_machine_is_rejected(saved, text, message):
    """Unknown nodes and overlaps are named by line."""
    with pytest.raises(OutageError) as caught:
        on_machine(load_outage_log(saved(text)), MACHINE)

    assert message in str(caught.value)


def test_names_are_numbered(saved):
    """They are the machine's own, or those that are given; a machine without names has none of them."""
    path = saved("node,down,up\nn10,1,2\nn2,1,2\n")

    with pytest.raises(OutageError, match=r"'n10', and 1 more unknown nodes\. The machine's nodes have no names"):
        on_machine(load_outage_log(path), MACHINE)
    named = Platform(name="m", pools=(Pool(name="a", nodes=3, names="n[9-11]"), Pool(name="b", nodes=1, names="n2")))
    assert on_machine(load_outage_log(path), named).node.tolist() == [1, 3]
    assert on_machine(load_outage_log(path), MACHINE, hosts=["n2", "n3", "n10"]).node.tolist() == [0, 2]
    mixed = saved("node,down,up\n3,1,2\nn9,1,2\n")
    assert on_machine(load_outage_log(mixed), named).node.tolist() == [0, 3]
    path = saved("node,down,up\nn10,1,2\nn2,1,2\n")
    with pytest.raises(OutageError, match=r"'n10'.*Did you mean 'n1'"):
        on_machine(load_outage_log(path), MACHINE, hosts=["n2", "n1"])


def test_time_0_of_a_log_with_dates(saved):
    """Time 0 is the first begin or the requested time: finished outages are left out, ongoing ones begin at 0."""
    path = saved("node,down,up\n1,2017-01-29 08:00,2017-01-29 09:00\n2,2017-01-29 08:30,2017-01-29 10:00\n")
    log = load_outage_log(path)

    assert [(row.down, row.up) for row in on_machine(log, MACHINE)] == [(0, 3600), (1800, 7200)]
    later = on_machine(log, MACHINE, start=clock_time(log, "2017-01-29 09:00"))
    assert list(later) == [Outage(2, 0.0, 3600.0)]
    with pytest.raises(OutageError, match="expected a date"):
        clock_time(log, "5d")


@pytest.mark.slow
def test_the_log_of_lanl_replays(traces_dir, saved):
    """System 20's 2,478 failures, 14 of them overlapping, become 2,464 outages, which replay to the same bytes."""
    outages = on_machine(load_outage_log(next(traces_dir.glob("LA-UR-05-7318*"))).only("20"), homogeneous(512, "20"))

    assert len(outages) == 2464
    assert outages.node.max() == 509
    assert text_of(on_machine(load_outage_log(saved(text_of(outages))), homogeneous(512, "20"))) == text_of(outages)
    whole = on_machine(load_outage_log(next(traces_dir.glob("LA-UR-05-7318*"))), homogeneous(5007, "all"))
    assert len(whole) == 23_580


@pytest.mark.slow
def test_the_lives_of_titan_replay(traces_dir):
    """Their ends are not known: a repair must be given, and bursts of events then become one outage."""
    path = next(traces_dir.glob("Titan-GPU-lives*"))
    titan = homogeneous(18_688, "titan")
    with pytest.raises(OutageError, match=r"does not say when outages end.*Give --repair"):
        on_machine(load_outage_log(path), titan)

    outages = on_machine(load_outage_log(path), titan, repair=Fixed(3600.0))
    assert len(outages) == 5631
    assert on_machine(load_outage_log(path), titan, repair=Fixed(3600.0)) == outages


def test_a_summary(saved):
    """Rates, hazard, clustering, repairs and a chart with rows of equal width."""
    plan = failure_plan(["exponential,mtbf=30d"], MACHINE, Fixed(3600.0))
    outages = plan.outages(1, YEAR)
    facts = summarise(load_outage_log(saved(text_of(outages))))
    texts = dict(facts)
    picture = [text for heading, text in facts[[heading for heading, _ in facts].index("picture") + 1 :] if "|" in text]

    assert texts["outages"] == f"{len(outages)} of 8 nodes; 0 announced"
    assert texts["class"].startswith(f"all: 8 nodes, {len(outages)} outages in 7.")
    assert texts["repair"].startswith("mean 1 h; 5 % 1 h")
    assert texts["causes"] == f"failure {len(outages)}"
    assert len(picture) == 8
    assert len({len(line) for line in picture}) == 1


@pytest.mark.parametrize(
    "text", ["node,down,up\n", "node,down,up\n3,1,inf\n", "node,down,up\n3,0,1,\n".replace("1,\n", "1\n")]
)
def test_a_summary_of_next_to_nothing(saved, text):
    """A log with one outage, or none, is described too."""
    assert dict(summarise(load_outage_log(saved(text))))["name"] == "saved"
