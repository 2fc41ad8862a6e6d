"""Pictures of a study, checked by their texts, axes and artists."""

import math
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from pipistrelle.models.samples.estimates import StatisticsError
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.studies.inference.reports import by_size
from pipistrelle.studies.inference.trials import TrialTable
from pipistrelle.studies.inference.words import words_of
from pipistrelle.studies.measures.distributions import STEPS
from pipistrelle.studies.pictures import style
from pipistrelle.studies.pictures.categories import categories_picture
from pipistrelle.studies.pictures.choices import draw_study
from pipistrelle.studies.pictures.curves import curves_picture
from pipistrelle.studies.pictures.distributions import default_distribution, ecdf_picture
from pipistrelle.studies.pictures.sizes import sizes_picture
from pipistrelle.studies.pictures.style import AxisScale, PictureLook, selection_text, short_labels

SVG = PictureLook(suffix=".svg")
LOG = PictureLook(suffix=".svg", log_scale=True)


@pytest.fixture
def figure(monkeypatch):
    """Return a figure that pictures are drawn in, instead of a file."""
    found = Figure(layout="constrained")

    def draw_in(suffix, draw, width, height, font):
        found.set_size_inches(width, height)
        draw(found)
        found.draw_without_rendering()
        return b""

    monkeypatch.setattr(style, "drawn_as", draw_in)
    return found


def study(lost=(), replicas=4):
    """Return trials of two logs and three policies; ``lost`` lists (log, policy, replica) that stalled."""
    rows = []
    for log, factor in (("kth", 3600.0), ("hpc2n", 36000.0)):
        for number, policy in enumerate(("fcfs", "easy", "sjf")):
            for replica in range(replicas):
                gone = (log, policy, replica) in lost
                waits = np.sort(np.arange(STEPS + 1) * factor / STEPS * (3 - number)).tolist()
                rows.append(
                    {
                        "log": log,
                        "policy": policy,
                        "replica": replica,
                        "reason": "stalled" if gone else "completed",
                        "cause": "jobs wait" if gone else "",
                        "mean_wait": None if gone else factor * (3 - number) * (1 + 0.1 * replica),
                        "utilisation": None if gone else 0.5 + 0.1 * number,
                        "wait_quantiles": None if gone else waits,
                    }
                )
    return TrialTable({name: [row[name] for row in rows] for name in rows[0]}, axes=["log", "policy"])


def texts(figure):
    """Return all texts of a figure that can be seen."""
    return [one.get_text() for one in figure.findobj(lambda one: hasattr(one, "get_text")) if one.get_text()]


