"""``pipistrelle workload``: describe a workload, change it in steps, and errors."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import click
import pytest

from pipistrelle.cli.main import cli
from pipistrelle.cli.workload.steps import STEPS
from pipistrelle.protocol.base.errors import InputError
from pipistrelle.runs.inputs.selection import Conditions
from pipistrelle.traces.catalogue import load_bundled
from pipistrelle.traces.load import load

DATED = """; Version: 2.2
; MaxJobs: 6
; UnixStartTime: 1027839845
; TimeZoneString: Europe/Stockholm
; MaxProcs: 16
; Queue: 1 batch
; Queue: 2 express
"""
#: id, submit, run time, size, requested time, user, queue, preceding
ROWS = (
    (1, 0, 100, 1, 200, 3, 1, -1),
    (2, 3600, 200, 2, 200, 3, 2, 1),
    (3, 7200, 300, 4, 200, 5, 1, -1),
    (4, 90000, 400, 8, 800, 5, 2, 3),
    (5, 93600, -1, 16, 900, 7, 1, -1),
    (6, 200000, 600, 16, 1200, 7, 1, -1),
)
UNCHANGED = ("then", "filter", "--size", "0:")


@pytest.fixture
def log(shell):
    """Return the name of a small log with dates, users and queues, in the test's folder."""
    lines = [f"{j} {s} -1 {r} {n} -1 -1 {n} {w} -1 1 {u} 1 -1 {q} -1 {p} -1" for j, s, r, n, w, u, q, p in ROWS]
    return shell.write("log.swf", DATED + "\n".join(lines) + "\n").name


@pytest.fixture
def made(shell, log):
    """Return a function from the words of a step to the workload that it makes of the log."""

    def make(*words):
        shell.run("workload", words[0], log, *words[1:], "-o", "out.swf").ok()
        return load(shell.folder / "out.swf")

    return make


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["--begin", "3600", "--end", "90000"], "23"),
        (["--begin", "1h", "--end", "25h"], "23"),
        (["--begin", "2002-07-29"], "456"),  # the log begins at 9:04:05 there, on the 28th
        (["--begin", "2002-07-28 09:04:06", "--end", "2002-07-29T10:04:05"], "23"),
        (["--begin", "2002-07-28 07:04:06", "--timezone", "UTC", "--end", "2002-07-29"], "23"),
        (["--size", "4"], "3"),
        (["--size", "2:8"], "234"),
        (["--size", "8:"], "456"),
        (["--runtime", ":5min"], "1235"),
        (["--runtime", "200:400", "--walltime", "201:"], "4"),
        (["--user", "3,7"], "1256"),
        (["--user", "3", "--user", "5", "--queue", "2"], "24"),
        (["--queue", "express"], "24"),
        (["--queue", "express", "--invert"], "1356"),
        (["--clean"], "12346"),
        (["--first", "2"], "12"),
        (["--last", "2"], "56"),
        (["--user", "7", "--first", "1"], "5"),
        (["--sample", "100%"], "123456"),
        (["--size", "1:4", "then", "filter", "--user", "5"], "3"),
    ],
)
def test_jobs_are_chosen(made, words, ids):
    """By time, size, field or number; all conditions must hold, each by one of its values."""
    assert "".join(made("filter", *words).ids) == ids


def test_jobs_are_chosen_by_names_of_the_log():
    """The log's names take precedence over numbers; a job without a name never matches."""
    rows = load_bundled("demo").select([0, 1, 2])
    named = replace(rows, labels={"account": ["phys", "", "chem"], "user": ["ann", "bob", "ann"]})

    assert Conditions(fields={"account": ["phys", "chem"], "user": ["ann"]}).mask(named).tolist() == [True, False, True]
    with pytest.raises(InputError, match=r"no job has the user '1'.*Known: ann, bob"):
        Conditions(fields={"user": ["1"]}).mask(named)


