"""A Slurm cluster's files on the command line: platforms, events, validation, and options of the scheduler."""

import csv
import json

CONF = (
    "ClusterName=small\nSelectType=select/linear\nSchedulerParameters=bf_window=60\nMailProg=/x\nEpilog=/y\n"
    "NodeName=n[01-04] CPUs=4 RealMemory=8000\n"
    "PartitionName=batch Nodes=ALL Default=YES MaxTime=60\nPartitionName=half Nodes=n[03-04]\n"
)
EVENTS = (
    "-dt 0 -e submit_batch_job | -J jobid_1 -sim-walltime 100 --uid=u1 -t 5 -N 2 --job-name=first pseudo.job\n"
    "-dt 1 -e submit_batch_job | -J jobid_2 -sim-walltime 50 --uid=u2 -t 5 -n 8 -p half pseudo.job\n"
    "-dt 2 -e submit_batch_job | -J jobid_3 -sim-walltime 10 --uid=u2 -t 5 -n 1 -d afterok:2 pseudo.job\n"
    "-dt 3 -e submit_batch_job | -J jobid_4 -sim-walltime 10 --uid=u2 -t 5 -n 1 --begin=now+200 --nice=5 pseudo.job\n"
)


def files(shell, conf=CONF, events=EVENTS):
    """Write a cluster's files into the shell's folder."""
    (shell.folder / "etc").mkdir(exist_ok=True)
    shell.write("etc/slurm.conf", conf)
    shell.write("jobs.events", events)


def jobs_of(shell):
    """Return {job id: row} of the run's table of jobs."""
    with open(shell.folder / "out" / "out_jobs.csv", newline="") as file:
        return {row["job_id"]: row for row in csv.DictReader(file)}


def test_a_slurm_conf_is_a_platform_for_any_scheduler(shell):
    """Partitions are classes, sizes are whole nodes, and the table of jobs has names of jobs and nodes."""
    files(shell)

    found = shell.run("run", "--scheduler", "easy", "-p", "etc/slurm.conf", "-w", "jobs.events", "-o", "out")
    assert found.code == 0, found
    jobs = jobs_of(shell)
    assert [jobs[name]["requested_number_of_resources"] for name in "1234"] == ["2", "2", "1", "1"]
    assert (jobs["1"]["job_name"], jobs["1"]["allocated_nodes"]) == ("first", "n[01-02]")
    assert jobs["2"]["allocated_nodes"] == "n[03-04]"
    assert float(jobs["3"]["starting_time"]) == 51.0
    assert float(jobs["4"]["starting_time"]) == 203.0


def test_included_files_must_be_in_the_folder(shell):
    """A file beside is read, also under its old absolute path; one outside is refused with its line."""
    files(shell, "ClusterName=a\nInclude /etc/of/the/site/nodes.conf\nPartitionName=p Nodes=ALL\n")
    shell.write("etc/nodes.conf", "NodeName=n[1-2]\n")
    shell.run("validate", "etc/slurm.conf").ok()

    shell.write("nodes.conf", "NodeName=n[1-2]\n")
    shell.write("etc/slurm.conf", "ClusterName=a\nInclude ../nodes.conf\nPartitionName=p Nodes=ALL\n")
    shell.run("validate", "etc/slurm.conf").failed(2, "etc/slurm.conf:2", "not in the folder")
    shell.write("etc/slurm.conf", "ClusterName=a\nInclude gone.conf\n")
    shell.run("validate", "etc/slurm.conf").failed(2, "etc/slurm.conf:2", "does not exist")


def test_validate_prints_what_happens_to_each_key(shell):
    """One row per key with its line: honoured, ignored with and without effect, unknown."""
    files(shell, CONF + "PriorityWieghtAge=3\n")
    shell.write("etc/gres.conf", "NodeName=n01 Name=gpu Count=2\n")
    shell.write("etc/topology.conf", "SwitchName=s Nodes=n[01-04]\n")
    shell.write("dump", "Cluster - 'small'\nAccount - 'bio':Fairshare=3:GrpTRES=cpu=8\n")

    found = shell.run("validate", "etc/slurm.conf", "etc/gres.conf", "etc/topology.conf", "dump").ok().out
    rows = [" ".join(line.split()) for line in found.splitlines()]
    assert any(row.startswith("slurm.conf:4 MailProg ignored, no effect") for row in rows)
    assert any(row.startswith("slurm.conf:5 Epilog ignored, has an effect") for row in rows)
    assert any(row.startswith("slurm.conf:3 SchedulerParameters bf_window honoured") for row in rows)
    assert any(row.startswith("slurm.conf:9 PriorityWieghtAge unknown") for row in rows)
    assert "class half" in found
    assert "dump: valid" in found


def test_wrong_files_are_one_message_with_file_and_line(shell):
    """Bad configuration, bad accounting and bad events end with exit code 2."""
    files(shell)
    shell.write("bad.conf", "ClusterName=a\nNodeName=n[1-\n")
    shell.write("bad.dump", "Cluster - 'small'\nAccount - 'bio':Fairshare=many\n")
    shell.write("bad.events", EVENTS + "-dt 5 -e submit_batch_job | -N x pseudo.job\n")

    shell.run("validate", "bad.conf").failed(2, "bad.conf:2", "malformed")
    shell.run("validate", "bad.dump").failed(2, "bad.dump:2", "the value of Fairshare is wrong")
    shell.run("validate", "bad.events").failed(2, "line 5", "--nodes is malformed")
    shell.run("run", "--scheduler", "slurm", "-p", "etc/slurm.conf", "-w", "jobs.events").failed(
        2, "--config slurm.conf"
    )
    shell.run("run", "--scheduler", "easy", "--slurm", "bf_window=9", "-w", "demo").failed(2, "does not take --slurm")
    shell.run("run", "--scheduler", "slurm", "--config", "jobs.events", "-w", "demo").failed(2, "needs a slurm.conf")
    shell.run("run", "--scheduler", "slurm", "--slurm", "bf_window", "-w", "demo").failed(2, "is not KEY=VALUE")


