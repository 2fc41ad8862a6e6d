"""All numbers of a trial that a study asks for, such as metrics and distributions."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipistrelle.runs.execution.job_table import JobTable
from pipistrelle.studies.measures.distributions import quantiles_of
from pipistrelle.studies.measures.job_classes import job_classes
from pipistrelle.studies.measures.measures import Measures
from pipistrelle.studies.measures.metrics import Metric, ended_jobs, metric_names, metrics, resource_metrics
from pipistrelle.studies.measures.window import WindowOfRun
from pipistrelle.traces.workload import Workload


class Figures(NamedTuple):
    """The results of a trial.

    They are its metrics by name, and quantiles of quantities of its jobs.
    """

    figures: dict[str, Metric]
    quantiles: dict[str, list[float]]


def figures_of(table: JobTable, measures: Measures, workloads: Mapping[str, Workload]) -> Figures:
    """Return the metrics and quantiles that a study asks for.

    Args:
        table: the jobs of the trial. It needs ids for metrics by label, and node-seconds for costs.
        workloads: the workloads of the trial by their prefixes.

    Raises:
        WindowError: warm-up and drain leave no time in between.
    """
    warm_up, drain = measures.left_out
    classes = job_classes(measures.by, workloads, table) if measures.by else {}
    figures = metrics(table, warm_up=warm_up, drain=drain, sizes=measures.sizes, classes=classes)
    if measures.costs is not None and table.node_seconds is not None:
        figures |= measures.costs.of(table.node_seconds)
    if not measures.distributions:
        return Figures(figures, {})
    done = ended_jobs(table, WindowOfRun.of(table, warm_up, drain))
    return Figures(figures, quantiles_of(table, np.asarray(done), measures.distributions))


def figure_names(measures: Measures, names: Mapping[str, list[str]], resources: Sequence[str] = ()) -> set[str]:
    """Return the names of all metrics that trials can have.

    Args:
        names: {label: values in any of the study's workloads}.
        resources: names of the resources of shared nodes.
    """
    classes = [f"{label}_{name}" for label, values in names.items() for name in values]
    costs = set() if measures.costs is None else measures.costs.names
    return metric_names(measures.sizes, classes) | costs | resource_metrics(resources)