@pytest.mark.parametrize("name", ["describe", *STEPS])
def test_help_explains_every_option(shell, name):
    """Each option has a help text, and each step says that others may follow."""
    out = shell.run("workload", name, "--help").ok().out

    context = click.Context(cli)
    for parameter in cli.get_command(context, "workload").get_command(context, name).params:
        for option in parameter.opts if parameter.param_type_name == "option" else []:
            assert re.search(rf"(^|[\s,/]){re.escape(option)}([\s,/]|$)", out, re.MULTILINE), option
            assert parameter.help, option
    assert ("[then STEP...]" in out) == (name in STEPS)


def test_a_part_can_begin_at_time_0(made):
    """Dates stay, dependencies on omitted jobs are dropped, and the header records the change."""
    part = made("filter", "--begin", "2002-07-28 9:30", "--rebase")

    assert part.submit.tolist() == [0, 3600, 86400, 90000, 196400]
    assert part.epoch == 1027839845 + 3600
    assert part.columns["preceding"].tolist() == [-1, -1, 3, -1, -1]
    assert part.header["MaxJobs"] == "5"
    assert part.header["Note"] == "changed by pipistrelle: filter --begin 2002-07-28 9:30 --rebase"


def test_times_and_sizes_are_scaled(made):
    """Arrivals, run times, requested times, sizes and the machine: alone and combined."""
    assert made("scale", "--arrivals", "50%").submit.tolist() == [0, 1800, 3600, 45000, 46800, 100000]
    assert made("scale", "--runtimes", "2").runtime.tolist() == [200, 400, 600, 800, -1, 1200]
    assert made("scale", "--walltime", "150%").walltime.tolist() == [150, 300, 450, 600, 900, 900]
    assert made("scale", "--wallclock-limit", "x2").walltime.tolist() == [400, 400, 400, 1600, 1800, 2400]
    assert set(made("scale", "--walltime", "1h").walltime) == {3600}
    assert made("scale", "--sizes", "0.5").size.tolist() == [1, 1, 2, 4, 8, 8]
    fitted = made("scale", "--machine", "8", "--runtimes", "2", "--walltime", "100%")
    assert (fitted.machine_size, fitted.size.tolist()) == (8, [1, 1, 2, 4, 8, 8])
    assert fitted.walltime.tolist() == [200, 400, 600, 800, 900, 1200]
    limits = made("scale", "--walltime", "50%:150%", "--seed", "3").walltime
    assert limits.tolist() == made("scale", "--walltime", "50%:150%", "--seed", "3").walltime.tolist()
    assert set(made("scale", "--walltime", "7:8").walltime) <= {7, 8}


def test_steps_follow_each_other(shell, log, made):
    """One command, or several with files between them, give the same jobs; each step prints their number."""
    words = ("filter", log, "--size", ":8", "then", "copy", "--times", "2", "--every", "7d", "then", "scale")
    outcome = shell.run("workload", *words, "--arrivals", "2", "then", "shuffle", "--within", "1d", "-o", "a.swf").ok()
    shell.run("workload", "filter", log, "--size", ":8", "-o", "1.swf").ok()
    shell.run("workload", "copy", "1.swf", "--times", "2", "--every", "7d", "-o", "2.swf.gz").ok()
    shell.run("workload", "scale", "2.swf.gz", "--arrivals", "2", "-o", "3.swf").ok()
    shell.run("workload", "shuffle", "3.swf", "--within", "1d", "-o", "a2.swf").ok()

    assert outcome.out == "filter: 6 jobs become 4\ncopy: 4 jobs become 8\n8 jobs written to a.swf\n"
    jobs = [
        [line for line in (shell.folder / name).read_text().splitlines() if line[0] != ";"]
        for name in ("a.swf", "a2.swf")
    ]
    assert jobs[0] == jobs[1]
    note = load(shell.folder / "a.swf").header["Note"]
    said = "filter --size :8 then copy --times 2 --every 7d then scale --arrivals 2 then shuffle --within 1d"
    assert note == f"changed by pipistrelle: {said}"


