"""The resilience of jobs as texts and in JSON."""

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.traces.resilience import MEMBERS, NONE, Resilience, ResilienceError, parse_resilience, resilience_of


@pytest.mark.parametrize(
    ("texts", "meant"),
    [
        ({}, NONE),
        ({"resilience": "none"}, NONE),
        ({"checkpoint": "daly", "dump": "120", "read": "60"}, Resilience("checkpoint", "daly", 120.0, 60.0)),
        ({"checkpoint": "1h", "dump": "2min"}, Resilience("checkpoint", 3600.0, 120.0, 0.0)),
        ({"checkpoint": "young", "spares": "4"}, Resilience("spares", "young", spares=4)),
        ({"checkpoint": "900", "spares": "1%"}, Resilience("spares", 900.0, share=0.01)),
        ({"checkpoint": "daly", "resilience": "moldable"}, Resilience("moldable", "daly")),
        ({"checkpoint": "daly", "resilience": "grid", "spares": "2"}, Resilience("grid", "daly", spares=2)),
    ],
)
def test_what_texts_mean(texts: dict[str, str], meant: Resilience) -> None:
    """Dumps alone restart in a new allocation; jobs with spares, moldable and grid-shaped ones continue in theirs."""
    assert parse_resilience(**texts) == meant


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"resilience": "moldabel"}, "Did you mean 'moldable'"),
        ({"resilience": "none", "spares": "2"}, "cannot be combined"),
        ({"dump": "120"}, "--dump needs --checkpoint"),
        ({"read": "120", "spares": "2"}, "--read needs --checkpoint"),
        ({"checkpoint": "hourly"}, "unknown checkpoint interval"),
        ({"checkpoint": "0"}, "above 0 s"),
        ({"checkpoint": "60", "dump": "2min"}, "shorter than the checkpoint"),
        ({"checkpoint": "daly", "dump": "-120"}, "invalid time"),
        ({"checkpoint": "daly", "dump": "nan"}, "invalid time"),
        ({"checkpoint": "daly", "dump": "1 parsec"}, "invalid time"),
        ({"checkpoint": "daly", "read": "9" * 5000}, "time too long"),
        ({"checkpoint": "daly", "spares": "0"}, "invalid number of spares"),
        ({"checkpoint": "daly", "spares": "-1"}, "invalid number of spares"),
        ({"checkpoint": "daly", "spares": "100%"}, "invalid number of spares"),
        ({"checkpoint": "daly", "spares": "9" * 5000}, "invalid number of spares"),
    ],
)
def test_what_makes_no_sense(texts: dict[str, str], said: str) -> None:
    """Each is rejected with what was expected."""
    with pytest.raises(ResilienceError, match=said):
        parse_resilience(**texts)


def test_a_job_of_a_workload_has_a_way_of_its_own() -> None:
    """Names and values are those of the options; numbers may be JSON numbers in any form."""
    members = msgspec.json.decode(b'{"checkpoint": 36e2, "dump": 0.5, "read": 1e-7, "spares": "5%"}')

    assert resilience_of(members, "w.json, job 7") == Resilience("spares", 3600.0, 0.5, 1e-7, share=0.05)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([], "is not an object"),
        ("daly", "is not an object"),
        ({"chekpoint": "daly"}, "Did you mean 'checkpoint'"),
        ({"checkpoint": True}, "neither text nor a number"),
        ({"checkpoint": None}, "neither text nor a number"),
        ({"checkpoint": 60, "dump": 120}, "w.json, job 7, checkpoint: the interval is shorter"),
        ({"checkpoint": "daly", "dump": -3}, "job 7, dump: invalid time"),
        ({"checkpoint": "daly", "dump": 1e300}, "w.json, job 7: 'dump' in the job's resilience is out of range"),
        ({"checkpoint": "daly", "spares": 10**5000}, "'spares' in the job's resilience is out of range"),
        ({"checkpoint": "daly", "spares": 1.5}, "job 7, spares: invalid number of spares"),
    ],
)
def test_what_a_workload_cannot_say(members: object, said: str) -> None:
    """The message names the job and the member."""
    with pytest.raises(ResilienceError, match=said):
        resilience_of(members, "w.json, job 7")  # type: ignore[arg-type]


@given(
    st.dictionaries(
        st.sampled_from([*MEMBERS, "other"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.integers())),
    )
)
def test_any_object_is_understood_or_refused(members: dict[str, object]) -> None:
    """No other error is raised."""
    with suppress(ResilienceError):
        found = resilience_of(members, "w.json, job 7")

        assert found.dump >= 0
        assert found.read >= 0


def test_errors_name_a_jobs_members() -> None:
    """The message uses the names in the JSON."""
    with pytest.raises(ResilienceError) as caught:
        resilience_of({"dump": 60}, "w.json, job 7")

    assert str(caught.value).startswith("w.json, job 7: dump needs checkpoint")
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("resilience", "nodes", "tolerated"),
    [
        (NONE, 100, 0),
        (Resilience("checkpoint", "daly"), 100, 0),
        (Resilience("spares", share=0.01), 22_500, 225),
        (Resilience("spares", share=0.01), 250, 2),
        (Resilience("spares", share=0.01), 99, 1),
        (Resilience("spares", share=0.01), 1, 0),
        (Resilience("spares", share=0.07), 100, 7),
        (Resilience("moldable", spares=5), 4, 3),
        (Resilience("moldable"), 8, 7),
        (Resilience("moldable", spares=8), 8, 7),
        (Resilience("moldable", share=0.5), 1, 0),
        (Resilience("grid", spares=17), 16, 15),
        (Resilience("grid"), 1, 0),
    ],
)
def test_how_many_failures_an_allocation_survives(resilience: Resilience, nodes: int, tolerated: int) -> None:
    """A share is rounded down, but to at least one node; one node always stays."""
    assert resilience.tolerated(nodes) == tolerated
