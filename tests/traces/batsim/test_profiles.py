"""Profiles: reading each type, their run times, and errors."""

import json
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.traces.batsim.profile_reader import PROFILE_TYPES, parse_profile
from pipistrelle.traces.batsim.workload import parse_batsim
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.profiles import (
    Composed,
    Delay,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    UsageTrace,
    communicates,
    leaves,
    ranks_of,
    require_ranks,
    runtime_of,
)

FORMAT = "'pipistrelle help workloads' shows the format."
D10 = Delay(name="d10", delay=10)
D2 = Delay(name="d2", delay=2.5)
FAILS = Delay(name="fails", delay=4, ret=7)
CPU = ParallelHomogeneous(name="cpu", cpu=1e9, com=0)
COM = ParallelHomogeneous(name="com", cpu=1e9, com=1)
FOUR = Parallel(name="four", cpu=(1, 2, 3, 4), com=())
TRACE = UsageTrace(name="trace", phases=(((1, 5),), ((0.5, 5),)))


DEEP = b'{"type":"delay","delay":' + b"[" * 100000 + b"]" * 100000 + b"}"


def parse(others=None, **members):
    """Return the profile of these members."""
    return parse_profile("p", json.dumps(members).encode(), others or {}, "PLACE")


def composed(*parts, repeat=1, ret=0):
    """Return a composed profile."""
    return Composed(name="c", repeat=repeat, seq=parts, names=tuple(part.name for part in parts), ret=ret)


def test_every_type():
    """Each supported type has its own struct; optional members have Batsim's default."""
    assert parse(type="delay", delay=20.25, ret=3) == Delay(name="p", delay=20.25, ret=3)
    task = {"cpu": 1e9, "com": 5}
    assert parse(type="parallel_homogeneous", **task) == ParallelHomogeneous(name="p", cpu=1e9, com=5)
    assert parse(type="parallel_homogeneous_total", **task) == ParallelHomogeneousTotal(name="p", cpu=1e9, com=5)
    assert parse(type="parallel_homogeneous", cpu=0) == ParallelHomogeneous(name="p", cpu=0, com=0)
    assert parse(type="parallel", cpu=[1, 0], com=[0, 1, 2, 0]) == Parallel(name="p", cpu=(1, 0), com=(0, 1, 2, 0))
    assert parse(type="parallel", cpu=[1, 0], com=[0, 0, 0, 0]) == Parallel(name="p", cpu=(1, 0), com=())
    assert parse(type="composed", seq=["d10"], others={"d10": D10}, description="x") == Composed(
        name="p", repeat=1, seq=(D10,), names=("d10",)
    )
    assert PROFILE_TYPES[0] == "delay"
    assert len(PROFILE_TYPES) == 6