def test_equal_seeds_give_equal_bytes(shell, log):
    """Other seeds give other jobs."""
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        words = ("--submission-time", "200:exp", "--seed", seed)
        shell.run("workload", "shuffle", log, *words, "-o", f"{name}.swf.gz").ok()
    a, b, c = ((shell.folder / f"{name}.swf.gz").read_bytes() for name in "abc")

    assert a == b != c


def test_workloads_are_merged(shell, log):
    """By dates if all workloads have dates; a later step may merge the result of earlier ones."""
    shell.run("workload", "filter", log, "--begin", "1d", "-o", "late.swf").ok()
    shell.run("workload", "filter", log, "--end", "1d", "-o", "early.swf").ok()
    outcome = shell.run("workload", "merge", "late.swf", "early.swf", "-o", "m.swf").ok()

    assert outcome.out.splitlines()[0] == "merge: equal dates are at the same time"
    assert load(shell.folder / "m.swf").ids == list("123456")
    words = ("filter", "early.swf", "--first", "1", "then", "merge", "late.swf", "demo", "--align", "first")
    shell.run("workload", *words, "--apart", "-o", "m.json").failed(2, "cannot hold a job without run time")
    shell.run("workload", *words, "then", "filter", "--clean", "-o", "m.json").ok()
    assert len(load(shell.folder / "m.json")) == 1 + 2 + 5000


def test_a_changed_workload_is_simulated(shell, log):
    """The result can be simulated like any workload, also as JSON."""
    shell.run("workload", "filter", log, "--clean", "then", "copy", "--times", "3", "-o", "w.json").ok()
    outcome = shell.run("run", "-w", "w.json", "--in-process", "--out", "out")

    assert outcome.code == 0
    assert len(shell.ended_jobs()) == 15


def test_a_workload_is_described(shell, log):
    """Facts, distributions, accuracy, users, sizes by run time, arrivals by local time, names of the header."""
    out = shell.run("workload", "describe", log).ok().out

    for text in (
        "dropped              1 (run time zero or missing: 1)",
        "dependent            2 jobs wait for others",
        "user: 3 in all",
        "batch",
        "Jobs by size and run time, %",
        "Europe/Stockholm",
        "Mon |",
    ):
        assert text in out
    figures = json.loads(shell.run("workload", "describe", log, "--json").ok().out)
    assert (figures["jobs"], figures["runnable"], figures["dependent"]) == (6, 5, 2)
    assert figures["span"]["first_date"] == "2002-07-28 09:04"
    assert figures["size"]["greatest"] == 16
    assert figures["accuracy"]["over"] == 1
    assert sum(map(sum, figures["by_size_and_runtime"]["counts"])) == 5
    assert figures["arrivals"]["counts"][6][9:12] == [1, 1, 1]  # a Sunday
    utc = json.loads(shell.run("workload", "describe", log, "--json", "--timezone", "UTC").ok().out)
    assert utc["arrivals"]["counts"][6][7:10] == [1, 1, 1]
    small = json.loads(shell.run("workload", "describe", log, "--json", "--machine-size", "4").ok().out)
    assert small["dropped"] == {"run time zero or missing": 1, "larger than the machine": 2}


