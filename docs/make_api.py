"""Write docs/reference/api.md from the docstrings: python docs/make_api.py > docs/reference/api.md"""

import inspect
import sys
from importlib import import_module
from typing import Any

#: {heading: (purpose, {module: names})}
SECTIONS: dict[str, tuple[str, dict[str, list[str]]]] = {
    "Run": (
        "Run from a description, or from a workload and a policy; read the outputs.",
        {
            "pipistrelle.runs.description.spec": ["RunSpec"],
            "pipistrelle.runs.execution.run": ["run", "run_in_process", "RunOptions"],
            "pipistrelle.runs.description.setup": ["load_setup", "Inputs"],
            "pipistrelle.runs.execution.pause": ["Pause"],
            "pipistrelle.reports.explain.index": ["open_index"],
            "pipistrelle.reports.explain.explanation": ["account"],
            "pipistrelle.reports.explain.shares": ["shares"],
            "pipistrelle.runs.folders.run_jobs": ["RunJobs", "read_run_jobs"],
            "pipistrelle.reports.report.comparison": ["compare"],
            "pipistrelle.reports.report.differences": ["first_difference"],
            "pipistrelle.reports.page.page": ["page_of"],
            "pipistrelle.papers.bench": ["PapersSize", "Bench", "open_parts"],
            "pipistrelle.papers.collection": ["paper_ids", "get_paper", "chosen_entries", "make_entries"],
            "pipistrelle.papers.page": ["paper_page"],
        },
    ),
    "Studies": (
        "Many runs, their table, and the tables of their jobs; [Studies](../how-to/studies.md).",
        {
            "pipistrelle.studies": ["run", "estimate", "Study", "Results"],
            "pipistrelle.runs.execution.job_table": ["JobTable", "JobTableBook"],
            "pipistrelle.studies.measures.metrics": ["metrics"],
            "pipistrelle.studies.measures.window": ["Leave"],
            "pipistrelle.kernel.kernel": ["why_not"],
            "pipistrelle.kernel.table": ["run_kernel"],
            "pipistrelle.studies.inference.trials": ["TrialTable"],
            "pipistrelle.studies.inference.reports": ["summary", "comparison", "all_pairs"],
            "pipistrelle.studies.inference.ranking": ["ranking"],
            "pipistrelle.studies.inference.crossing": ["Curves"],
            "pipistrelle.models.samples.stopping": ["Rule", "replicas_needed"],
        },
    ),
    "Schedulers": (
        "A policy's view and its parts; see [Write your scheduler](../tutorials/write-your-scheduler.md).",
        {
            "pipistrelle.schedulers.catalogue.registry": ["make_policy"],
            "pipistrelle.schedulers.catalogue.parts": ["compose"],
            "pipistrelle.schedulers.composed": ["ComposedPolicy"],
            "pipistrelle.schedulers.policy.view": ["View"],
            "pipistrelle.schedulers.policy.jobs": ["SchedulerJob"],
            "pipistrelle.schedulers.policy.interfaces": ["Stateless"],
            "pipistrelle.schedulers.orders.fixed": ["Fcfs", "Sjf"],
            "pipistrelle.schedulers.backfill.easy": ["Easy"],
            "pipistrelle.schedulers.placement.lowest": ["LowestIds"],
            "pipistrelle.schedulers.policy.windows": ["Window"],
            "pipistrelle.schedulers.maui.policy": ["MauiPolicy"],
            "pipistrelle.schedulers.maui.config.read": ["read_maui_config"],
        },
    ),
    "Machines": (
        "Descriptions of machines, and the table of their nodes; [Platforms](platforms.md).",
        {
            "pipistrelle.platforms.description": ["Platform", "Pool", "homogeneous"],
            "pipistrelle.platforms.read": ["parse_platform", "to_toml"],
            "pipistrelle.platforms.catalogue": ["names", "get"],
            "pipistrelle.platforms.describe": ["describe"],
            "pipistrelle.platforms.topology.machine": ["Machine"],
            "pipistrelle.platforms.topology.nodes": ["NodeTable", "numbers_by_name"],
            "pipistrelle.platforms.node_rows": ["NodeRow", "with_node_rows"],
            "pipistrelle.runs.inputs.node_table": ["load_node_rows"],
            "pipistrelle.reports.placement.run": ["PlacedRun", "read_placed_run", "list_order"],
            "pipistrelle.reports.placement.report": ["job_figures", "report", "months", "whatif"],
            "pipistrelle.reports.placement.stability": ["TABLE_II_RATIO", "failure_share", "series_mtbf", "table_ii"],
            "pipistrelle.platforms.naming.numbering": ["NodeUnits"],
            "pipistrelle.platforms.topology.topology": ["Topology"],
            "pipistrelle.platforms.topology.orders": ["node_order"],
            "pipistrelle.platforms.topology.links": ["LinkLoads"],
            "pipistrelle.runs.inputs.named": ["load_platform", "load_workload"],
            "pipistrelle.platforms.errors": ["PlatformError"],
        },
    ),
    "Failures": (
        "Outages as data, models and maintenance; [Outages](../how-to/outages.md), [Failures](../how-to/failures.md).",
        {
            "pipistrelle.platforms.failures.outage": ["Outage", "Outages", "merge", "csv_chunks"],
            "pipistrelle.platforms.failures.text": ["parse_failures", "parse_durations"],
            "pipistrelle.platforms.failures.catalogue": ["names", "get", "specs"],
            "pipistrelle.platforms.maintenance.plan": ["MaintenancePlan"],
            "pipistrelle.platforms.maintenance.text": ["parse_maintenance"],
            "pipistrelle.runs.inputs.outages": ["failure_plan", "on_machine"],
            "pipistrelle.traces.outages.load": ["load_outage_log"],
            "pipistrelle.traces.resilience": ["parse_resilience"],
            "pipistrelle.server.attempts.progress": ["AttemptProgress"],
        },
    ),
    "Reliability": (
        "Classes of jobs, loss models, plans and partitions; [Reliability](../how-to/reliability.md).",
        {
            "pipistrelle.models.workloads.classes": ["parse_classes", "load_classes", "WorkloadClasses"],
            "pipistrelle.models.workloads.class_jobs": ["generate_jobs"],
            "pipistrelle.models.reliability.loss": ["erlang_b", "erlang_c", "kaufman_roberts", "linear_blocking"],
            "pipistrelle.models.reliability.jobs": ["required_mttf", "required_mttf_in_series", "job_reliability"],
            "pipistrelle.models.reliability.plan": ["make_plan", "PlanOptions"],
            "pipistrelle.models.reliability.resources": ["described", "logged"],
            "pipistrelle.reports.placement.partitions": ["compare", "simulated_loss"],
            "pipistrelle.schedulers.partitions.placement": ["PartitionOptions"],
        },
    ),
    "Workloads": (
        "Read, generate and change logs; [Workloads](workloads.md), [Workload tools](../how-to/workload-tools.md).",
        {
            "pipistrelle.traces.load": ["load", "save"],
            "pipistrelle.traces.workload": ["Workload"],
            "pipistrelle.traces.catalogue": ["load_bundled"],
            "pipistrelle.traces.generator": ["generate"],
            "pipistrelle.traces.clean": ["clean"],
            "pipistrelle.traces.describe": ["describe", "offered_load"],
            "pipistrelle.models.likeness.fitting": ["fit"],
            "pipistrelle.models.likeness.drawing": ["generate_like"],
            "pipistrelle.models.likeness.comparison": ["compare"],
            "pipistrelle.traces.transforms.cut": ["keep"],
            "pipistrelle.traces.transforms.scale": ["scale_to_load"],
            "pipistrelle.traces.transforms.join": ["copies"],
            "pipistrelle.traces.transforms.arrivals": ["shuffle_submits"],
            "pipistrelle.traces.batsim.profile_reader": ["parse_profile"],
            "pipistrelle.traces.profiles": ["runtime_of"],
            "pipistrelle.traces.errors": ["TraceError"],
        },
    ),
    "Protocol": (
        "Messages and their frames, sets of units, errors; [Protocol](protocol.md).",
        {
            "pipistrelle.protocol.codec": ["encode", "decode_notice", "decode_reply"],
            "pipistrelle.protocol.session": ["SchedulerSession", "ServerSession"],
            "pipistrelle.protocol.units.nodesets": ["NodeSet"],
            "pipistrelle.protocol.base.state": ["Kept", "to_json", "from_json"],
            "pipistrelle.protocol.base.errors": ["PipistrelleError"],
        },
    ),
}
HEAD = """# Python API

For anyone who uses Pipistrelle from Python: what to import from where. Other names may change without notice; see
[Stability](stability.md).
Each line is the start of a docstring. The whole text has parameters, units and errors: `help(run)` shows it.

<!-- written by docs/make_api.py -->
"""


def first_paragraph(thing: Any) -> str:
    """Return a docstring's first paragraph on one line, escaped for a table cell."""
    text = inspect.getdoc(thing) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def page() -> str:
    """Return the text of the API page."""
    parts = [HEAD]
    for heading, (purpose, modules) in SECTIONS.items():
        parts.append(f"\n## {heading}\n\n{purpose}\n\n| from | import | what it is |\n|---|---|---|\n")
        for module, names in modules.items():
            for number, name in enumerate(names):
                thing = getattr(import_module(module), name)
                told = first_paragraph(thing) if callable(thing) else f"A constant: {thing!r}."
                parts.append(f"| {'' if number else f'`{module}`'} | `{name}` | {told} |\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
