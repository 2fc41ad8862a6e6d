"""Golden results: stored results of a run, with which later runs are compared.

They are stored in a folder, which `compare` reads like the folder of a run. For a small run it has the run's tables;
for a large run it has the same rows in one compressed file.
"""

from collections.abc import Iterator, Mapping
from math import isclose
from pathlib import Path
from typing import Any, Final

from pipistrelle.protocol.base.whole import write_together
from pipistrelle.reports.cases.case import GOLDEN_FOLDER
from pipistrelle.reports.cases.tolerances import CaseError
from pipistrelle.reports.report.differences import first_difference
from pipistrelle.runs.folders.files import output_json, read_config
from pipistrelle.runs.folders.packed import PACKED_FILE, pack_rows
from pipistrelle.runs.folders.run_jobs import read_run_jobs
from pipistrelle.server.outputs.csv_file import unwritable
from pipistrelle.server.outputs.folder import CONFIG_FILE, OUTPUT_PREFIX, SUMMARY_FILE
from pipistrelle.server.outputs.lock import unwritable_folder
from pipistrelle.server.outputs.once import remove_outputs, to_json

_ROWS: Final = ("jobs.csv", "decisions.csv")
#: for runs with more jobs than this, the rows are compressed
_MOST_JOBS: Final = 200
#: keys of a summary that are compared separately, or that repeat other keys in words
_NO_FIGURES: Final = ("message", "sha256", "inputs_sha256", "results_sha256")
#: accepted relative difference of metrics: sums are exact, but libraries round quantiles differently
_SAME: Final = 1e-9


def golden_in(folder: Path) -> Path:
    """Return the folder that holds golden results.

    It is a subfolder if ``folder`` is a case, else ``folder`` itself.
    """
    inner = folder / GOLDEN_FOLDER
    return inner if not (folder / SUMMARY_FILE).is_file() and (inner / SUMMARY_FILE).is_file() else folder


def is_complete(golden: Path) -> bool:
    """Return whether a folder has golden results with their rows.

    The rows are in tables or in one compressed file.
    """
    tables = all((golden / f"{OUTPUT_PREFIX}{name}").is_file() for name in _ROWS)
    return (golden / SUMMARY_FILE).is_file() and (tables or (golden / PACKED_FILE).is_file())


def write_golden(run: Path, golden: Path) -> None:
    """Store a run's results as golden results.

    If they cannot be written, raise OutputFailed and change nothing.
    """
    try:
        golden.mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable_folder(golden, error) from None
    rows = [f"{OUTPUT_PREFIX}{name}" for name in _ROWS]
    config = read_config(run)
    config.pop("versions", None)
    large = len(read_run_jobs(run)) > _MOST_JOBS
    if large:
        pack_rows(run, run)
    # The summary comes last: without it the results are not complete.
    names = [*([PACKED_FILE] if large else rows), SUMMARY_FILE]
    files = [(golden / CONFIG_FILE, to_json(config).encode(), None)]
    files += [(golden / name, (run / name).read_bytes(), None) for name in names]
    try:
        write_together(files, ready=lambda: remove_outputs([golden / SUMMARY_FILE]))
    except OSError as error:
        raise unwritable(error.filename or golden, error, "FOLDER") from error
    remove_outputs(golden / name for name in (rows if large else (PACKED_FILE,)))


def golden_difference(golden: Path, run: Path) -> dict[str, Any] | None:
    """Return how a run differs from golden results, as JSON values; None if equal.

    The result has the keys of `first_difference` and three more:

    - ``inputs``: names of the configuration entries that changed.
    - ``outputs``: files that differ although decisions and jobs are equal.
    - ``figures``: the metrics that changed, each with ``name``, ``first`` (golden value) and ``second`` (value of the
      run).

    Not compared are metrics that only one side has, version numbers, and the scheduler's reasons.

    Raises:
        PipistrelleError: if golden results are missing or damaged, or the folder has no run.
    """
    kept, told = summary_in(golden), summary_in(run)
    configs = read_config(golden), read_config(run)
    found: dict[str, Any] | None
    if all(kept.get(key) == told.get(key) for key in ("inputs_sha256", "results_sha256", "sha256")):
        found = None
    else:
        found = first_difference(read_run_jobs(golden), read_run_jobs(run))
    inputs = _inputs(*configs) if kept["inputs_sha256"] != told["inputs_sha256"] else []
    figures = [
        {"name": name, "first": one, "second": other}
        for name, one, other in _pairs(kept, told)
        if name not in _NO_FIGURES and not _same(one, other)
    ]
    outputs = []
    if found is None and kept["results_sha256"] != told["results_sha256"]:
        names = sorted({*kept["sha256"], *told["sha256"]} - {CONFIG_FILE, f"{OUTPUT_PREFIX}decisions.csv"})
        outputs = [name for name in names if kept["sha256"].get(name) != told["sha256"].get(name)]
    if found is None and not (inputs or figures or outputs):
        return None
    nothing = {"decision": None, "job": None, "jobs": 0}
    return {**(found or nothing), "inputs": inputs, "figures": figures, "outputs": outputs}


def summary_in(folder: Path) -> dict[str, Any]:
    """Return the summary of a run or of golden results.

    Raise CaseError if it is missing or too old.
    """
    summary = output_json(folder / SUMMARY_FILE)
    if summary is None:
        hint = "'pipistrelle check cases FOLDER --update' writes golden results."
        raise CaseError(f"there is no {SUMMARY_FILE} in it", where=str(folder), hint=hint)
    if not {"inputs_sha256", "results_sha256", "sha256"} <= summary.keys():
        raise CaseError("the summary is of an older version", where=str(folder / SUMMARY_FILE), hint="Run it again.")
    return summary


def _pairs(kept: Mapping[str, Any], told: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, golden value, value of the run) of each metric.

    These are the metrics in both summaries, also in tables in them.
    """
    for name, one in kept.items():
        if name not in told:
            continue
        other = told[name]
        if isinstance(one, dict) and isinstance(other, dict) and name not in _NO_FIGURES:
            yield from _pairs(one, other, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", one, other


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float | int) and isinstance(other, float | int):
        return isclose(one, other, rel_tol=_SAME, abs_tol=_SAME)
    return bool(one == other)


def _inputs(kept: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    """Return the names of the inputs and settings in which two runs differ.

    They are taken from the configurations of the runs.
    """
    found = []
    for prefix in sorted({*kept["workloads"], *told["workloads"]}):
        one, other = (config["workloads"].get(prefix, {}).get("sha256") for config in (kept, told))
        found += [f"the jobs of workload {prefix}"] if one != other else []
    others = sorted({*kept, *told} - {"workloads", "run_id", "scheduler", "versions"})
    return found + [key for key in others if kept.get(key) != told.get(key)]
