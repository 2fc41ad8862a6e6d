"""The language of --maintenance, files in it, and when maintenance occurs."""

from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.maintenance.plan import Maintenance, MaintenanceError, MaintenancePlan
from pipistrelle.platforms.maintenance.text import parse_maintenance, rules_of_lines
from pipistrelle.protocol.units.nodesets import NodeSet

HOUR, DAY, WEEK = 3600.0, 86400.0, 604800.0
MACHINE = Platform(
    name="zeus",
    pools=(
        Pool(name="cpu", nodes=96),
        Pool(name="gpu", nodes=8, units_per_node=4, unit="gpu"),
        Pool(name="2016-x", nodes=2),
        Pool(name="daily", nodes=1),
        Pool(name="7", nodes=1),
    ),
)
#: 2017-01-29 00:00 UTC, a Sunday
ZERO = datetime(2017, 1, 29, tzinfo=UTC)
EPOCH = ZERO.timestamp()
WORDS = ["@1", "@2d", "2017-02-01", "08:00", "+8h", "to", "all", "0-3", "gpu", "daily", "every", "2", "days", "7d"]
STOCKHOLM = "Europe/Stockholm"


def rule(text, *, epoch=EPOCH, timezone=None):
    """Return the rule of a text."""
    return parse_maintenance(text, MACHINE, where="--maintenance", epoch=epoch, timezone=timezone)


def rule_or_refusal(text):
    """Return the rule of a text, or the error message."""
    try:
        return rule(text)
    except MaintenanceError as error:
        return error


def first(text, count=1, **clock):
    """Return the first occurrences of a text's rule."""
    return list(islice(MaintenancePlan((rule(text, **clock),)).occurrences(), count))


def nodes_of(text):
    """Return the named nodes as text."""
    return str(rule(f"@1 +1h {text}").nodes)


def test_the_example_of_the_manual():
    """A date, a length and all nodes: announced from the beginning."""
    assert first("2017-01-29 08:00 +20000s all", 2) == [
        Maintenance("m1", 0.0, 8 * HOUR, 8 * HOUR + 20000, NodeSet.interval(0, 107), "maintenance")
    ]


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("@3600 +8h", HOUR, 9 * HOUR),
        ("@0 +1", 0, 1),
        ("@0h +1", 0, 1),
        ("@2d +1.5h", 2 * DAY, 2 * DAY + 1.5 * HOUR),
        ("@1.25 to @2.5", 1.25, 2.5),
        ("2017-01-30 +1h", DAY, DAY + HOUR),
        ("2017-01-29T08:00 to 2017-01-29 16:00", 8 * HOUR, 16 * HOUR),
        ("2017-01-29 08:00:30.25 to @40000", 8 * HOUR + 30.25, 40000),
        ("2017-01-29T08:00Z +1h", 8 * HOUR, 9 * HOUR),
        ("2017-01-29T08:00+01:30 +1h", 6.5 * HOUR, 7.5 * HOUR),
        ("2017-01-29T08:00-05:00 +1h", 13 * HOUR, 14 * HOUR),
    ],
)
def test_times_and_lengths(text, begin, end):
    """Simulated times and dates, lengths and ends, in all supported forms."""
    (one,) = first(f"{text} all")

    assert (one.begin, one.end) == (begin, end)


def test_dates_are_of_the_given_zone():
    """Without an offset a date is in the workload's zone, including summer time."""
    assert first("2017-01-29 08:00 +1h all", timezone=STOCKHOLM)[0].begin == 7 * HOUR
    assert first("2017-06-29 08:00 +1h all", timezone=STOCKHOLM)[0].begin % DAY == 6 * HOUR
    assert first("2017-01-29T08:00Z +1h all", timezone="nowhere")[0].begin == 8 * HOUR
    assert first("2017-01-29 08:00 +1h all", timezone="UTC")[0].begin == 8 * HOUR
    # Occurs twice because the clock is set back: the first one counts.
    assert first("2017-10-29 02:30 +1h all", timezone=STOCKHOLM)[0].begin % DAY == 0.5 * HOUR


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("all", "0-107"),
        ("0-3 8", "0-3 8"),
        ("8 0-3", "0-3 8"),
        ("gpu", "96-103"),
        ("pool gpu 0", "0 96-103"),
        ("gpu cpu", "0-103"),
        ("2016-x", "104-105"),
        ("pool daily", "106"),
        ("7", "7"),
        ("pool 7", "107"),
        ("all gpu 3", "0-107"),
    ],
)
def test_nodes(text, nodes):
    """Numbers, pools and all nodes; a number means a node even if a pool has that name."""
    assert nodes_of(text) == nodes