def test_bars_have_categories_words_and_units(figure):
    """A bar per log and policy with its interval, labels in words with units, and a title of what varies."""
    categories_picture(study(), SVG, "bars", x="log", by="policy", panels=None, metrics=["mean_wait"])
    (axes,) = figure.axes

    assert [one.get_text() for one in axes.get_xticklabels()] == ["kth", "hpc2n"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("log", "mean wait (hours)")
    assert figure.get_suptitle() == "mean wait by log and policy"
    assert len(axes.containers) == 12  # six bars, six intervals
    heights = [bar.get_height() for one in axes.containers for bar in one if hasattr(bar, "get_height")]
    assert heights == pytest.approx([3 * 1.15, 30 * 1.15, 2 * 1.15, 20 * 1.15, 1.15, 11.5])
    assert [one.get_text() for one in axes.get_legend().get_texts()] == ["fcfs", "easy", "sjf"]
    assert axes.get_legend().get_title().get_text() == "policy"


def test_bars_of_fewer_trials_are_hatched_and_counted(figure):
    """A mean over the survivors is hatched; a cell without any says so at the foot; a note names the cause."""
    lost = [("kth", "fcfs", 0), *(("hpc2n", "easy", replica) for replica in range(4))]
    categories_picture(study(lost), SVG, "bars", x="log", by="policy", panels=None, metrics=["mean_wait"])
    (axes,) = figure.axes

    said = texts(figure)
    assert "3 of 4" in said
    assert "none of 4" in said
    assert "hatched: 5 trials have no value (5 stalled)" in said
    bars = [bar for one in axes.containers for bar in one if hasattr(bar, "get_hatch")]
    assert [bool(bar.get_hatch()) for bar in bars].count(True) == 1


WHOLE_LOG = [("kth", policy, replica) for policy in ("fcfs", "easy", "sjf") for replica in range(4)]
WHOLE_POLICY = [(log, "sjf", replica) for log in ("kth", "hpc2n") for replica in range(4)]


@pytest.mark.parametrize("kind", ["bars", "boxes"])
@pytest.mark.parametrize("lost", [WHOLE_LOG, WHOLE_POLICY], ids=["first log", "last policy"])
@pytest.mark.parametrize(("x", "by"), [("log", "policy"), ("policy", "log")])
def test_a_category_without_values_keeps_its_place(figure, kind, lost, x, by):
    """A log or policy whose trials all stalled is labelled, in the legend, and counted inside the axes."""
    categories_picture(study(lost), SVG, kind, x=x, by=by, panels=None, metrics=["mean_wait"])
    (axes,) = figure.axes
    categories = {"log": ["kth", "hpc2n"], "policy": ["fcfs", "easy", "sjf"]}
    marks = [one for one in axes.texts if one.get_text() == "none of 4"]
    low, high = axes.get_xlim()

    assert [one.get_text() for one in axes.get_xticklabels()] == categories[x]
    assert [one.get_text() for one in axes.get_legend().get_texts()] == categories[by]
    assert len(marks) == len(lost) / 4
    assert all(low < mark.xy[0] < high for mark in marks)
    assert f"{len(lost)} trials have no value ({len(lost)} stalled)" in texts(figure)


@pytest.mark.parametrize("kind", ["bars", "boxes"])
def test_a_panel_without_values_stays(figure, kind):
    """It has its title, its categories and their counts, but no numbers that would mean nothing."""
    metrics = ["mean_wait", "utilisation"]
    categories_picture(study(WHOLE_LOG), SVG, kind, x="policy", by=None, panels="log", metrics=metrics)
    first = figure.axes[0]

    assert [axes.get_title() for axes in figure.axes] == ["log kth", "log hpc2n"] * 2
    assert [one.get_text() for one in first.get_xticklabels()] == ["fcfs", "easy", "sjf"]
    assert [one.get_text() for one in first.texts] == ["none of 4"] * 3
    assert not first.get_yticks().size
    assert "12 trials have no value (12 stalled)" in texts(figure)  # each once, not once per metric


@pytest.mark.parametrize("metric", ["wait", "mean_wait"])
def test_a_curve_without_values_is_in_the_legend(figure, metric):
    """The panel of a log whose trials all stalled names every policy and counts its trials."""
    ecdf_picture(study(WHOLE_LOG), SVG, by="policy", panels="log", metric=metric)
    first = figure.axes[0]

    assert first.get_title() == "log kth"
    assert [one.get_text() for one in first.get_legend().get_texts()] == [
        "fcfs (0 of 4)",
        "easy (0 of 4)",
        "sjf (0 of 4)",
    ]


def test_boxes_in_panels(figure):
    """One panel per log, each with a box per policy, and its own scale."""
    categories_picture(study(), SVG, "boxes", x="policy", by=None, panels="log", metrics=["mean_wait"])

    assert [axes.get_title() for axes in figure.axes] == ["log kth", "log hpc2n"]
    assert all([one.get_text() for one in axes.get_xticklabels()] == ["fcfs", "easy", "sjf"] for axes in figure.axes)
    assert all(len(axes.patches) == 3 for axes in figure.axes)
    assert figure.axes[0].get_ylim()[1] < figure.axes[1].get_ylim()[1]
    assert figure.get_suptitle() == "mean wait by policy and log"


def test_several_metrics_are_rows_of_panels(figure):
    """Two metrics and two logs make four panels with the units of their rows."""
    metrics = ["mean_wait", "utilisation"]
    categories_picture(study(), SVG, "bars", x="policy", by=None, panels="log", metrics=metrics)

    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["mean wait (hours)"] * 2 + ["utilisation (%)"] * 2
    assert figure.axes[2].get_ylim()[1] > 70
    assert figure.get_suptitle() == "by policy and log"


def test_distributions_of_jobs(figure):
    """Half of the jobs wait at most half of the longest wait; times on the axis are in words."""
    ecdf_picture(study(), SVG, by="policy", panels="log", metric="wait")
    first, second = figure.axes

    assert (first.get_xlabel(), first.get_ylabel(), second.get_ylabel()) == ("wait", "share of jobs", "")
    assert [one.get_text() for one in first.get_xticklabels()][:4] == ["1 s", "1 min", "1 h", "1 d"]
    curve = first.lines[0]
    at = np.searchsorted(curve.get_xdata(), 3 * 1800.0)
    assert curve.get_ydata()[at] == pytest.approx(0.5, abs=0.01)
    assert curve.get_ydata()[-1] == 1.0
    assert len(first.lines) == len(first.collections) == 3  # each with its interval
    assert figure.get_suptitle() == "wait by policy and log"
    assert default_distribution(study()) == "wait"


def test_distributions_of_replicas_end_below_one_without_all_figures(figure):
    """The share is of all replicas, so that stalled ones are not forgotten."""
    ecdf_picture(study([("kth", "easy", 1)]), SVG, by="policy", panels="log", metric="mean_wait")
    first, second = figure.axes

    assert [max(line.get_ydata()) for line in first.lines] == [1.0, 0.75, 1.0]
    assert [max(line.get_ydata()) for line in second.lines] == [1.0, 1.0, 1.0]
    assert "easy (3 of 4)" in texts(figure)
    assert first.get_xlabel() == "mean wait (hours)"
    assert "curves below 1: 1 trials have no value (1 stalled)" in texts(figure)


def test_a_distribution_that_was_not_kept(figure):
    """The error says what to add to the study."""
    with pytest.raises(StatisticsError, match=r'Add distributions = \["slowdown"\]'):
        ecdf_picture(study(), SVG, by="policy", panels="log", metric="slowdown")
    with pytest.raises(StatisticsError, match="other axes have more than one value: log"):
        ecdf_picture(study(), SVG, by="policy", panels=None, metric="wait")
    with pytest.raises(StatisticsError, match="other axes have more than one value: policy"):
        categories_picture(study(), SVG, "bars", x="log", by=None, panels=None, metrics=["mean_wait"])


def test_curves_with_gaps(figure, make_trials):
    """A mean of fewer replicas is hollow, a cell without any is named at the foot, and its curve has no point there."""
    trials = TrialTable.read(make_trials()).only([("policy", "easy")])
    waits = trials.columns["mean_wait"]
    for row, (factor, repair, replica) in enumerate(
        zip(*(trials.columns[name] for name in ("reliability_factor", "repair", "replica")), strict=True)
    ):
        if factor == 4 and (repair == "1d" or (repair == "5d" and replica > 4)):
            waits[row] = None
    trials.columns["reason"] = ["stalled" if wait is None else "completed" for wait in waits]
    curves_picture(trials, SVG, x="repair", by="reliability_factor", metric="mean_wait", targets=[5000.0])
    (axes,) = figure.axes

    said = texts(figure)
    assert {"none of 8", "5 of 8", "hollow: 11 trials have no value (11 stalled)"} <= set(said)
    assert axes.get_xlabel() == "repair time"
    assert axes.get_ylabel() == "mean wait (minutes)"
    assert figure.get_suptitle() == "mean wait by repair time and factor of failure rates"
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert [len(line.get_xdata()) for line in hollow] == [2]
    assert sum(math.isnan(value) for value in hollow[0].get_ydata()) == 1


@pytest.mark.parametrize("normalised", [False, True])
def test_curves_keep_places_without_values(figure, make_trials, normalised):
    """The first and last place of the axis stay if their trials have no value, and the marks of curves lie apart."""
    trials = TrialTable.read(make_trials()).only([("policy", "easy")])
    waits = trials.columns["mean_wait"]
    ends = (trials.values("repair")[0], trials.values("repair")[-1])
    for row, repair in enumerate(trials.columns["repair"]):
        waits[row] = None if repair in ends else waits[row]
    trials.columns["reason"] = ["stalled" if wait is None else "completed" for wait in waits]
    curves_picture(trials, SVG, x="repair", by="reliability_factor", metric="mean_wait", normalised=normalised)
    (axes,) = figure.axes
    low, high = axes.get_xlim()
    marks = [(one.xy[0], one.xyann[0]) for one in axes.texts if one.get_text() == "none of 8"]

    assert {at for at, _ in marks} == {parse_seconds(text) for text in ends}
    assert all(low < at < high for at, _ in marks)
    assert len(marks) == len(set(marks)) == 2 * len(trials.values("reliability_factor"))
    assert ("no first value" in texts(figure)) == normalised
    assert bool(axes.get_yticks().size) != normalised


def test_sizes_count_replicas_without_values(figure, make_trials):
    """A class of sizes that no replica has under one of the policies keeps its place and is counted."""
    trials = TrialTable.read(make_trials()).only([("repair", "1d"), ("reliability_factor", "4")])
    for row, policy in enumerate(trials.columns["policy"]):
        if policy == "easy":
            trials.columns["mean_wait_1"][row] = None
    rows = by_size(trials, "policy", "easy-slices", "easy", "mean_wait")
    sizes_picture(rows, SVG, first="easy-slices", second="easy", metric="mean_wait")
    axes = figure.axes[0]

    assert axes.get_xticklabels()[0].get_text() == "1"
    assert [one.get_text() for one in axes.texts] == ["none of 8"]
    assert "8 trials have no value" in " ".join(texts(figure))


@pytest.mark.parametrize("kind", ["bars", "ecdf"])
def test_the_title_says_the_selection(figure, kind):
    """A second line has the values of --where; a title of one's own replaces both lines."""
    one = study().only([("log", "kth")])
    some = study().only([("policy", "fcfs"), ("policy", "sjf"), ("policy", "sjf")])
    found = []
    for trials in (one, some, one.only([("policy", "easy")])):
        if trials.axes:
            draw_study(trials, SVG, kind)
            found.append(figure.get_suptitle().partition("\n")[2])
            figure.clear()
    draw_study(one, PictureLook(suffix=".svg", title="Mine"), kind)

    assert found == ["log kth", "policy fcfs or sjf"]
    assert figure.get_suptitle() == "Mine"
    assert selection_text({"log": ["x/a.swf", "b.swf", "c", "d", "e", "f"], "repair": ["1h"]}) == (
        "log a or b or c or d or 2 more, repair time 1h"
    )


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (["1min", "1h", "12h", *(f"{day}d" for day in range(1, 21))], "linear"),
        (["1h", "2h", "4h", "8h", "16h", "32h"], "log"),
        ([*(f"{hour}h" for hour in range(1, 31)), "9w"], "log"),
        (["1h", "5h"], "linear"),
    ],
)
@pytest.mark.parametrize("panels", [None, "policy"])
def test_curves_join_the_means_on_a_readable_axis(figure, values, scale, panels):
    """A curve that falls and rises is drawn as it is; the scale spaces the values, and no two labels touch."""
    policies = ["easy", "fcfs"] if panels else ["easy"]
    rows = [
        {"repair": value, "policy": policy, "replica": replica, "mean_wait": 100.0 + (place % 3) * 40 + replica}
        for policy in policies
        for place, value in enumerate(values)
        for replica in range(2)
    ]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    trials = TrialTable(
        {
            **columns,
            "repair_seconds": [parse_seconds(text) for text in columns["repair"]],
            "reason": ["completed"] * len(rows),
        },
        axes=["repair", "policy"],
    )
    curves_picture(trials, SVG, x="repair", by=None, metric="mean_wait", panels=panels)
    for axes in figure.axes:
        assert axes.get_xscale() == scale
        heights = axes.lines[0].get_ydata() * (60 if "minutes" in figure.axes[0].get_ylabel() else 1)
        assert heights.tolist() == pytest.approx([100.5 + (place % 3) * 40 for place in range(len(values))])
        figure.canvas.draw()
        boxes = [one.get_window_extent() for one in axes.get_xticklabels() if one.get_text()]
        assert len(boxes) >= 2
        assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