def test_a_workload_is_drawn(shell, log):
    """The picture is XML with the classes, the hours and their numbers of jobs; equal logs give equal bytes."""
    out = shell.run("workload", "describe", log, "--picture", "p.svg").ok().out
    root = ElementTree.fromstring((shell.folder / "p.svg").read_text())  # noqa: S314 - we wrote it

    assert out.endswith("picture in p.svg\n")
    texts = [text.text for text in root.findall(".//{http://www.w3.org/2000/svg}text")]
    above, below = (
        texts.index("jobs by units and run time"),
        texts.index("submissions by weekday and hour (Europe/Stockholm)"),
    )
    assert texts[texts.index("< 1 min") : above] == [
        *("< 1 min", "< 10 min", "< 1 h", "< 4 h", "< 12 h", "< 24 h", "more"),
        *("1", "2-3", "4-7", "8-15", "16-31"),
        *("1", "1", "1", "1", "1"),
    ]
    assert texts[texts.index("Sun") : below] == [
        "Sun",
        "Sat",
        "Fri",
        "Thu",
        "Wed",
        "Tue",
        "Mon",
        "1",
        "1",
        "1",
        "1",
        "1",
    ]
    assert texts[-1] == "log: 5 jobs"
    shell.run("workload", "describe", log, "--picture", "again.svg").ok()
    assert (shell.folder / "again.svg").read_bytes() == (shell.folder / "p.svg").read_bytes()


def test_a_picture_needs_what_draws_it(shell, log):
    """Without matplotlib, the error names the extra to install."""
    shell.write("matplotlib.py", "raise ImportError")
    outcome = shell.run("workload", "describe", log, "--picture", "p.svg")
    outcome.failed(2, "needs matplotlib", "pip install 'pipistrelle[report]'")


