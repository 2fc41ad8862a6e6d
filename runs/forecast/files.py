"""Forecasts from files of a live cluster, its configuration and its accounting."""

from collections.abc import Sequence

from pipistrelle.protocol.base.errors import InputError, quoted
from pipistrelle.runs.forecast.forecast import HORIZON, Forecast, Forecaster
from pipistrelle.runs.slurm.cluster import load_cluster
from pipistrelle.traces.files import PathText
from pipistrelle.traces.load import load_parts
from pipistrelle.traces.logs.job_table import LogOptions
from pipistrelle.traces.logs.times import Clock
from pipistrelle.traces.slurm.state.read import read_state


def forecast_files(
    live: Sequence[PathText],
    config: str,
    accounting: Sequence[str] = (),
    *,
    history: Sequence[PathText] = (),
    what_if: Sequence[str] = (),
    at: str | None = None,
    timezone: str | None = None,
    replicas: int = 100,
    seed: int = 0,
    horizon: float = HORIZON,
    jobs: int | None = None,
    lenient: bool = False,
) -> Forecast:
    """Forecast when the pending jobs of a live Slurm cluster start.

    Args:
        live: outputs of squeue, scontrol show, sinfo, sshare or sacct.
        config: slurm.conf.
        accounting: dumps or listings of sacctmgr.
        history: past jobs, as sacct printed them; without them, jobs use their whole limits.
        what_if: sbatch commands of further jobs, which are submitted at the moment of the forecast.
        at: the date of the forecast; None: the date that the files give.
        timezone: time zone of dates without an offset; None: UTC.
        replicas: number of runs with run times drawn from the history.
        horizon: how far the forecast looks (s).
        jobs: number of processes that compute replicas; None: one per processor.
        lenient: ignore unknown keys of slurm.conf.

    Raises:
        PipistrelleError: a file is unreadable or malformed, or the date of the forecast is unknown.
    """
    zone = LogOptions(timezone=timezone).zone()
    moment = None
    if at is not None:
        moment = Clock(zone).iso(at)
        if moment is None:
            raise InputError("this is not a date", where="--at", expected="2026-01-05T08:00:00", found=quoted(at))
    cluster = load_cluster(config, accounting, strict=not lenient)
    state = read_state(live, timezone)
    if not state.jobs:
        if state.faults:
            raise InputError(f"no job could be read; the first fault: {state.faults[0]}")
        raise InputError(
            "the files have no waiting or running jobs", expected="the output of squeue, scontrol show job or sacct"
        )
    past = load_parts(list(history), timezone=timezone) if history else None
    made = Forecaster(cluster.config, state, at=moment, what_if=what_if, timezone=timezone)
    found = made.forecast(past, replicas=replicas, seed=seed, horizon=horizon, jobs=jobs)
    found.remarks[:0] = (
        [f"rows of the history that could not be read: {len(past.faults):,}"] if past and past.faults else []
    )
    if state.shares is None and cluster.config.associations and cluster.config.priority.weight_fairshare:
        found.remarks.insert(0, "no output of sshare was given, so fair share starts from no usage")
    found.remarks[:0] = cluster.warnings
    return found