@pytest.mark.parametrize("kind", ["bars", "boxes"])
def test_a_logarithmic_axis_has_all_bars_and_intervals(figure, kind):
    """The axis begins below the lowest interval; without the option it is linear."""
    categories_picture(study(), LOG, kind, x="log", by="policy", panels=None, metrics=["mean_wait"])
    (axes,) = figure.axes

    assert axes.get_yscale() == "log"
    assert 0 < axes.get_ylim()[0] < 1.0  # the lowest mean is 1.15 hours
    assert axes.get_ylim()[1] > 30.0


def test_curves_have_a_logarithmic_axis(figure, make_trials):
    """Curves have one, too."""
    trials = TrialTable.read(make_trials()).only([("policy", "easy")])
    curves_picture(trials, LOG, x="repair", by="reliability_factor", metric="mean_wait")

    assert figure.axes[0].get_yscale() == "log"


def test_a_logarithmic_axis_refuses_a_mean_of_zero():
    """A bar of height 0 would not be seen, so the message says what to do."""
    rows = [{"policy": name, "replica": 0, "mean_wait": wait} for name, wait in (("fcfs", 9.0), ("easy", 0.0))]
    trials = TrialTable({name: [row[name] for row in rows] for name in rows[0]})
    with pytest.raises(StatisticsError, match=r"logarithmic axis cannot show.*values above 0, found 0.*linear axis"):
        categories_picture(trials, LOG, "bars", x="policy", by=None, panels=None, metrics=["mean_wait"])


