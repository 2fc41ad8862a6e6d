"""Studies of machines whose nodes jobs share: their metrics are those of the runs' summaries."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.reports.cases.case import bundled_folder
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions
from pipistrelle.runs.execution.run import run as run_spec
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.workers.campaign import run

CASE = bundled_folder() / "shared-nodes-gpus"
INPUTS = {"workload": str(CASE / "jobs.json"), "platform": str(CASE / "machine.toml")}


def study(**more: Any) -> Study:
    """Return a study of the jobs of a bundled case under two policies."""
    told: dict[str, Any] = {"run": INPUTS, "axes": {"scheduler": ["easy", "conservative"]}}
    return Study(**{**told, **more})


def test_each_resource_has_the_figures_of_the_summary(tmp_path: Path) -> None:
    """Utilisation is of cores, as in a run; further columns have the use of each resource."""
    rows = run(study(), tmp_path / "study", jobs=1).table.to_pylist()
    assert len(rows) == 2
    for row in rows:
        out = tmp_path / row["policy"]
        spec = RunSpec(workload=(INPUTS["workload"],), platform=INPUTS["platform"], scheduler=row["policy"])
        run_spec(spec, RunOptions(out=out))
        told = json.loads((out / "out_summary.json").read_text())
        assert (row["utilisation"], row["computing"], row["units"]) == (told["utilisation"], told["computing"], 1)
        for name, one in told["resources"].items():
            for figure in ("utilisation", "used", "unavailable", "idle", "fragmented"):
                assert row[f"{figure}_{name}"] == one[figure]
            assert {other: row[f"stranded_{name}_{other}"] for other in one["stranded"]} == one["stranded"]


def test_a_metric_of_a_resource_that_no_node_has_is_refused(tmp_path: Path) -> None:
    """The message names a similar metric."""
    more = {"run": {**INPUTS, "failures": "exponential,mtbf=1d"}, "axes": {"repair": ["1h"]}}
    replicas = {"precision": "20%", "metric": "utilisation_gpus", "at-most": 4}
    with pytest.raises(StudyError, match=r"there is no metric .utilisation_gpus.*utilisation_gpu"):
        run(study(**more, replicas=replicas), tmp_path / "study", jobs=1)
