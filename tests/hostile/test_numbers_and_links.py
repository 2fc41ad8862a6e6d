"""Numbers of thousands of digits, which Python refuses to read, and links that lead out of a folder."""

import json
import shutil
from pathlib import Path

import pytest

from pipistrelle.platforms.topology.partitions import level_of
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.inputs.maui_machine import maui_platform
from pipistrelle.runs.recorder.configuration import private_configuration
from pipistrelle.runs.recordings.recording import Recording
from pipistrelle.runs.slurm.cluster import load_cluster
from pipistrelle.runs.slurm.files import read_slurm_files
from pipistrelle.schedulers.slurm.passes.dependencies import parse_dependency
from pipistrelle.traces.logs.maui_nodes import read_maui_resources
from pipistrelle.traces.outages.rows import natural
from pipistrelle.traces.slurm.state.read import read_state
from pipistrelle.traces.usage_traces import read_usage_trace

LONG = "9" * 5000
CONF = "ClusterName=x\nSelectType=select/linear\nNodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n"
OUTSIDE = "Name=Tr0ub4dor:x:0:0\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a slurm.conf; a secret is beside the folder."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "slurm.conf").write_text(CONF)
    (tmp_path / "secret").write_text(OUTSIDE)
    return tmp_path / "conf"


@pytest.mark.parametrize("key", ["last_update", "array_job_id", "het_job_id"])
def test_json_of_squeue_with_a_long_number_is_read(tmp_path: Path, key: str) -> None:
    """A text of 5,000 digits is no number of a job and no date."""
    job = {"job_id": 7, "job_state": "PENDING", "partition": "p", "array_task_string": "1-2", "cpus": 1}
    whole = {"jobs": [{**job, key: LONG}], "last_update": LONG}
    (tmp_path / "squeue.json").write_text(json.dumps(whole))

    assert [job.number for job in read_state([tmp_path / "squeue.json"]).jobs] in ([7], [])


@pytest.mark.parametrize(
    ("column", "cell"), [("array", f"0-{LONG}"), ("array", f"0-1%{LONG}"), ("gres", f"gpu:{LONG}")]
)
def test_long_numbers_in_a_recording_are_refused(project_root: Path, tmp_path: Path, column: str, cell: str) -> None:
    """The message names the column."""
    shutil.copytree(project_root / "docs/examples/recording", tmp_path / "r")
    head, first, *_ = (tmp_path / "r" / "jobs.csv").read_text().splitlines()
    cells = dict(zip(head.split(","), first.split(","), strict=True)) | {column: cell}
    (tmp_path / "r" / "jobs.csv").write_text(f"{head}\n{','.join(cells.values())}\n")

    with pytest.raises(PipistrelleError, match=f"wrong value of '{column}'"):
        _ = Recording(tmp_path / "r").jobs


def test_long_numbers_in_names_are_text() -> None:
    """They neither sort as numbers nor stand for a class of reliability."""
    assert natural(f"n{LONG}") == ((1, 0, "n"), (1, 0, LONG))
    assert level_of(f"reliability-{LONG}") is None
    assert level_of("reliability-12") == 12


def test_long_names_of_files_are_cut_in_messages(tmp_path: Path) -> None:
    """A usage trace may name a file by thousands of characters."""
    (tmp_path / "usage.txt").write_text("a/" * 2000 + "\n")

    with pytest.raises(PipistrelleError) as refused:
        read_usage_trace("usage.txt", str(tmp_path))
    assert len(str(refused.value)) < 1500


@pytest.mark.parametrize("number", [LONG, "\N{SUPERSCRIPT TWO}"])
def test_dependencies_on_numbers_that_are_none_are_refused(number: str) -> None:
    """The message is about the job id, not about Python."""
    with pytest.raises(ValueError, match="is not a job id"):
        parse_dependency(f"afterok:{number}")


@pytest.mark.parametrize("name", ["gres.conf", "topology.conf"])
def test_files_beside_slurm_conf_do_not_lead_out_of_the_folder(folder: Path, name: str) -> None:
    """Such a link is refused, and nothing of its target is quoted."""
    (folder / name).symlink_to("../secret")

    with pytest.raises(PipistrelleError, match="leads out of its folder") as refused:
        load_cluster(str(folder / "slurm.conf"))
    assert "Tr0ub4dor" not in str(refused.value)


def test_links_of_a_whole_configuration_are_followed(folder: Path, tmp_path: Path) -> None:
    """If slurm.conf itself is a link, gres.conf may be a link to the file beside its target."""
    (folder / "gres.conf").write_text("NodeName=n1 Name=gpu File=/dev/nvidia0\n")
    (tmp_path / "etc").mkdir()
    for name in ("slurm.conf", "gres.conf"):
        (tmp_path / "etc" / name).symlink_to(folder / name)

    assert len(read_slurm_files(str(tmp_path / "etc" / "slurm.conf")).gres) == 1


def test_topology_that_includes_itself_is_not_recorded(folder: Path) -> None:
    """Included twice per level, ten levels deep, it would be read a thousand times."""
    (folder / "topology.conf").write_text("SwitchName=s Nodes=n[1-2]\n" + "Include topology.conf\n" * 8)

    with pytest.raises(PipistrelleError, match="includes itself"):
        private_configuration(folder, 1)


def test_machines_of_many_kinds_of_nodes_have_distinct_pools(tmp_path: Path) -> None:
    """Each kind of node gives a pool."""
    text = "COMPUTENODE AVAILABLE 0 n{0} s 1 {1} 1 4 1 1 1 [NONE] x86 [f] [q] [NONE] 1.0 [NONE] [NONE] [NONE]\n"
    (tmp_path / "nodes").write_text("".join(text.format(one, one + 2) for one in range(300)))
    machine = maui_platform(read_maui_resources(tmp_path / "nodes"), "x")

    assert len({pool.name for pool in machine.pools}) == 300