def test_pictures_have_equal_bytes(make_trials):
    """Curves, normalised ones, and differences by size are drawn; twice the same, as SVG and as PDF."""
    trials = TrialTable.read(make_trials())
    told = {"x": "repair", "by": "reliability_factor", "metric": "mean_wait"}
    easy = trials.only([("policy", "easy")])
    for look in (SVG, PictureLook(suffix=".pdf", font="cm", size=(3.5, 2.5))):
        plain = curves_picture(easy, look, targets=[5000.0], **told)
        assert plain == curves_picture(easy, look, targets=[5000.0], **told)
    plain = curves_picture(easy, SVG, **told)
    assert b"factor of failure rates" in plain
    assert b"13 d" in plain
    assert b"normalised" in curves_picture(easy, SVG, normalised=True, **told)
    assert b">policy easy<" in curves_picture(trials, SVG, panels="policy", **told)
    one = trials.only([("repair", "1d"), ("reliability_factor", "4")])
    rows = by_size(one, "policy", "easy-slices", "easy")
    picture = sizes_picture(rows, SVG, first="easy-slices", second="easy", metric="mean_wait")
    assert b"16 or more" in picture
    assert b"all jobs: +5.0 %" in picture
    assert b"mean wait by job size: easy less easy-slices" in picture


