"""Chapter 4 of the thesis: every figure that its tables print, and where they cannot be right."""

import math

import numpy as np
import pytest

from pipistrelle.models.reliability.jobs import (
    PROBABILITIES,
    ReliabilityError,
    change,
    interval,
    job_change,
    job_reliability,
    required_mttf,
    required_mttf_in_series,
    series_reliability,
)
from pipistrelle.models.reliability.resources import needs
from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.platforms.topology.partitions import by_mttf, observed, partition, partition_sizes, ranks


def test_required_mttf(classes, paper):
    """Table 4.3: all 99 values, to the digits that are printed."""
    rows = [line.split() for line in paper.entry("table-4.3").printed["required"].strip().splitlines()]
    for one, row in zip(classes, rows, strict=True):
        for probability, text in zip(PROBABILITIES, row, strict=True):
            found = required_mttf(probability, one.size, one.service_95)
            digit = 0.01 if "E" not in text else 10 ** (int(text.partition("E+")[2]) - 2)
            assert abs(found - float(text)) <= 0.51 * digit + 2e-5 * found, (one.size, probability)


def test_what_is_required_is_what_holds():
    """Both laws are inverse to their requirements; for nodes in series it is n^(1/beta - 1) as much."""
    for size, time, probability in ((1, 3.0, 0.9), (512, 8.37, 0.6), (40960, 1.274, 0.99)):
        node = required_mttf(probability, size, time)
        series = required_mttf_in_series(probability, size, time)
        assert job_reliability(node, size, time) == pytest.approx(probability)
        assert series_reliability(series, size, time) == pytest.approx(probability)
        assert series / node == pytest.approx(size ** (1 / 0.7 - 1))


def test_costs_and_ranks(classes, paper, printed):
    """Table 4.4, exactly."""
    assert [round(one.cost, 3) for one in classes] == paper.entry("table-4.4").printed["costs"]
    assert [ranks(classes).index(at) + 1 for at in range(len(classes))] == printed.ranks


def test_most_nodes(classes, printed):
    """Table 4.5's C_max is n lambda t of table 4.2, which is rounded to three digits."""
    for one, most in zip(classes, printed.most, strict=True):
        assert abs(one.load - most) <= max(0.5, 0.0025 * most), one.size


@pytest.mark.parametrize("blocking", [0.1, 0.2])
def test_types_one_and_four(printed, blocking):
    """(1 - B) of the printed C_max, within one node."""
    for found, expected in zip(needs(printed.most, blocking).plain, printed.plain[blocking], strict=True):
        assert abs(found - expected) <= 1.0


def test_types_two_and_three_at_a_tenth(printed):
    """They are (1 - B) C_r + B C_(r-1) of C_max by size, and not equation 3.14, which is up to 62 nodes off them."""
    found = needs(printed.most, 0.1)

    assert max(abs(a - b) for a, b in zip(found.by_size, printed.chained[0.1], strict=True)) <= 1.0
    assert 60 < max(abs(a - b) for a, b in zip(found.chained, printed.chained[0.1], strict=True)) <= 70


def test_types_two_and_three_at_a_fifth(printed):
    """Neither form has these: both are hundreds of nodes away."""
    found = needs(printed.most, 0.2)

    for form in (found.by_size, found.chained):
        assert max(abs(a - b) for a, b in zip(form, printed.chained[0.2], strict=True)) > 490


@pytest.mark.parametrize(
    ("blocking", "expected", "extra"),
    [
        (0.0, [16384, 11305, 4993, 5454, 2824], 0),
        (0.1, [16384, 10174, 4494, 4909, 3319, 1680], 0),
        (0.2, [16384, 9044, 4096, 4363, 2950, 3323, 256, 128, 105], 311),
    ],
)
def test_sizes_of_partitions(classes, printed, blocking, expected, extra):
    """Tables 4.6 and 4.7 (types I and IV) from the printed C_r; 4.6 has the 1680 nodes under type II."""
    sized, left = partition_sizes(classes, 40960, blocking, printed.plain.get(blocking, printed.most))

    assert [one.units for one in sized] == expected
    assert left == extra


def test_sizes_from_the_rates(classes):
    """From table 4.2's own, rounded, figures they are those within ten nodes."""
    sized, left = partition_sizes(classes, 40960, 0.0)

    assert [one.units for one in sized] == [16384, 11299, 4993, 5456, 2828]
    assert left == 0