def test_recurrences():
    """Occurrences are numbered, and their distance is the rule's."""
    daily = first("@100 +1h gpu daily named fans cause clean  the fans", 3)

    assert [(one.id, one.begin, one.end) for one in daily] == [
        ("fans.1", 100, 100 + HOUR),
        ("fans.2", 100 + DAY, 100 + DAY + HOUR),
        ("fans.3", 100 + 2 * DAY, 100 + 2 * DAY + HOUR),
    ]
    assert {one.cause for one in daily} == {"clean the fans"}
    for text, days in (("weekly", 7), ("every day", 1), ("every 3 days", 3), ("every week", 7), ("every 2 weeks", 14)):
        assert [one.begin for one in first(f"@100 +1h gpu {text}", 2)] == [100, 100 + days * DAY]


def test_recurrences_end():
    """After a number of times, or with the last begin at a time; a date alone is its whole day."""
    assert len(first("@100 +1h all daily 3 times", 9)) == 3
    assert len(first("@100 +1h all daily until @172900", 9)) == 3
    assert len(first("@100 +1h all daily until @172899", 9)) == 2
    assert len(first("2017-01-29 23:00 +1h all daily until 2017-01-31", 9)) == 3
    assert len(first("2017-01-29 23:00 +1h all daily until 2017-01-31 22:59", 9)) == 2
    assert len(first("9999-12-30 08:00 +1h all daily", 9)) == 2  # no date is later


def test_recurrences_keep_the_time_of_the_day():
    """If the clock is set forward, a weekly date is an hour earlier; a skipped time is later."""
    weekly = first("2017-03-19 08:00 +1h all weekly", 3, timezone=STOCKHOLM)
    assert [two.begin - one.begin for one, two in pairwise(weekly)] == [WEEK - HOUR, WEEK]

    skipped = first("2017-03-25 02:30 +1h all daily", 3, timezone=STOCKHOLM)
    shown = [datetime.fromtimestamp(EPOCH + one.begin, ZoneInfo(STOCKHOLM)).strftime("%d %H:%M") for one in skipped]
    assert shown == ["25 02:30", "26 03:30", "27 02:30"]


def test_when_maintenance_is_announced():
    """From the beginning, or a given time before; an endless one always when the previous one begins."""
    assert [one.announced for one in first("@8d +1h all daily 3 times", 3)] == [0, 0, 0]
    assert [one.announced for one in first("@8d +1h all daily", 3)] == [0, 8 * DAY, 9 * DAY]
    assert [one.announced for one in first("@5d +1h all announced 7d weekly", 3)] == [0, 5 * DAY, 12 * DAY]
    assert [one.announced for one in first("@8d +1h all announced 1d ahead daily", 2)] == [7 * DAY, 8 * DAY]
    assert [one.announced for one in first("@8d +1h all announced 0")] == [8 * DAY]
    assert [one.announced for one in first("2017-02-01 +1h all announced 2017-01-30 06:00")] == [DAY + 6 * HOUR]
    assert [one.announced for one in first("@9 +1h all announced 2017-01-01")] == [0]
    assert [one.announced for one in first("@9 +1h all announced @9")] == [9]


def test_a_plan_is_in_the_order_of_announcements():
    """Occurrences are sorted by announcement, begin and place, lazily: some of these rules never end."""
    texts = ["@9 +1 all daily announced 5s", "@20 +1 gpu named late", "@9 +1 cpu every 2 days announced 5s"]
    plan = MaintenancePlan(tuple(rule(text) for text in texts))
    told = [one.id for one in islice(plan.occurrences(), 7)]

    assert told == ["late", "m1.1", "m3.1", "m1.2", "m1.3", "m3.2", "m1.4"]
    assert [one.id for one in islice(plan.occurrences(), 7)] == told


def test_two_maintenances_have_two_names():
    """Schedulers distinguish them by name, also by names that the plan assigns."""
    for texts in (["@1 +1 all named a", "@9 +1 all named a"], ["@1 +1 all named m2", "@9 +1 all"]):
        with pytest.raises(MaintenanceError, match="two maintenances are called"):
            MaintenancePlan(tuple(rule(text) for text in texts))


def test_files():
    """Comments and blank lines are ignored; an error names file and line."""
    lines = ["# cooling", "", "  @1 +1h all", "   # later:", "@2d +1h gpu weekly"]
    read = partial(parse_maintenance, platform=MACHINE, epoch=None, timezone=None)
    rules = rules_of_lines(lines, read, "plan.txt")

    assert [one.text for one in rules] == ["@1 +1h all", "@2d +1h gpu weekly"]
    with pytest.raises(MaintenanceError, match=r"^plan\.txt, line 6: there is no such pool: .* found 'gpus'"):
        rules_of_lines([*lines, "@1 +1h gpus"], read, "plan.txt")