def test_ignored_options_and_dependencies_are_counted_in_warnings(shell):
    """An option that no decision reads, and a dependency on a job that is not in the file."""
    files(
        shell,
        events=EVENTS
        + "-dt 4 -e submit_batch_job | -J jobid_5 -sim-walltime 5 -t 5 --deadline=now+1hour -d afterok:99 pseudo.job\n"
        + "-dt 4 -e submit_batch_job | -J jobid_6 -sim-walltime 5 -t 5 --exclusive=user -d singleton pseudo.job\n",
    )
    shell.write("etc/topology.conf", "SwitchName=s Nodes=n[01-06]\n")

    found = shell.run(
        *("run", "--scheduler", "slurm", "--config", "etc/slurm.conf", "-p", "etc/slurm.conf"),
        *("-w", "jobs.events", "-o", "out"),
    )
    assert found.code == 0, found
    said = " ".join(found.err.split())
    assert "does not read these options of submissions: deadline (1 job), exclusive (1 job)" in said
    assert "1 job depends on jobs that are not in the workload" in said
    assert "not simulated" not in said
    assert "slurm.conf does not have them: n[05-06]" in said


def test_without_accounting_or_switches_the_jobs_of_a_real_cluster_run(shell):
    """AllowQos without described QOS, and topology/tree without topology.conf, do not reject every job."""
    files(shell, CONF.replace("MaxTime=60", "MaxTime=60 AllowQos=gold") + "TopologyPlugin=topology/tree\n")

    found = shell.run(
        *("run", "--scheduler", "slurm", "--config", "etc/slurm.conf", "-p", "etc/slurm.conf"),
        *("-w", "jobs.events", "-o", "out"),
    )
    assert found.code == 0, found
    said = " ".join(found.err.split())
    assert "slurm.conf:7: AllowQos: no file of accounting describes QOS" in said
    assert "slurm.conf:9: TopologyPlugin: no topology.conf describes switches" in said
    assert {row["final_state"] for row in jobs_of(shell).values()} == {"COMPLETED_SUCCESSFULLY"}


def test_explain_slurm_shows_the_tables_of_slurms_commands(shell):
    """squeue with reasons, sprio -l with factors, sshare -l, and sdiag with its counts, at one moment of a run."""
    priorities = "PriorityType=priority/multifactor\nPriorityWeightJobSize=1000\nPriorityWeightQOS=10\n"
    files(shell, CONF.replace("Epilog=/y\n", "") + priorities)
    shell.write("dump", "add account bio Fairshare=3\nadd user u1 Account=bio\nadd user u2 Account=bio\n")
    shell.run(
        *("run", "--scheduler", "slurm", "--config", "etc/slurm.conf", "-p", "etc/slurm.conf"),
        *("--accounting", "dump", "-w", "jobs.events", "-o", "out"),
    ).ok()

    found = json.loads(shell.run("explain", "slurm", "out", "--at", "20", "--json").ok().out)
    table = {row["JOBID"]: row for row in found["squeue"]}
    assert {name: (row["STATE"], row["REASON"]) for name, row in table.items()} == {
        "1": ("RUNNING", "None"),
        "2": ("RUNNING", "None"),
        "3": ("PENDING", "Dependency"),
        "4": ("PENDING", "BeginTime"),
    }
    assert (table["2"]["NODELIST"], table["2"]["PARTITION"]) == ("n[03-04]", "half")
    sizes = {row["JOBID"]: row["JOBSIZE"] for row in found["sprio"]}
    assert sizes[3] == 1000 * (1 / 4 + 4 / 16) / 2
    assert [row["User"] for row in found["sshare"]] == ["", "root", "", "u1", "u2"]
    jobs = found["sdiag"]["Jobs"]
    assert (jobs["Jobs submitted"], jobs["Jobs started"], jobs["Jobs pending"], jobs["Jobs running"]) == (4, 2, 2, 2)
    assert found["sdiag"]["Main schedule statistics"]["Total cycles"] >= 1

    text = shell.run("explain", "slurm", "out", "--at", "20", "--table", "squeue", "--table", "sdiag").ok().out
    assert "(Dependency)" in text
    assert "Jobs submitted: 4" in text
    assert "sprio" not in text
    shell.run("explain", "slurm", "out", "--at", "99999").failed(2, "the run was not under way then")
    shell.write("jobs.events", "".join(f"-dt 9{line[5:]}\n" for line in EVENTS.splitlines()))
    late = ("--config", "etc/slurm.conf", "-p", "etc/slurm.conf", "-w", "jobs.events", "-o", "late")
    shell.run("run", "--scheduler", "slurm", *late).ok()
    shell.run("explain", "slurm", "late", "--at", "8").failed(2, "late: slurmctld had no job yet", "8 s")
    easy = shell.run("run", "--scheduler", "easy", "-p", "etc/slurm.conf", "-w", "jobs.events", "-o", "easy")
    assert easy.code == 0, easy
    shell.run("explain", "slurm", "easy", "--at", "20").failed(2, "has no tables of Slurm")