def test_repetitions_as_batsim_2_calls_them():
    """Batsim 2's ``nb`` repeats as ``repeat`` does; both are allowed if they agree."""
    for members in ({"nb": 4}, {"nb": 4, "repeat": 4}, {"repeat": 4}):
        assert runtime_of(parse(others={"d10": D10}, type="composed", seq=["d10"], **members)) == 40


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"type": "delay"}, f"PLACE: Object missing required field 'delay'. {FORMAT}"),
        ({"delay": 1}, f"PLACE: Object missing required field 'type'. {FORMAT}"),
        ({"type": 1}, f"PLACE.type: Expected 'str'. {FORMAT}"),
        ({"type": "delay", "delay": -1}, "PLACE: the delay is out of range: expected seconds above 0, at most"),
        ({"type": "delay", "delay": 1, "ret": -1}, f"PLACE.ret: Expected 'int' >= 0. {FORMAT}"),
        ({"type": "delay", "delay": 1, "ret": 1.5}, f"PLACE.ret: Expected 'int', got 'float'. {FORMAT}"),
        ({"type": "parallel_homogeneous", "cpu": -1}, f"PLACE.cpu: Expected 'float' >= 0.0. {FORMAT}"),
        (
            {"type": "parallel_homogeneous_total", "cpu": 1, "com": 1e31},
            f"PLACE.com: Expected 'float' <= 1e+30. {FORMAT}",
        ),
        ({"type": "parallel", "cpu": []}, f"PLACE.cpu: Expected 'array' of length >= 1. {FORMAT}"),
        ({"type": "parallel", "cpu": [1, -1]}, f"PLACE.cpu[1]: Expected 'float' >= 0.0. {FORMAT}"),
        (
            {"type": "parallel", "cpu": [1, 1], "com": [1]},
            "PLACE.com: the communication matrix has the wrong size: expected 4 numbers, from each of the 2 ranks to "
            "each, found 1. Leave 'com' out if nothing is sent.",
        ),
        ({"type": "composed", "seq": []}, f"PLACE.seq: Expected 'array' of length >= 1. {FORMAT}"),
        ({"type": "composed", "seq": ["d10"], "repeat": 0}, f"PLACE.repeat: Expected 'int' >= 1. {FORMAT}"),
        ({"type": "composed", "seq": ["d10"], "nb": 0}, f"PLACE.nb: Expected 'int' >= 1. {FORMAT}"),
        ({"type": "composed", "seq": ["d10"], "nb": 2, "repeat": 3}, "PLACE: the profile has two numbers"),
        (
            {"type": "composed", "seq": ["d11"]},
            "PLACE.seq[0]: profile 'd11' does not exist: expected the name of another profile. Did you mean 'd10'?",
        ),
        (
            {"type": "usage_trace", "trace": "/etc/passwd"},
            "PLACE.trace: only a workload file can name a trace file: found '/etc/passwd'. "
            "Move the profile to the workload file, as in Batsim.",
        ),
        ({"type": "paralel"}, "PLACE: profiles of type 'paralel' are not supported"),
    ],
)
def test_what_is_wrong_is_named(members, message):
    """A wrong member, type or part is one message with its place."""
    with pytest.raises(TraceError) as caught:
        parse(others={"d10": D10}, **members)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("smpi", "It replays messages over a network, which is not modelled."),
        ("parallel_homogeneous_pfs", "It moves data to or from storage, which is not modelled."),
        ("data_staging", "It moves data to or from storage, which is not modelled."),
        ("send", "It talks with the scheduler while it runs, which is not modelled."),
        ("recv", "It talks with the scheduler while it runs, which is not modelled."),
        ("msg_par_hg", "Batsim 3 and 4 call it parallel_homogeneous."),
        ("DelayProfile", "Batsim 3 and 4 call it delay."),
        ("ptask", "Batsim 3 and 4 call it parallel."),
        ("ptask_homogeneous", "parallel_homogeneous_total."),
        ("sequential_composition", "Batsim 3 and 4 call it composed."),
        ("forkjoin_composition", "Its parts run at the same time, which is not modelled."),
        ("ptask_data_staging_between_storages", "It moves data to or from storage, which is not modelled."),
        (
            "trace_replay",
            "Batsim 3 and 4 call the replay of usage usage_trace; messages over a network are not modelled.",
        ),
        ("paralel", "Did you mean 'parallel'?"),
    ],
)
def test_types_that_are_not_run(kind, reason):
    """Batsim's other types are rejected with the reason, names of other versions with the name to use."""
    with pytest.raises(TraceError) as caught:
        parse(type=kind)
    assert str(caught.value).endswith(reason)


NO_PROFILES = [b"", b"{", b"[]", b"1", b'{"type":"delay","delay":1}x', b"\xff", b'{"type":"\xff"}', DEEP]


@pytest.mark.parametrize("raw", NO_PROFILES, ids=range(len(NO_PROFILES)))
def test_invalid_json_is_not_a_profile(raw):
    """Anything that is not a JSON object is rejected."""
    with pytest.raises(TraceError, match=r"^PLACE"):
        parse_profile("p", raw, {}, "PLACE")


def test_run_times():
    """Delays add up, including repetitions; any computation makes the time unknown."""
    assert runtime_of(D10) == 10
    assert runtime_of(composed(D10, D2, repeat=3)) == 37.5
    assert runtime_of(composed(composed(D10, D2, repeat=2), D10)) == 35
    for profile in (CPU, FOUR, TRACE, composed(D10, CPU)):
        assert isnan(runtime_of(profile))


def test_a_part_that_fails_ends_the_whole():
    """Time counts up to the first part that fails, however deep it is."""
    assert runtime_of(composed(D10, FAILS, CPU, repeat=3)) == 14
    assert runtime_of(composed(D2, composed(D10, FAILS, repeat=5), D10, repeat=2)) == 16.5
    assert runtime_of(composed(D10, repeat=2, ret=1)) == 20


def test_leaves_communication_and_ranks_of_profiles():
    """Each leaf is listed once; communication and numbers of ranks are found at any depth."""
    whole = composed(D10, composed(FOUR, D10), TRACE, FOUR)
    assert list(leaves(whole)) == [D10, FOUR, TRACE]
    assert ranks_of(whole) == {4, 2}
    assert ranks_of(composed(D10, CPU)) == frozenset()
    assert not communicates(whole)
    assert communicates(composed(D10, composed(COM)))
    require_ranks(composed(FOUR), 4, job="7", where="X")
    with pytest.raises(
        TraceError, match="X: profile 'c' of job '7' is made for another number of resources: expected 2"
    ):
        require_ranks(whole, 4, job="7", where="X")