def test_means_of_partitions(classes, printed, midpoints):
    """From the middles of table 5.1's ranges; the first three of table 5.2 are others."""
    sized, _ = partition_sizes(classes, 40960, 0.0, printed.most)
    machine = Machine(40960, homogeneous(40960, "x").info)
    found, extra = partition(sized, midpoints, machine)

    assert [round(one.mttf, 2) for one in found] == [12105.44, 9839.25, 8952.88, 8123.67, 7602.69]
    assert [len(one.units) for one in found] == [16384, 11305, 4993, 5454, 2824]
    assert not extra
    assert round(float(midpoints.mean()), 2) == 10255.04


def test_reliability_before_and_after(classes, printed):
    """Table 4.8, both columns, all 22 values."""
    for one in classes:
        own = printed.mttf[one.size]
        before, after = (job_reliability(mttf, one.size, one.service_95) for mttf in (printed.machine, own))
        assert (round(before, 4), round(after, 4)) == printed.reliability[one.size]


def equation_as_printed(size, dump, before, after):
    """Return the change of the cost by equation 4.5 as it is printed, which lacks a factor 1 / sqrt(2 delta)."""
    root = math.sqrt(dump / 2.0)
    first, second = math.sqrt(before), math.sqrt(after)
    return 60.0 * dump * size * (first - second) / ((first - root) * (second - root))


def test_checkpoints_as_printed(printed):
    """Table 4.10 is the dump in minutes with mean times to failure in hours; its net is -377.42."""
    found = {size: change(size, printed.dump, printed.machine, printed.mttf[size]) for size in printed.checkpoints}

    for size, (longer, cost) in printed.checkpoints.items():
        assert found[size].interval == pytest.approx(longer, abs=0.006)
        assert found[size].cost == pytest.approx(cost, abs=0.006)
    assert sum(one.cost for one in found.values()) == pytest.approx(-377.42, abs=0.006)
    printed_form = equation_as_printed(16384, printed.dump, printed.machine, printed.mttf[16384])
    assert printed_form == pytest.approx(-8077, abs=0.5)
    assert printed_form / math.sqrt(2 * printed.dump) == pytest.approx(found[16384].cost)


def test_checkpoints_in_one_unit(printed):
    """All in minutes: +303.72 min, -224.61 and net -47.57 node-minutes an hour; a 16384-node job lives 44.3 min."""
    minutes = {size: 60 * mttf for size, mttf in printed.mttf.items()}
    found = {size: change(size, printed.dump, 60 * printed.machine, minutes[size]) for size in printed.checkpoints}

    assert found[16384].interval == pytest.approx(303.72, abs=0.005)
    assert found[16384].cost == pytest.approx(-224.61, abs=0.005)
    assert sum(one.cost for one in found.values()) == pytest.approx(-47.57, abs=0.005)
    assert minutes[16384] / 16384 == pytest.approx(44.3, abs=0.05)
    for_job = job_change(16384, printed.dump, 60 * printed.machine, minutes[16384])
    assert for_job.interval == pytest.approx(
        math.sqrt(20 * minutes[16384] / 16384) - math.sqrt(20 * 60 * printed.machine / 16384)
    )


def test_a_dump_that_takes_longer_than_nodes_live():
    """Then the interval is the mean time to failure, not a negative number."""
    assert interval(10.0, 4.0) == 4.0
    assert interval(10.0, 5.0) == 5.0
    assert interval(10.0, 6.0) > 0


@pytest.mark.parametrize("mttf", [0.0, -3.0, math.nan])
def test_a_node_lives_some_time(mttf):
    """A mean time to failure that is not above zero is refused by name."""
    with pytest.raises(ReliabilityError, match="MTTF: a mean time to failure is out of range"):
        job_reliability(mttf, 4, 1.0)
    with pytest.raises(ReliabilityError, match="MTTF: a mean time to failure is out of range"):
        interval(1.0, mttf)


def test_outages_move_nodes():
    """A known MTTF M counts as one failure in M; unknown nodes share the machine's average."""
    known = observed(np.array([100.0, 200.0, 300.0]), np.array([0, 0, 3]), 100.0)
    unknown = observed(np.full(4, np.nan), np.array([0, 1, 0, 1]), 50.0)

    assert known.tolist() == [200.0, 300.0, 100.0]
    assert by_mttf(known).tolist() == [1, 0, 2]
    assert by_mttf(unknown).tolist() == [0, 2, 1, 3]
    assert unknown[0] == 100.0 + 50.0
    assert np.isnan(observed(np.full(2, np.nan), np.zeros(2, dtype=np.int64), 9.0)).all()
