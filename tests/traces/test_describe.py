"""Facts about a workload, for a reader."""

import math
from dataclasses import replace

import numpy as np

from pipistrelle.traces.catalogue import load_bundled
from pipistrelle.traces.describe import describe, offered_load
from pipistrelle.traces.load import load


def test_facts_of_a_log(tmp_path, job_line):
    """Every fact of an SWF file, in order; dropped jobs are counted and left out of the rest."""
    path = tmp_path / "log.swf"
    path.write_text(
        "; MaxProcs: 8\n; UnixStartTime: 1767571200\n; TimeZoneString: Europe/Oslo\n"
        + job_line({2: 0, 4: 100, 8: 1, 9: 50, 12: 3})
        + job_line({1: 2, 2: 86400, 4: 3600, 8: 8, 9: 7200, 12: 4})
        + job_line({1: 3, 2: 172800, 4: 0})
        + job_line({1: 4, 2: 172800, 4: 10.5, 8: 2, 9: 60, 12: 3})
    )
    assert describe(load(path)) == [
        ("name", "log"),
        ("format", "SWF"),
        ("jobs", "4"),
        ("machine", "8 units"),
        ("time zone", "Europe/Oslo"),
        ("dropped", "1 (run time zero or missing: 1)"),
        ("simulated", "3 jobs"),
        ("span", "2.0 days, from 2026-01-05 00:00 to 2026-01-07 00:00 UTC"),
        ("size", "1 to 8, median 2 units"),
        ("run time", "10.5 to 3600, median 100 s"),
        ("requested time", "50 to 7200, median 60 s"),
        ("over requested time", "1 (will be killed at the requested time)"),
        ("offered load", "0.021 of the machine"),
        ("users", "2"),
    ]


def test_facts_that_a_file_does_not_give(tmp_path):
    """Facts that JSON lacks are shown as unknown."""
    path = tmp_path / "w.json"
    path.write_text(
        '{"jobs": [{"id": 1, "subtime": 5, "res": 1, "profile": "p"}],'
        ' "profiles": {"p": {"type": "delay", "delay": 1}}}'
    )
    facts = dict(describe(load(path)))
    assert facts["format"] == "Batsim JSON"
    assert facts["machine"] == facts["time zone"] == facts["users"] == "unknown"
    assert facts["span"] == "0 s, from 5 s to 5 s"
    assert facts["requested time"] == "none"
    assert facts["offered load"] == "unknown, because the machine's size is"
    assert (
        dict(describe(replace(load(path), machine_size=4)))["offered load"]
        == "undefined: all jobs are submitted at once"
    )


def test_some_without_walltime():
    """Jobs without a limit are counted next to the distribution of the others."""
    workload = load_bundled("demo").select([0, 1])
    workload = replace(workload, walltime=np.array([60.0, np.inf]))
    assert dict(describe(workload))["requested time"] == "60 to 60, median 60 s; 1 jobs have no limit"


def test_run_times_up_to_the_hosts():
    """Jobs that compute are counted next to the known run times; there is no load then."""
    workload = replace(load_bundled("demo").select([0, 1]), runtime=np.array([60.0, np.nan]))
    facts = dict(describe(workload))
    assert facts["run time"] == "60 to 60, median 60 s; for 1 jobs it depends on the hosts"
    assert facts["offered load"] == "unknown, because run times depend on the hosts"
    assert math.isnan(offered_load(workload, 8))
    workload = replace(workload, runtime=np.full(2, np.nan))
    assert dict(describe(workload))["run time"] == "depends on the hosts"


def test_no_job_is_left():
    """A workload without a job that can run is described as such."""
    workload = load_bundled("demo").select([0, 1])
    workload = replace(workload, runtime=np.zeros(2))
    assert describe(workload)[-2:] == [
        ("dropped", "2 (run time zero or missing: 2)"),
        ("simulated", "no job is left"),
    ]


def test_dates_out_of_range():
    """Times beyond the calendar are shown in seconds."""
    workload = replace(load_bundled("demo").select([0, 1]), epoch=1e15)
    assert dict(describe(workload))["span"] == "245 s, from 1 s to 246 s"


def test_offered_load_without_jobs_or_span():
    """Without jobs or span there is no load."""
    demo = load_bundled("demo")
    assert math.isnan(offered_load(demo.select([]), 8))
    assert math.isnan(offered_load(demo.select([0]), 8))