@pytest.mark.parametrize(("font", "embedded"), [("sans", b"DejaVuSans"), ("stix", b"STIXGeneral"), ("cm", b"Cmr10")])
def test_fonts_of_a_pdf_are_embedded_as_truetype(font, embedded):
    """No font is of Type 3, which publishers refuse, and each is in the file."""
    look = PictureLook(suffix=".pdf", font=font, title="one_two < 3 % & more")
    raw = categories_picture(study(), look, "bars", x="log", by="policy", panels=None, metrics=["mean_wait"])

    assert b"+" + embedded in raw
    assert b"/FontFile2" in raw
    assert b"/Type3" not in raw


def test_titles_are_replaced_or_left_out(figure):
    """A paper has its title in the caption."""
    for title, shown in (("", ""), ("Mine", "Mine")):
        categories_picture(
            study(),
            PictureLook(suffix=".svg", title=title),
            "bars",
            x="log",
            by="policy",
            panels=None,
            metrics=["mean_wait"],
        )
        assert figure.get_suptitle() == shown
        figure.clear()


def test_scales_and_labels():
    """Units follow the largest value, and files are called by their names if these differ."""
    assert AxisScale.of(words_of("mean_wait"), [90.0]).text == "mean wait (seconds)"
    assert AxisScale.of(words_of("mean_wait"), [None, 400.0]) == AxisScale(60.0, "mean wait (minutes)")
    assert AxisScale.of(words_of("makespan"), [1e6]).text == "makespan (days)"
    assert AxisScale.of(words_of("energy"), [5000.0]).text == "energy (MWh)"
    assert AxisScale.of(words_of("mean_bounded_slowdown"), []).text == "mean bounded slowdown"
    assert short_labels(["logs/a.swf.gz", "b.toml", "demo", 4]) == ["a", "b", "demo", "4"]
    assert short_labels(["x/a.swf", "y/a.swf"]) == ["x/a.swf", "y/a.swf"]