NAMED = Platform(
    name="m", pools=(Pool(name="a", nodes=4, names="n[08-10],login"), Pool(name="b", nodes=3, names="gpu1,gpu3,2016x"))
)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("n09", "1"),
        ("n[09-10] gpu3 0", "0-2 5"),
        ("login b", "3-6"),
        ("gpu1,gpu3", "4-5"),
        ("2016x 1-2", "1-2 6"),
        ("all", "0-6"),
    ],
)
def test_nodes_by_name(text, nodes):
    """Names of nodes are allowed besides numbers and pools, one by one or by a platform's naming rules."""
    assert str(parse_maintenance(f"@1 +1h {text} daily", NAMED, where="x", epoch=None, timezone=None).nodes) == nodes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n11", "there is no such pool or node.*found 'n11'. Did you mean 'n1"),
        ("n[08-11]", "there is no such pool or node.*found 'n11'"),
        ("n[1-999999999]", "there is no such pool or node.*found 'n1'"),
        ("n[9", "names of nodes are not valid"),
        ("nobody 3", "found 'nobody'"),
        ("7", "there are no such nodes.*0 to 6.*'7'"),
    ],
)
def test_unknown_nodes_of_a_rule_are_rejected(text, says):
    """An unknown name is rejected with similar ones, and never taken for another node."""
    with pytest.raises(MaintenanceError, match=says):
        parse_maintenance(f"@1 +1h {text}", NAMED, where="x", epoch=None, timezone=None)


def test_names_that_are_given():
    """A machine with other node names, as in SimGrid's XML, brings its names."""
    read = partial(parse_maintenance, platform=MACHINE, where="x", epoch=None, timezone=None)

    assert str(read("@1 +1h host.3", names={"host.3": 3}).nodes) == "3"
    assert str(read("@1 +1h 7", names={"host.3": 3}).nodes) == "7"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the begin of maintenance cannot be read.*found nothing"),
        ("@1 +1h all until 2017-12-31", "'until' comes after a recurrence: expected as 'weekly until"),
        ("tomorrow +1h all", "the begin of maintenance cannot be read.*'tomorrow'"),
        ("3600 +1h all", "cannot be read.*Write '@3600' for a time after time 0"),
        ("2017-2-1 +1h all", "cannot be read"),
        ("@-5 +1h all", "below zero.*'-5'"),
        ("@ +1h all", "cannot be read"),
        ("@nan +1h all", "cannot be read"),
        ("@1e400 +1h all", "finite"),
        ("@1e30 +1h all", "maintenance ends too late"),
        ("2017-01-28 23:59:59 +1h all", "begins before time 0: expected time 0, 2017-01-29 00:00:00 UTC, or later"),
        ("2017-02-29 +1h all", "not a valid date"),
        ("2017-01-29 24:00 +1h all", "not a valid date"),
        ("0000-01-01 +1h all", "not a valid date"),
        ("2017-01-29 8:00 +1h all", "time of day.*'8:00'"),
        ("2017-01-29T +1h all", "no time of day"),
        ("2017-01-29T08:00+24:00 +1h all", "offset"),
        ("@1", "length of maintenance is missing.*found nothing"),
        ("@1 8h all", "length of maintenance is missing.*'8h'"),
        ("@1 +-8h all", "cannot be read"),
        ("@1 +0s all", "not above zero"),
        ("@1 +8x all", "unknown unit"),
        ("@1 to", "the end of maintenance cannot be read"),
        ("@5 to @5 all", "ends no later than it begins"),
        ("2017-01-30 to 2017-01-29 all", "ends no later than it begins"),
        ("@1 +8h", "nodes of maintenance are missing.*found nothing"),
        ("@1 +8h weekly", "nodes of maintenance are missing.*'weekly'"),
        ("@1 +8h 0-3,8", "nodes cannot be read.*comma"),
        ("@1 +8h 5-3", "nodes cannot be read.*backwards"),
        ("@1 +8h 5 5", "nodes cannot be read.*overlaps"),
        ("@1 +8h 100-108", "no such nodes: expected nodes 0 to 107, found '108'"),
        ("@1 +8h gpus", "no such pool.*Did you mean 'gpu'"),
        ("@1 +8h pool", "no such pool.*found nothing"),
        ("@1 +8h all wekly", "Did you mean 'weekly'"),
        ("@1 +8h all daily weekly", "is repeated.*'weekly'"),
        ("@1 +8h all named a named b", "is repeated.*'named'"),
        ("@1 +8h all daily please", "an unknown word.*'please'"),
        ("@1 +25h all daily", "overlaps its next occurrence: expected a length of at most 86400 s, found 90000 s"),
        ("@1 +8d all weekly announced 1d", "overlaps its next occurrence"),
        ("@1 +8h all every", "period of maintenance is missing.*found nothing"),
        ("@1 +8h all every 0 days", "period of maintenance is missing.*'0'"),
        ("@1 +8h all every 2 fortnights", "period of maintenance is missing.*'fortnights'"),
        ("@1 +8h all daily 0 times", "number of occurrences.*'0'"),
        ("@9 +8h all daily until @3", "until before its begin"),
        ("@9 +8h all daily until", "last begin cannot be read"),
        ("@9 +8h all daily 10001 times", "too often to be announced all at once"),
        ("@9 +8h all daily until 9999-01-01", "too often to be announced all at once"),
        ("@9 +8h all announced -7d", "announced after its begin"),
        ("@9 +8h all announced @10", "announced after its begin"),
        ("@9 +8h all announced 2017-01-30", "announced after its begin"),
        ("@9 +8h all announced @2 daily", "cannot be announced at a fixed time"),
        ("@9 +8h all announced", "lead of an announcement cannot be read"),
        ("@9 +8h all named", "name of a maintenance.*found nothing"),
        ("@9 +8h all named a.b", "name of a maintenance.*'a.b'"),
        ("@9 +8h all cause", "cause.*found nothing"),
        ("@9 +8h all cause " + "x" * 201, "cause.*1 to 200"),
        ("@9 +8h all cause a\x1bb", "cause.*printable"),
    ],
)
def test_what_is_refused(text, message):
    """Each mistake has one message of one line, which says where."""
    with pytest.raises(MaintenanceError, match=f"(?s)^--maintenance: .*{message}") as caught:
        rule(text)

    assert str(caught.value).isprintable()


