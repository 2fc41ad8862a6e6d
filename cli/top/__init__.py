"""Pipistrelle simulates HPC clusters under batch schedulers in any language.

``import pipistrelle as pp`` offers everything that a notebook needs; each name is imported when it is first used.
docs/reference/api.md lists the names.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipistrelle.api.comparisons import Comparison as Comparison
    from pipistrelle.api.comparisons import JobExplanation as JobExplanation
    from pipistrelle.api.comparisons import compare as compare
    from pipistrelle.api.comparisons import explain as explain
    from pipistrelle.api.inputs import bundled as bundled
    from pipistrelle.api.inputs import clean_workload as clean_workload
    from pipistrelle.api.inputs import describe_platform as describe_platform
    from pipistrelle.api.inputs import describe_workload as describe_workload
    from pipistrelle.api.inputs import generate_workload as generate_workload
    from pipistrelle.api.inputs import load_platform as load_platform
    from pipistrelle.api.inputs import load_workload as load_workload
    from pipistrelle.api.inputs import save_workload as save_workload
    from pipistrelle.api.inputs import transform_workload as transform_workload
    from pipistrelle.api.options import RunKeywords as RunKeywords
    from pipistrelle.api.plots import Plots as Plots
    from pipistrelle.api.results import Run as Run
    from pipistrelle.api.results import open as open
    from pipistrelle.api.runs import run as run
    from pipistrelle.api.schedulers import Scheduler as Scheduler
    from pipistrelle.api.studies import Picture as Picture
    from pipistrelle.api.studies import StudyResults as StudyResults
    from pipistrelle.api.studies import open_study as open_study
    from pipistrelle.api.studies import study as study
    from pipistrelle.api.tables import Table as Table
    from pipistrelle.kernel.kernel import why_not
    from pipistrelle.kernel.table import run_kernel as run_kernel
    from pipistrelle.platforms.description import Platform as Platform
    from pipistrelle.platforms.description import Pool as Pool
    from pipistrelle.platforms.description import homogeneous as homogeneous
    from pipistrelle.platforms.failures.text import parse_durations as parse_durations
    from pipistrelle.platforms.node_rows import with_node_rows as with_node_rows
    from pipistrelle.platforms.read import parse_platform as parse_platform
    from pipistrelle.platforms.topology.machine import Machine as Machine
    from pipistrelle.platforms.topology.nodes import NodeTable as NodeTable
    from pipistrelle.platforms.topology.orders import node_order as node_order
    from pipistrelle.protocol.base.errors import PipistrelleError as PipistrelleError
    from pipistrelle.protocol.base.log import PipistrelleWarning as PipistrelleWarning
    from pipistrelle.protocol.base.state import from_json, to_json
    from pipistrelle.protocol.units.nodesets import NodeSet as NodeSet
    from pipistrelle.runs.description.setup import load_setup as load_setup
    from pipistrelle.runs.description.spec import RunSpec as RunSpec
    from pipistrelle.runs.execution.pause import Pause as Pause
    from pipistrelle.runs.execution.run import RunOptions as RunOptions
    from pipistrelle.runs.execution.run import run as execute
    from pipistrelle.runs.forecast.files import forecast_files
    from pipistrelle.runs.forecast.forecast import Forecast as Forecast
    from pipistrelle.runs.inputs.node_table import load_node_rows as load_node_rows
    from pipistrelle.runs.inputs.outages import failure_plan as failure_plan
    from pipistrelle.schedulers.backfill.earliest import earliest_start as earliest_start
    from pipistrelle.schedulers.backfill.easy import Easy as Easy
    from pipistrelle.schedulers.catalogue.parts import compose as compose
    from pipistrelle.schedulers.catalogue.registry import make_policy
    from pipistrelle.schedulers.composed import ComposedPolicy as ComposedPolicy
    from pipistrelle.schedulers.maui.config.read import read_maui_config as read_maui_config
    from pipistrelle.schedulers.maui.policy import MauiPolicy as MauiPolicy
    from pipistrelle.schedulers.orders.fixed import Fcfs as Fcfs
    from pipistrelle.schedulers.orders.fixed import Sjf as Sjf
    from pipistrelle.schedulers.placement.lowest import LowestIds as LowestIds
    from pipistrelle.schedulers.policy.interfaces import Stateless as Stateless
    from pipistrelle.schedulers.policy.jobs import SchedulerJob
    from pipistrelle.schedulers.policy.view import View as View
    from pipistrelle.schedulers.policy.windows import Window as Window
    from pipistrelle.server.outputs.metrics import Summary as Summary
    from pipistrelle.studies.trials.study import Study as Study
    from pipistrelle.traces.describe import offered_load as offered_load
    from pipistrelle.traces.workload import Workload as Workload

    Job = SchedulerJob
    forecast = forecast_files
    make_scheduler = make_policy
    run_spec = execute
    state_from_json = from_json
    state_to_json = to_json
    why_not_kernel = why_not
    __version__: str

#: {module: its public names}; ``a=b`` offers ``a`` as ``b``. tests/test_api.py compares it with the imports above.
_HOMES = {
    "api.comparisons": "Comparison JobExplanation compare explain",
    "api.inputs": (
        "bundled clean_workload describe_platform describe_workload generate_workload load_platform load_workload "
        "save_workload transform_workload"
    ),
    "api.options": "RunKeywords",
    "api.plots": "Plots",
    "api.results": "Run open",
    "api.runs": "run",
    "api.schedulers": "Scheduler",
    "api.studies": "Picture StudyResults open_study study",
    "api.tables": "Table",
    "kernel.kernel": "why_not=why_not_kernel",
    "kernel.table": "run_kernel",
    "platforms.description": "Platform Pool homogeneous",
    "platforms.failures.text": "parse_durations",
    "platforms.node_rows": "with_node_rows",
    "platforms.read": "parse_platform",
    "platforms.topology.machine": "Machine",
    "platforms.topology.nodes": "NodeTable",
    "platforms.topology.orders": "node_order",
    "protocol.base.errors": "PipistrelleError",
    "protocol.base.log": "PipistrelleWarning",
    "protocol.base.state": "from_json=state_from_json to_json=state_to_json",
    "protocol.units.nodesets": "NodeSet",
    "runs.description.setup": "load_setup",
    "runs.description.spec": "RunSpec",
    "runs.execution.pause": "Pause",
    "runs.execution.run": "RunOptions run=run_spec",
    "runs.forecast.files": "forecast_files=forecast",
    "runs.forecast.forecast": "Forecast",
    "runs.inputs.node_table": "load_node_rows",
    "runs.inputs.outages": "failure_plan",
    "schedulers.backfill.earliest": "earliest_start",
    "schedulers.backfill.easy": "Easy",
    "schedulers.catalogue.parts": "compose",
    "schedulers.catalogue.registry": "make_policy=make_scheduler",
    "schedulers.composed": "ComposedPolicy",
    "schedulers.maui.config.read": "read_maui_config",
    "schedulers.maui.policy": "MauiPolicy",
    "schedulers.orders.fixed": "Fcfs Sjf",
    "schedulers.placement.lowest": "LowestIds",
    "schedulers.policy.interfaces": "Stateless",
    "schedulers.policy.jobs": "SchedulerJob=Job",
    "schedulers.policy.view": "View",
    "schedulers.policy.windows": "Window",
    "server.outputs.metrics": "Summary",
    "studies.trials.study": "Study",
    "traces.describe": "offered_load",
    "traces.workload": "Workload",
}
#: {public name: (module, name in the module)}
_NAMES = {
    word.partition("=")[2] or word: (module, word.partition("=")[0])
    for module, words in _HOMES.items()
    for word in words.split()
}
__all__ = [*sorted(_NAMES)]  # noqa: PLE0604 - a list of texts


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, or look up the version."""
    if name == "__version__":
        from pipistrelle.protocol.fields import package_version

        return package_version()
    if name not in _NAMES:
        from pipistrelle.protocol.base.errors import did_you_mean

        raise AttributeError(f"module {__name__!r} has no attribute {name!r}. {did_you_mean(name, __all__)}".rstrip())
    from importlib import import_module

    module, own_name = _NAMES[name]
    found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), own_name)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
