"""Tables as Parquet: the same rows as in the CSV files, with types that do not depend on them."""

import csv
import json
import sys

import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.cases.case import bundled_folder
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.folders.parquet_files import write_parquet
from pipistrelle.server.outputs.folder import OUTPUT_FILES, check_outputs

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the outputs of a run with failures, a rejected job and reasons with commas."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "w.swf").write_text(
        "; MaxProcs: 4\n"
        + "".join(f"{n} {n} 0 {50 + n} 2 -1 -1 {1 + n % 4} 90 -1 1 {n % 3} -1 -1 1 -1 -1 -1\n" for n in range(30)),
        encoding="utf-8",
    )
    (folder / "o.csv").write_text('node,down,up,cause\n0,40,60,"a, b"\n1,300,310,c\n', encoding="utf-8")
    spec = RunSpec(
        workload=(str(folder / "w.swf"),), outages=str(folder / "o.csv"), queue_lengths=True, format="parquet"
    )
    run(spec, RunOptions(out=folder))
    return folder


def test_rows_are_those_of_the_csv_files(folder):
    """Each cell reads as the same number or text; a cell without a number is null."""
    tables = [name for name in OUTPUT_FILES if name.endswith(".csv") and name != "out_takes.csv"]
    assert len(tables) == len(list(folder.glob("out_*.parquet"))) == 9
    for name in tables:
        with (folder / name).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        found = parquet.read_table(folder / name.replace(".csv", ".parquet")).to_pylist()
        assert len(found) == len(rows)
        for row, line in zip(rows, found, strict=True):
            for column, cell in row.items():
                value = line[column]
                assert value is None if not isinstance(value, str) and cell == "" else type(value)(cell) == value
    check_outputs(folder)
    assert json.loads((folder / "out_command.json").read_text(encoding="utf-8"))["format"] == "parquet"


def test_types_do_not_depend_on_rows(folder, tmp_path):
    """A table without a row has the same columns of the same types; equal tables give equal bytes."""
    for name in OUTPUT_FILES:
        if name.endswith(".csv") and name != "out_takes.csv":
            text = (folder / name).read_text(encoding="utf-8")
            (tmp_path / name).write_text(text.partition("\n")[0] + "\n", encoding="utf-8")
    for path in write_parquet(tmp_path):
        assert parquet.read_schema(path).equals(parquet.read_schema(folder / path.name)), path.name
        assert parquet.read_metadata(path).num_rows == 0
    before = (folder / "out_jobs.parquet").read_bytes()
    write_parquet(folder)
    assert (folder / "out_jobs.parquet").read_bytes() == before


def test_a_later_run_removes_them(folder, tmp_path):
    """No table of an earlier run remains beside those of another."""
    spec = RunSpec(workload=(str(folder / "w.swf"),), format="parquet")
    run(spec, RunOptions(out=tmp_path))
    assert (tmp_path / "out_jobs.parquet").is_file()
    run(RunSpec(workload=spec.workload), RunOptions(out=tmp_path))
    assert not list(tmp_path.glob("*.parquet"))


def test_without_pyarrow(folder, tmp_path, monkeypatch):
    """One message names the extra, before anything is run."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PipistrelleError, match=r"need pyarrow.*pipistrelle\[study\]"):
        run(RunSpec(workload=(str(folder / "w.swf"),), format="parquet"), RunOptions(out=tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_target_that_cannot_be_written(folder, tmp_path):
    """It is an output that failed, with its name."""
    (tmp_path / "out_jobs.csv").write_text("job_id,submission_time\n1,soon\n", encoding="utf-8")
    with pytest.raises(PipistrelleError, match=r"out_jobs\.parquet: cannot write the table as Parquet"):
        write_parquet(tmp_path)
    assert not (tmp_path / "out_jobs.parquet").exists()


def test_what_jobs_take_of_shared_nodes_is_in_the_tables(tmp_path):
    """Amounts are numbers, and what a job takes of each node is text, as in the CSV file."""
    case = bundled_folder() / "shared-nodes-gpus"
    spec = RunSpec(workload=(str(case / "jobs.json"),), platform=str(case / "machine.toml"), format="parquet")
    run(spec, RunOptions(out=tmp_path))
    rows = {row["job_id"]: row for row in parquet.read_table(tmp_path / "out_jobs.parquet").to_pylist()}
    assert (rows["half-3"]["requested_gpus"], rows["half-3"]["takes"]) == (0.5, "0:1:1")
    assert (rows["both"]["allocated_gpus"], rows["both"]["takes"]) == (2.0, "0:1:0-1")
    assert (rows["licence-1"]["requested_cores"], rows["licence-1"]["allocated_memory"]) == (1.0, 0.0)
    takes = {row["job_id"]: row for row in parquet.read_table(tmp_path / "out_takes.parquet").to_pylist()}
    assert (takes["w0!half-3"]["nodes"], takes["w0!half-3"]["node_gpu"]) == ("0", 0.5)
    assert (takes["w0!both"]["node_gpu"], takes["w0!both"]["node_memory"]) == (2.0, 0)
