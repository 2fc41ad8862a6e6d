"""The two digests in every summary: of a run's inputs apart from its scheduler, and of its results."""

import json
import shutil
from pathlib import Path

import pytest

from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run

JOBS = "; MaxNodes: 4\n; MaxProcs: 4\n" + "".join(
    f"{number} {submit} -1 {time} {size} -1 -1 {size} {limit} -1 1 1 -1 -1 1 -1 -1 -1\n"
    for number, (submit, size, limit, time) in enumerate([(0, 3, 50, 50), (1, 3, 50, 50), (2, 1, 50, 60)], 1)
)


@pytest.fixture
def digests(tmp_path: Path):
    """Return a function from a run to its digests, of inputs and of results."""
    (tmp_path / "jobs.swf").write_text(JOBS)

    def found(**options: object) -> tuple[str, str]:
        spec = RunSpec(**{"workload": (str(tmp_path / "jobs.swf"),), "platform": "tiny", **options})
        run(spec, RunOptions(out=tmp_path / "out"))
        told = json.loads((tmp_path / "out" / "out_summary.json").read_text())
        return told["inputs_sha256"], told["results_sha256"]

    return found


def test_inputs_and_results_have_digests_apart(digests) -> None:
    """Another scheduler changes the results alone, if it decides otherwise; another machine both."""
    fcfs, easy = digests(scheduler="fcfs"), digests(scheduler="easy")
    assert fcfs[0] == easy[0]
    assert fcfs[1] != easy[1]
    assert digests(scheduler="fcfs", backfill="easy") == easy
    assert digests(scheduler="easy", queue_lengths=True) == easy

    for options in (
        {"platform": "demo"},
        {"until": "40s"},
        {"strict": True},
        {"failures": ("exponential,mtbf=1d",), "repair": "1h"},
    ):
        assert digests(scheduler="easy", **options)[0] != easy[0], options


def test_the_name_of_a_file_is_no_input(digests, tmp_path: Path) -> None:
    """The same jobs under another name are the same inputs."""
    before = digests()
    shutil.move(tmp_path / "jobs.swf", tmp_path / "renamed.swf")

    assert digests(workload=(str(tmp_path / "renamed.swf"),)) == before
