"""Files of events of the University at Buffalo's Slurm simulator, and options of sbatch."""

import csv
import shlex
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.protocol.resources.request import Request
from pipistrelle.server.setup.conditions import conditions_of
from pipistrelle.traces.clean import clean
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load
from pipistrelle.traces.slurm.arrays import array_indices
from pipistrelle.traces.slurm.options import begin_delay, options_of, options_text, parse_options, split_words
from pipistrelle.traces.slurm.sbatch import parse_sbatch
from pipistrelle.traces.slurm.sbatch_request import request_of_options

SUBMIT = "-dt {} -e submit_batch_job | {} pseudo.job"


@pytest.fixture
def read(tmp_path):
    """Return a function that loads a file of these lines."""

    def load_it(*lines: str, **options):
        path = tmp_path / "jobs.events"
        path.write_text("\n".join(lines) + "\n")
        return load(path, **options)

    return load_it


def one(read, options: str):
    """Return the workload of one submission at 10 s."""
    return read(SUBMIT.format(10, options))


def test_a_line_is_a_job_with_its_labels_and_times(read):
    """The simulator's own example, in both orders of -dt and -e."""
    jobs = read(
        SUBMIT.format(0, "-J jobid_1001 -sim-walltime 5 --uid=user5 -t 00:01:00 -n 12 -A account2 -p normal -q high"),
        "-e submit_batch_job -dt 2.5 | -J jobid_1002 -sim-walltime=7 --uid=u -t 30 -N 2 pseudo.job",
    )

    assert jobs.ids == ["1001", "1002"]
    assert jobs.submit.tolist() == [0.0, 2.5]
    assert jobs.walltime.tolist() == [60.0, 1800.0]
    assert jobs.runtime.tolist() == [5.0, 7.0]
    assert {name: texts[0] for name, texts in jobs.labels.items() if name != "options"} == {
        "name": "jobid_1001",
        "user": "user5",
        "account": "account2",
        "queue": "normal",
        "qos": "high",
    }
    assert jobs.format == "Slurm events"


def test_a_job_of_no_time_takes_a_little_and_one_of_minus_1_runs_to_its_limit(read):
    """-sim-walltime 0 and -1, as the simulator's examples have them."""
    assert one(read, "-sim-walltime 0 -t 1").runtime.tolist() == [0.001]
    assert one(read, "-sim-walltime -1 -t 1").runtime[0] > 60.0
    assert one(read, "-sim-walltime 5").walltime.tolist() == [inf]


def test_cancel_in_cancels_a_job_so_long_after_its_submission(read):
    """The medium cluster's events have it; an earlier scancel wins."""
    jobs = read(
        SUBMIT.format(10, "-sim-walltime 300 -cancel-in 10.5 -t 5:00"),
        SUBMIT.format(10, "-t 5 -cancel-in=20 --array=0-1"),
        SUBMIT.format(10, "-t 5"),
        "-dt 15 -e scancel | 2_0",
    )

    assert jobs.measures["cancelled_after"].tolist() == [10.5, 5.0, 20.0, -1.0]
    with pytest.raises(TraceError, match="-cancel-in is malformed"):
        one(read, "-cancel-in soon")