def test_a_workload_without_jobs_that_can_run_is_described(shell):
    """Also one without dates, users or duration: unknown facts are omitted or marked as unknown."""
    none = shell.swf("none.swf", [(1, 0, -1, 1, 10)])
    shell.run("workload", "describe", none, "--picture", "none.svg").ok()
    assert json.loads(shell.run("workload", "describe", none, "--json").ok().out)["runnable"] == 0
    ElementTree.fromstring((shell.folder / "none.svg").read_text())  # noqa: S314

    small = shell.run("workload", "describe", shell.small()).ok().out
    assert "weekday" not in small
    shell.write("c.json", '{"jobs":[{"id":1,"subtime":0,"res":2,"profile":"p"}],"profiles":{"p":'
                '{"type":"parallel_homogeneous","cpu":1,"com":0}}}')  # fmt: skip
    shell.run("workload", "describe", "c.json", "--picture", "c.svg").ok()
    assert json.loads(shell.run("workload", "describe", "c.json", "--json").ok().out)["load"] is None


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (["filter", "log.swf"], ["Missing option '-o'"]),
        (["filter", "-o", "x.swf", "--first", "1"], ["Missing argument 'IN'"]),
        (["filter", "log.swf", "-o", "x.swf"], ["give at least one condition"]),
        (["filter", "log.swf", "-o", "log.swf", "--first", "1"], ["nothing was overwritten"]),
        (["filter", "log.swf", "-o", "x.txt", "--first", "1"], ["suffix names no format"]),
        (["filter", "log.swf", "-o", "x.swf", "--invert"], ["--invert needs a condition"]),
        (["filter", "log.swf", "-o", "x.swf", "--timezone", "UTC", "--first", "1"], ["requires --begin"]),
        (["filter", "log.swf", "-o", "x.swf", "--begin", "2099-01-01"], ["no job is left", "6 jobs"]),
        (["filter", "log.swf", "-o", "x.swf", "--begin", "2002-13-01"], ["there is no such date"]),
        (["filter", "log.swf", "-o", "x.swf", "--begin", "soon"], ["a time cannot be read", "'soon'"]),
        (["filter", "log.swf", "-o", "x.swf", "--begin", "2002-01-01", "--timezone", "Mars"], ["unknown time zone"]),
        (["filter", "small.swf", "-o", "x.swf", "--begin", "2002-01-01"], ["the trace has no dates", "UnixStartTime"]),
        (["filter", "log.swf", "-o", "x.swf", "--size", "4:2"], ["bounds reversed"]),
        (["filter", "log.swf", "-o", "x.swf", "--size", "1.5"], ["a size is not a whole number"]),
        (["filter", "log.swf", "-o", "x.swf", "--size", ":"], ["a range of sizes cannot be read"]),
        (["filter", "log.swf", "-o", "x.swf", "--runtime", "1lightyear"], ["unknown unit"]),
        (["filter", "log.swf", "-o", "x.swf", "--user", "4"], ["no job has the user '4'", "Known: 3, 5, 7"]),
        (["filter", "log.swf", "-o", "x.swf", "--queue", "expres"], ["Did you mean 'express'?"]),
        (["filter", "log.swf", "-o", "x.swf", "--account", "a"], ["does not give a job's account", "user, group"]),
        (["filter", "log.swf", "-o", "x.swf", "--sample", "0"], ["is not above 0"]),
        (["filter", "log.swf", "-o", "x.swf", "--sample", "101%"], ["a number of jobs cannot be read"]),
        (["scale", "log.swf", "-o", "x.swf"], ["name what to scale"]),
        (["scale", "log.swf", "-o", "x.swf", "--arrivals", "0"], ["a factor cannot be read"]),
        (["scale", "log.swf", "-o", "x.swf", "--arrivals", "2", "--load", "1"], ["either --arrivals or --load"]),
        (
            ["scale", "log.swf", "-o", "x.swf", "--machine-size", "4", "--sizes", "1"],
            ["--machine-size requires --load"],
        ),
        (["scale", "log.swf", "-o", "x.swf", "--load", "nan"], ["not a finite number"]),
        (["scale", "log.swf", "-o", "x.swf", "--walltime", "50%:3"], ["the requested time cannot be read"]),
        (["scale", "log.swf", "-o", "x.swf", "--walltime", "3:2"], ["the range is empty"]),
        (["scale", "log.swf", "-o", "x.swf", "--walltime", "0%"], ["the range is empty"]),
        (["merge", "log.swf", "-o", "x.swf"], ["name the workloads to merge"]),
        (["merge", "log.swf", "small.swf", "--align", "date", "-o", "x.swf"], ["the workload has no dates"]),
        (["shuffle", "log.swf", "-o", "x.swf", "--within", "0"], ["is not above zero"]),
        (["shuffle", "log.swf", "-o", "x.swf", "--submission-time", "200:exp:s"], ["cannot be read", "--seed"]),
        (["shuffle", "log.swf", "-o", "x.swf", "--submission-time", "0:exp"], ["a mean above 0"]),
        (["copy", "log.swf", "-o", "x.swf"], ["Missing option '--times'"]),
        (["copy", "log.swf", "-o", "x.swf", "--times", "1e6"], ["--times"]),
        (["copy", "demo", "-o", "x.swf", "--times", "1000000"], ["there would be too many jobs"]),
        (["copy", "log.swf", "-o", "x.swf", "--times", "2", "--shift", "3:"], ["needs both bounds"]),
        (["copy", "log.swf", "-o", "x.swf", "--times", "2", "--shift", "-5"], ["before time 0"]),
        (["copy", "log.swf", "--times", "2", "-o", "x.swf", "then"], ["a step is missing"]),
        (["copy", "log.swf", "--times", "2", "-o", "x.swf", "then", "scal"], ["Did you mean 'scale'?"]),
        (["copy", "log.swf", "--times", "2", "-o", "x.swf", *UNCHANGED, "-o", "y.swf"], ["two outputs are given"]),
        (
            ["copy", "log.swf", "--times", "2", "then", "shuffle", "log.swf", "-o", "x.swf"],
            ["changes the previous step's workload"],
        ),
        (["describe", "log.swf", "then", "shuffle"], ["only", "describe"]),
        (["generate", "-o", "x.swf", "then", "shuffle"], ["only", "generate"]),
        (["describe", "log.swf", "--picture", "p.png"], ["draws SVG", "p.png"]),
        (["describe", "log.swf", "--timezone", "../x"], ["unknown time zone"]),
        (
            ["shuffle", "log.swf", "--units", "processors", "-o", "x.swf"],
            ["--units applies only to the log of a batch system"],
        ),
        (
            ["merge", "log.swf", "demo", "--columns", "JobID", "-o", "x.swf"],
            ["--columns applies only to the log of a batch system"],
        ),
        (
            ["copy", "log.swf", "--times", "2", "then", "shuffle", "--strict", "-o", "x.swf"],
            ["changes the previous step's workload"],
        ),
        (["filter", "log.swf", "--user", "3", "--timezone", "UTC", "-o", "x.swf"], ["--timezone requires --begin"]),
        (["describe", "logg.swf"], ["there is no workload 'logg.swf'"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_wrong_is_said(shell, log, words, fragments):
    """One message and exit code 2; nothing is written."""
    shell.small()
    before = {path.name: path.read_bytes() for path in shell.folder.iterdir()}

    shell.run("workload", *words).failed(2, *fragments)

    assert {path.name for path in shell.folder.iterdir() if path.name[0] != "."} == {n for n in before if n[0] != "."}
    assert (shell.folder / "log.swf").read_bytes() == before["log.swf"]


SACCT = """JobID|Submit|Start|End|State|Timelimit|NNodes|NCPUS|User
1|2017-03-01T08:00:00|2017-03-01T08:00:00|2017-03-01T09:00:00|COMPLETED|02:00:00|2|8|ann
2|2017-03-01T08:10:00|2017-03-01T08:10:00|2017-03-01T09:00:00|COMPLETED|02:00:00|1|4|bob
"""


@pytest.mark.parametrize(
    "step", [["filter", "--size", "0:"], ["scale", "--runtimes", "1"], ["shuffle"], ["copy", "--times", "1"], ["merge"]]
)
def test_every_step_reads_logs_as_a_run_does(shell, log, step):
    """Units, time zone and columns have the same options; unused options are refused."""
    header, _, rows = SACCT.partition("\n")
    shell.write("jobs", rows)
    reading = ("--units", "processors", "--timezone", "Europe/Prague", "--columns", header.replace("|", ","))
    shell.run("workload", *step, "jobs", *([log] if step == ["merge"] else []), *reading, "-o", "x.swf").ok()

    made = load(shell.folder / "x.swf")
    assert made.epoch is not None
    begun = {made.epoch + time for time in made.submit[made.size == 8].tolist()}
    assert begun & {1488351600.0, 1488352200.0}  # 08:00 in Prague; shuffled, perhaps 08:10


def test_the_zone_of_a_logs_clock_is_that_of_its_dates(shell):
    """For a log without a time zone; the description uses this zone, too."""
    shell.write("jobs.sacct", SACCT)
    zone = ("--timezone", "Europe/Prague", "--units", "processors")
    told = shell.run("workload", "filter", "jobs.sacct", *zone, "--begin", "2017-03-01 08:05", "-o", "x.swf").ok()
    figures = json.loads(shell.run("workload", "describe", "jobs.sacct", *zone, "--json").ok().out)

    assert "filter: 2 jobs become 1" in told.out
    assert (figures["zone"], figures["size"]["greatest"]) == ("Europe/Prague", 8.0)
    assert figures["span"]["first_date"] == "2017-03-01 08:00"


def test_another_log_is_read_by_its_own_step(shell):
    """In a later step and in a run, options after `merge` say how to read its workloads."""
    shell.write("jobs.sacct", SACCT)
    merge = ["merge", "jobs.sacct", "--units", "processors"]
    shell.run("workload", "filter", "demo", "--first", "1", "then", *merge, "--align", "zero", "-o", "x.swf").ok()
    words = " ".join([*merge, "--align", "zero"])
    shell.run("run", "--in-process", "--transform", f"filter --first 1 then {words}", "-o", "out").ok()

    assert sorted(load(shell.folder / "x.swf").size.tolist())[-1] >= 8
    command = json.loads((shell.folder / "out" / "out_command.json").read_text())
    assert command["transform"][1]["units"] == "processors"
    shell.run("run", "--transform", "filter --units processors").failed(
        2, "--units is an option of the run, not of a step"
    )