JSONS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.sampled_from(["a", "d10", "p"])),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
MEMBERS = st.sampled_from(["delay", "cpu", "com", "seq", "repeat", "ret", "trace"])


@given(st.sampled_from(PROFILE_TYPES), st.dictionaries(MEMBERS, JSONS, max_size=4))
def test_any_members_give_a_profile_or_a_trace_error(kind, members):
    """Any members raise nothing but TraceError."""
    try:
        profile = parse(others={"d10": D10}, type=kind, **members)
    except TraceError as error:
        assert str(error).startswith("PLACE")  # noqa: PT017
    else:
        assert isnan(runtime_of(profile)) or runtime_of(profile) > 0


def file_of(profiles, profile="d100"):
    """Return a workload file of one job with these profiles."""
    job = {"id": "1", "subtime": 10, "res": 2, "profile": profile}
    return json.dumps({"jobs": [job], "profiles": profiles}).encode()


def test_parts_of_composed_profiles_are_found():
    """Composed profiles get their parts, which may be anywhere in the file and be composed themselves."""
    profiles = {
        "d100": {"type": "composed", "repeat": 2, "seq": ["b", "c", "b"]},
        "b": {"type": "composed", "seq": ["c"]},
        "c": {"type": "delay", "delay": 10},
    }
    workload = parse_batsim(file_of(profiles), "w.json")
    c = Delay(name="c", delay=10)
    b = Composed(name="b", repeat=1, seq=(c,), names=("c",))
    assert workload.table["d100"] == Composed(name="d100", repeat=2, seq=(b, c, b), names=("b", "c", "b"))
    assert workload.runtime.tolist() == [60]


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        (
            {"d100": ["a"], "a": ["b"], "b": ["a"]},
            "w.json, $.profiles['a']: the profile is a part of itself: found 'a' > 'b' > 'a'. Remove one of them.",
        ),
        (
            {"d100": ["d100"]},
            "w.json, $.profiles['d100']: the profile is a part of itself: found 'd100' > 'd100'. Remove one of them.",
        ),
        (
            {"d100": ["a"], "a": ["d10"]},
            "w.json, $.profiles['a'].seq[0]: profile 'd10' does not exist: expected the name of another profile. "
            "Did you mean 'd100'?",
        ),
    ],
)
def test_parts_that_are_not_there(profiles, message):
    """Cycles and unknown parts are rejected with the place."""
    composed = {name: {"type": "composed", "seq": seq} for name, seq in profiles.items()}
    with pytest.raises(TraceError) as caught:
        parse_batsim(file_of(composed), "w.json")
    assert str(caught.value) == message


def chain(length):
    """Return profiles that are nested in each other, the last a delay."""
    profiles = {f"c{place}": {"type": "composed", "seq": [f"c{place + 1}"]} for place in range(length)}
    return profiles | {f"c{length}": {"type": "delay", "delay": 1}}


def test_nesting_has_a_limit():
    """Fifty nested composed profiles are read, more are rejected; their inner ones stay usable."""
    assert parse_batsim(file_of(chain(50), "c0"), "w.json").runtime.tolist() == [1]
    for length in (51, 60, 1500):  # the last is deeper than Python's own limit
        with pytest.raises(TraceError, match="nested too deeply: expected at most 50 in each other"):
            parse_batsim(file_of(chain(length), "c0"), "w.json")
    usable = parse_batsim(file_of(chain(200), "c200"), "w.json").table
    assert list(usable) == [f"c{place}" for place in range(150, 201)]


def test_composed_profiles_cannot_explode():
    """A few lines that expand to very many parts are rejected at once."""
    profiles = {f"c{place}": {"type": "composed", "seq": [f"c{place + 1}"] * 10} for place in range(30)}
    profiles["c30"] = {"type": "delay", "delay": 1}
    with pytest.raises(TraceError, match="too long: expected at most 1000000 parts and 9007199254740992 s"):
        parse_batsim(file_of(profiles, "c0"), "w.json")
    profiles = {"d": {"type": "delay", "delay": 9e15}, "d100": {"type": "composed", "seq": ["d", "d"]}}
    with pytest.raises(TraceError, match="repetitions counted, found 18000000000000000 s"):
        parse_batsim(file_of(profiles), "w.json")