@pytest.mark.parametrize(
    ("options", "request_"),
    [
        ("-n 12 --ntasks-per-node=12", {"tasks": 12, "tasks_per_node": 12}),
        ("-N 2-4 -n 8 -c 2", {"nodes": 2, "most_nodes": 4, "tasks": 8, "cores_per_task": 2000}),
        ("-N 6 -n 4", {"nodes": 4, "most_nodes": 4, "tasks": 4}),
        ("-N 3", {"nodes": 3, "most_nodes": 3}),
        ("", {"tasks": 1}),
        ("--mem=2G -n 2", {"tasks": 2, "memory_per_node": 2048}),
        ("--mem-per-cpu 1000 -n 2", {"tasks": 2, "memory_per_core": 1000}),
        (
            "--gres=gpu:a100:2,nvme:1 -N 1",
            {"nodes": 1, "most_nodes": 1, "gpus_per_node": 2, "gpu_models": ("a100",), "others": {"nvme": 1}},
        ),
        ("-G 4 -n 4", {"tasks": 4, "gpus": 4}),
        ("--gpus-per-task=v100:1 -n 2", {"tasks": 2, "gpus_per_task": 1, "gpu_models": ("v100",)}),
        ("--exclusive -L matlab:2,x", {"tasks": 1, "exclusive": True, "licenses": {"matlab": 2, "x": 1}}),
        ("--gpus=2 --cpus-per-gpu=4 -n 1", {"tasks": 1, "gpus": 2, "cores_per_task": 8000}),
        ("--gpus=2 --ntasks-per-gpu=3", {"tasks": 6, "gpus": 2}),
    ],
)
def test_options_become_a_request(options, request_):
    """Long and short options, with and without an equals sign."""
    submission = parse_sbatch(shlex.split(f"{options} job.sh"), "x")

    assert request_of_options(submission.values, "x")[0] == Request(**request_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-N 4-2", "--nodes is malformed"),
        ("-n two", "--ntasks is malformed"),
        ("--mem=lots", "cannot be read"),
        ("--mem=1G --mem-per-cpu=1G", "gives memory twice"),
        ("--gres=gpu:a:b:c", "--gres is malformed"),
        ("-t soon", "the time limit is malformed"),
        ("-sim-walltime x", "-sim-walltime is malformed"),
        ("--array=5-2", "indices of an array"),
        ("--array=0-9999999", "indices of an array"),
        ("--nt 4", "is ambiguous"),
        ("--begin=tomorrow", "--begin is not supported"),
        ("--hold=yes", "--hold has no value"),
    ],
)
def test_a_wrong_option_is_one_message_with_its_line(read, options, message):
    """File, line, what is expected and found."""
    with pytest.raises(TraceError, match=message) as caught:
        one(read, options)
    assert "line 1" in str(caught.value)


@pytest.mark.parametrize(
    "line", ["-dt x -e submit_batch_job | a", "-dt 5 -e", "-dt -1 -e submit_batch_job | -n 1 x", "x 'y"]
)
def test_a_line_that_is_no_event_is_one_message(read, line):
    """The form of an event is in the message."""
    with pytest.raises(TraceError, match="line 2"):
        read(SUBMIT.format(0, "-n 1"), line)


def test_short_options_may_be_joined_and_later_ones_count():
    """As getopt reads them; what follows the script is not read, but the simulator's -sleep is."""
    found = parse_sbatch(shlex.split("-HQ -n1 -n 2 --ntasks-per-n 3 job.sh -n 7 -sleep 9"), "x")

    assert found.values == {"hold": "", "quiet": "", "ntasks": "2", "ntasks-per-node": "3"}
    assert (found.script, found.simulated) == ("job.sh", {"sleep": "9"})


def test_options_of_the_scheduler_are_a_label(read):
    """The label has sbatch's form, and is read back; names of singletons go with the dependency."""
    jobs = one(read, "-n 1 --nice=5 -H --begin=now+2hours --reservation=r1 -d singleton -J 'a b' -p x,y --mem=0")

    assert parse_options(jobs.labels["options"][0], "x") == {
        "ntasks": "1",
        "nice": "5",
        "hold": "",
        "begin": "now+7200",
        "reservation": "r1",
        "partition": "x,y",
        "mem": "0",
    }
    (options,) = options_of(jobs)
    assert (options["dependency"], options["name"]) == ("singleton", "a b")
    assert jobs.labels["queue"] == ["x"]
    assert begin_delay(options) == 7200.0
    assert parse_options(options_text({"a": "x y", "b": ""}), "x") == {"a": "x y", "b": ""}
    with pytest.raises(TraceError, match="malformed"):
        parse_options("begin=now", "x")


def test_dates_of_begin_need_the_date_of_time_0(read):
    """A comment gives it; the delay counts from submission."""
    jobs = read("# start: 2026-01-05T00:00:00", SUBMIT.format(10, "-n 1 --begin=2026-01-05T00:01:10"))

    assert jobs.labels["options"] == ["--ntasks=1 --begin=now+60"]
    assert jobs.epoch == 1767571200.0


