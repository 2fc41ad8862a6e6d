"""Golden results: stored results of a run, with which later runs are compared.

Golden results of small runs have all rows, in a folder that `compare` reads like any run. Golden results of large runs
have metrics, digests and one byte per row, enough to find the first decision and the first job that differ.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from math import isclose
from pathlib import Path
from typing import Any, Final

import msgspec

from pipistrelle.reports.cases.case import GOLDEN_FOLDER, CaseError
from pipistrelle.reports.report.differences import DecisionRow, decision_keys, decision_rows, fate_of, first_difference
from pipistrelle.runs.folders.files import output_json, read_config
from pipistrelle.runs.folders.run_jobs import RunJobs, read_run_jobs
from pipistrelle.server.outputs.folder import CONFIG_FILE, OUTPUT_PREFIX, SUMMARY_FILE
from pipistrelle.server.outputs.lock import unwritable_folder
from pipistrelle.server.outputs.once import remove_outputs, to_json, write_output

CHECKS_FILE: Final = "checks.json"
_ROWS: Final = ("jobs.csv", "decisions.csv")
#: for runs with more jobs than this, one byte per row is stored
_MOST_JOBS: Final = 200
#: keys of a summary that are compared separately, or that repeat other keys in words
_NO_FIGURES: Final = ("message", "sha256", "inputs_sha256", "results_sha256")
#: accepted relative difference of metrics: sums are exact, but libraries round quantiles differently
_SAME: Final = 1e-9


class Checks(msgspec.Struct, forbid_unknown_fields=True):
    """Check bytes, one per row of the outputs, in base64.

    Attributes:
        decisions: each byte depends on a decision and all decisions before it.
        jobs: each byte depends on one job only; in the order of submission.
    """

    decisions: str
    jobs: str


def golden_in(folder: Path) -> Path:
    """Return the folder of golden results, given that folder or a case's folder."""
    inner = folder / GOLDEN_FOLDER
    return inner if not (folder / SUMMARY_FILE).is_file() and (inner / SUMMARY_FILE).is_file() else folder


def has_checks_alone(folder: Path) -> bool:
    """Return whether golden results have check bytes instead of rows, as for large runs."""
    return (folder / CHECKS_FILE).is_file()


def write_golden(run: Path, golden: Path) -> None:
    """Store a run's results as golden results; OutputFailed if they cannot be written."""
    try:
        golden.mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable_folder(golden, error) from None
    rows = [f"{OUTPUT_PREFIX}{name}" for name in _ROWS]
    remove_outputs([golden / SUMMARY_FILE])  # it comes last: without it the results are not complete
    config = read_config(run)
    config.pop("versions", None)
    write_output(golden / CONFIG_FILE, to_json(config))
    jobs = read_run_jobs(run)
    large = len(jobs) > _MOST_JOBS
    if large:
        write_output(golden / CHECKS_FILE, to_json(_checks(jobs)))
    else:
        for name in rows:
            write_output(golden / name, (run / name).read_text(encoding="utf-8"))
    write_output(golden / SUMMARY_FILE, (run / SUMMARY_FILE).read_text(encoding="utf-8"))
    remove_outputs(golden / name for name in (rows if large else (CHECKS_FILE,)))


def golden_difference(golden: Path, run: Path) -> dict[str, Any] | None:
    """Return how a run differs from golden results, as JSON values; None if equal.

    The result has the keys of `first_difference`, and ``inputs`` (names of changed configuration entries), ``outputs``
    (files that differ although decisions and jobs are equal) and ``figures``. Each entry of ``figures`` is a changed
    metric with ``name``, ``first`` (golden value) and ``second`` (value of the run). Versions, reasons, and metrics of
    only one side are ignored.

    Raises:
        PipistrelleError: if golden results are missing or damaged, or the folder has no run.
    """
    kept, told = _summary(golden), _summary(run)
    configs = read_config(golden), read_config(run)
    found: dict[str, Any] | None
    if all(kept.get(key) == told.get(key) for key in ("inputs_sha256", "results_sha256", "sha256")):
        found = None
    elif has_checks_alone(golden):
        found = _by_checks(golden, read_run_jobs(run))
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