def test_a_clock_can_make_a_rule_impossible():
    """A time that the zone skips is rejected, and so is a length that exceeds a day of 23 hours."""
    with pytest.raises(MaintenanceError, match=r"the clock skips the begin of maintenance.*Europe/Stockholm"):
        rule("2017-03-26 02:30 +1h all", timezone=STOCKHOLM)
    with pytest.raises(MaintenanceError, match="at most 82800 s, found 84600 s"):
        rule("2017-02-01 +23.5h all daily", timezone=STOCKHOLM)


@pytest.mark.parametrize("zone", ["Nowhere/Else", "Europe", "../etc/passwd", "", "a\0b"])
def test_an_unknown_zone_is_refused(zone):
    """A workload may name any zone; only dates without an offset use it."""
    with pytest.raises(MaintenanceError, match=r"time zone of dates is unknown.*with an offset"):
        rule("2017-02-01 +1h all", timezone=zone)
    assert rule("@5 +1h all", timezone=zone).first.seconds == 5


def test_dates_need_an_epoch():
    """If the epoch is unknown, only simulated times are allowed."""
    with pytest.raises(MaintenanceError, match=r"date of time 0 is unknown.*'@3600'.*UnixStartTime"):
        rule("2017-02-01 +1h all", epoch=None)
    assert rule("@5 +1h all", epoch=None).first.seconds == 5


@given(
    begin=st.integers(0, 6 * 10**15).map(lambda micro: ZERO + timedelta(microseconds=micro)),
    letter=st.sampled_from(" T"),
    length=st.integers(1, 86400),
    nodes=st.sets(st.integers(0, 107), min_size=1).map(NodeSet.of),
    days=st.integers(1, 400),
    times=st.integers(1, 12),
    lead=st.integers(0, 10**7),
)
def test_what_is_written_is_read(begin, letter, length, nodes, days, times, lead):
    """Rules written from numbers are read as these numbers."""
    text = f"{begin:%Y-%m-%d}{letter}{begin:%H:%M:%S.%f} +{length}s {nodes} every {days} days {times} times"
    read = first(f"{text} announced {lead}s", 20)
    begins = [begin + timedelta(days=days * number) for number in range(times)]
    seconds = [(one - ZERO).total_seconds() for one in begins]

    assert [one.begin for one in read] == pytest.approx(seconds, abs=1e-5)
    assert all(one.end == one.begin + length and one.nodes == nodes for one in read)
    assert all(one.announced == max(0.0, one.begin - lead) for one in read)


@given(st.lists(st.sampled_from(WORDS)))
def test_random_words_give_a_rule_or_one_message(words):
    """Any sequence of words gives a rule with valid occurrences or one message."""
    read = rule_or_refusal(" ".join(words))
    if isinstance(read, MaintenanceError):
        return
    some = list(islice(read.occurrences("m1"), 5))
    assert all(0 <= one.announced <= one.begin < one.end for one in some)
    assert all(one.end <= other.begin and one.announced <= other.announced for one, other in pairwise(some))


@given(st.text())
def test_any_text_is_refused_in_one_way(text):
    """No text raises any other exception than ours."""
    for line in (text, f"@1 +1h {text}", f"2017-02-{text}"):
        assert str(rule_or_refusal(line)).isprintable()