def test_tasks_of_arrays_are_jobs_and_dependencies_on_arrays_are_on_each_task(read):
    """The scheduler gets the array; the server waits for all of its tasks."""
    jobs = read(
        SUBMIT.format(0, "-J jobid_3 -n 1 --array=0-2%2"),
        SUBMIT.format(0, "-J jobid_10 -n 1 -d afterok:3"),
        SUBMIT.format(0, "-J jobid_9 -n 1 --begin=now+30"),
    )

    assert jobs.ids == ["3_0", "3_1", "3_2", "10", "9"]
    assert options_of(jobs)[1] == {"ntasks": "1", "array": "0-2%2", "array-job": "3", "array-task": "1"}
    found = conditions_of({"w0": jobs})
    assert [one.job_id for one in found["w0!10"]] == ["w0!3_0", "w0!3_1", "w0!3_2"]
    assert [(one.kind, one.delay) for one in found["w0!9"]] == [("begin", 30.0)]
    assert clean(jobs, None)[0].ids == ["3_0", "3_1", "3_2", "9", "10"]


def test_indices_of_arrays():
    """Ranges, steps and lists, ascending and once each."""
    assert array_indices("5,1-3,2-9:3%4", "x") == [1, 2, 3, 5, 8]


def test_scancel_cancels_jobs_and_tasks(read):
    """The time counts from submission; a whole array and single tasks can be named."""
    jobs = read(
        SUBMIT.format(5, "-n 1"),
        SUBMIT.format(6, "-n 1 -a 0-3"),
        "-dt 9 -e scancel | 1",
        "-dt 20 -e cancel_job | 2_[1-2]",
        "-dt 30 -e scancel | 2",
    )

    assert jobs.measures["cancelled_after"].tolist() == [4.0, 24.0, 14.0, 14.0, 24.0]


def test_what_is_ignored_is_counted(read):
    """Unknown and unsupported options, and events of other kinds, are remarks with a count."""
    jobs = read(
        SUBMIT.format(0, "-n 1 --prefer=x --quietly"),
        SUBMIT.format(1, "-n 1 --prefer=x"),
        "-dt 2 -e scontrol | create reservation nodes=ALL",
        "-dt 2 -e node_registration | n1",
    )

    assert len(jobs.remarks) == 4
    assert any("2 times" in text and "--prefer" in text for text in jobs.remarks)
    assert any("--quietly" in text for text in jobs.remarks)


def test_ids_count_submissions_unless_names_give_them(read):
    """`jobid_N` must be on all lines, once each."""
    assert read(SUBMIT.format(0, "-J jobid_7 -n 1"), SUBMIT.format(0, "-J jobid_7 -n 1")).ids == ["1", "2"]
    assert read(SUBMIT.format(0, "-jid 7 -n 1"), SUBMIT.format(0, "-jid 9 -n 1")).ids == ["7", "9"]


@pytest.mark.parametrize("recording", "abcdf")
def test_the_recordings_are_read_as_their_table_says(slurm22_dir, recording):
    """Submit times, limits, run times and nodes of each submission equal those of jobs.csv."""
    jobs = load(slurm22_dir / recording / "jobs.events")
    rows = {}
    for row, name in enumerate(jobs.ids):
        rows.setdefault(name.partition("_")[0], []).append(row)
    with open(slurm22_dir / recording / "jobs.csv", newline="") as file:
        table = list(csv.DictReader(file))

    assert len(table) == len(rows)
    for told in table:
        for row in rows[told["id"]]:
            assert jobs.submit[row] == float(told["submit"])
            assert jobs.walltime[row] == 60 * float(told["limit_min"])
            assert jobs.runtime[row] == float(told["run_s"])
            assert jobs.labels["user"][row] == told["user"]
            assert jobs.requests[row].nodes == (int(told["nodes"]) if told["nodes"] else None)
    assert jobs.remarks == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--array=0-249999", "the arrays have too many tasks"),
        ("--array=0-3999999", "the indices of an array are malformed"),
        ("--array=" + "0-99999," * 3 + "1", "the indices of an array are malformed"),
    ],
)
def test_a_short_line_makes_a_bounded_number_of_tasks(read, line, message):
    """250,000 for all arrays of a file; each would be a job in memory."""
    with pytest.raises(TraceError, match=message):
        read(
            *(
                SUBMIT.format(0, f"-J jobid_{one} -sim-walltime 1 -t 5 {array}")
                for one, array in ((1, "--array=0-1"), (2, line))
            )
        )


@given(st.text(alphabet=" \t\n\x0b\x85ab#'\"\\=-;~", max_size=12))
def test_words_are_split_as_a_shell_does(text):
    """The fast way gives the words of `shlex.split`."""
    try:
        expected = shlex.split(text)
    except ValueError:
        with pytest.raises(ValueError, match="No "):
            split_words(text)
    else:
        assert split_words(text) == expected