def _summary(folder: Path) -> dict[str, Any]:
    summary = output_json(folder / SUMMARY_FILE)
    if summary is None:
        hint = "'pipistrelle check cases FOLDER --update' writes golden results."
        raise CaseError(f"there is no {SUMMARY_FILE} in it", where=str(folder), hint=hint)
    if not {"inputs_sha256", "results_sha256", "sha256"} <= summary.keys():
        raise CaseError("the summary is of an older version", where=str(folder / SUMMARY_FILE), hint="Run it again.")
    return summary


def _pairs(kept: Mapping[str, Any], told: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield name and both values of each entry that two summaries share, also in tables."""
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
    """Return the names of the entries that differ between two configurations."""
    found = []
    for prefix in sorted({*kept["workloads"], *told["workloads"]}):
        one, other = (config["workloads"].get(prefix, {}).get("sha256") for config in (kept, told))
        found += [f"the jobs of workload {prefix}"] if one != other else []
    others = sorted({*kept, *told} - {"workloads", "run_id", "scheduler", "versions"})
    return found + [key for key in others if kept.get(key) != told.get(key)]


# -- one byte per row --------------------------------------------------------------------------------------------------


def _checks(run: RunJobs) -> Checks:
    decisions, jobs = bytes(_decision_checks(run.folder)), bytes(_job_checks(run))
    return Checks(b64encode(decisions).decode(), b64encode(jobs).decode())


def _decision_checks(folder: Path) -> Iterator[int]:
    """Yield a check byte per decision; it depends on all decisions so far."""
    chain = hashlib.sha256()
    for key in decision_keys(folder):
        chain.update("\x1f".join((*key, "\n")).encode())
        yield chain.digest()[0]


def _job_checks(run: RunJobs) -> Iterator[int]:
    for place, name in enumerate(run.ids):
        yield hashlib.sha256(msgspec.json.encode([name, *fate_of(run, place).values()])).digest()[0]


def _by_checks(golden: Path, run: RunJobs) -> dict[str, Any] | None:
    """Find the first difference with check bytes, in the form of `first_difference`."""
    path = golden / CHECKS_FILE
    try:
        checks = msgspec.json.decode(path.read_bytes(), type=Checks)
        decisions, jobs = (b64decode(text, validate=True) for text in (checks.decisions, checks.jobs))
    except (OSError, ValueError) as error:
        raise CaseError(f"golden results that cannot be read: {error}", where=str(path)) from None
    unknown = {"text": "a different one; only a check is kept of each row"}
    number, row = _first(decisions, run.folder)
    found = list(_job_checks(run))
    places = [place for place, one in enumerate(found) if place >= len(jobs) or jobs[place] != one]
    count = len(places) + max(len(jobs) - len(found), 0)
    if number is None and not count:
        return None
    decision = None
    if number is not None:
        before = unknown if number <= len(decisions) else None
        decision = {"number": number, "first": before, "second": None if row is None else {"text": str(row)}}
    job = None
    if places:
        place = min(places, key=lambda one: (float(run.start[one]), one))
        fate = fate_of(run, place)
        first = unknown if place < len(jobs) else None
        job = {"id": run.ids[place], "at": fate["start"], "first": first, "second": fate}
    return {"decision": decision, "job": job, "jobs": count}


def _first(checks: bytes, folder: Path) -> tuple[int | None, DecisionRow | None]:
    """Return number (from 1) and row of the first decision with a wrong check byte."""
    number = 0
    for number, (check, row) in enumerate(zip(_decision_checks(folder), decision_rows(folder), strict=True), 1):
        if number > len(checks) or checks[number - 1] != check:
            return number, row
    return (number + 1, None) if number < len(checks) else (None, None)
