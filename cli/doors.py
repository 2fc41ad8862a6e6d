"""The commands of ``pipistrelle``: groups, names and purposes, in one table."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

#: settings of both programs, ``pipistrelle`` and ``pipistrelle-batsim``
SETTINGS: Final[Mapping[str, Any]] = {
    "help_option_names": ["-h", "--help"],
    "show_default": True,
    "max_content_width": 100,
}


class Door(NamedTuple):
    """One command, or a group of commands, of ``pipistrelle``.

    The module of the command is imported only when the command is used.

    Attributes:
        purpose: one line, shown in the help of the group that contains the command.
        place: module of the command within `pipistrelle.cli`, as ``module`` or ``module:NAME``. NAME is the command's
            name in that module; by default it is ``command``. Empty for a group without a class of its own.
        doors: the commands of a group; None for a single command.
        text: further help text of a group.
    """

    purpose: str
    place: str = ""
    doors: "Mapping[str, Door] | None" = None
    text: str = ""


_STUDY: Final = {
    "run": Door("Run a study, or continue an interrupted one.", "study.run"),
    "summary": Door("Print mean results with confidence intervals.", "study.tell:summary_command"),
    "compare": Door("Compare and rank schedulers or other varied parameters.", "study.compare:compare_command"),
    "break-even": Door("Find the repair time at which a result meets a target.", "study.tell:break_even_command"),
    "plot": Door("Draw the results of a study.", "study.plot:plot_command"),
    "steps": Door("Measure the error of scheduling at fixed time steps.", "study.steps"),
    "papers": Door("Reproduce the tables and figures of five papers.", "study.papers"),
}
_WORKLOAD: Final = {
    "generate": Door(
        "Generate random jobs: with daily cycles, by class, or like a log.", "workload.generate:generate_command"
    ),
    "model": Door("Fit a statistical model to a log.", "workload.generate:model_command"),
    "convert": Door("Convert a workload or log to another format.", "workload.convert:convert_command"),
    "describe": Door("Describe a workload: sizes, times, load, users, arrivals.", "workload.describe:describe_command"),
    "compare": Door("Compare two workloads: distributions, arrivals, users.", "workload.compare:compare_command"),
    "fill": Door("Fill shared nodes with pods that never end.", "workload.fill:fill_command"),
    "filter": Door("Keep the jobs that meet all conditions.", "workload.edit:filter_step"),
    "scale": Door("Change sizes, times, memory or arrivals.", "workload.edit:scale_step"),
    "merge": Door("Join several workloads into one.", "workload.edit:merge_step"),
    "shuffle": Door("Exchange the submit times of jobs at random.", "workload.edit:shuffle_step"),
    "copy": Door("Repeat each job several times.", "workload.edit:copy_step"),
    "redraw": Door("Replace the jobs by random ones with similar statistics.", "workload.edit:redraw_step"),
}
_FAILURES: Final = {
    "generate": Door("Generate random failures from a failure model.", "inputs.outages:generate_command"),
    "show": Door("Describe a failure log: rates, repairs, clustering.", "inputs.outages:show_command"),
    "fit": Door("Fit a failure model to a failure log.", "inputs.outages:fit_command"),
    "plan": Door("Compute the node reliability and partitions that jobs need.", "inputs.reliability:plan_command"),
    "partitions": Door(
        "Compare random placement with partitions by reliability.", "inputs.reliability:partitions_command"
    ),
    "yield": Door("Compute the useful share of node time with spare nodes.", "inputs.yields"),
}
_EXPLAIN: Final = {
    "job": Door("Explain the wait of a job, or of all jobs of a user or queue.", "results.explain:job_command"),
    "queue": Door("Show the queue at one moment, with expected starts.", "results.explain:queue_command"),
    "slurm": Door("Show squeue, sprio, sshare and sdiag at one moment.", "results.explain:slurm_command"),
    "placement": Door("Report which nodes jobs used and which failures hit them.", "results.placement:report_command"),
    "order": Door("Estimate which failures another node order would avoid.", "results.placement:order_command"),
    "accuracy": Door("Compare simulated waits with those in the log.", "results.accuracy"),
    "titan": Door("Compare failure statistics of Titan's GPUs with a paper's.", "results.placement:titan_command"),
}
_SLURM: Final = {
    "record": Door("Record what the real slurmctld decides, in virtual time.", "run.slurm_record"),
    "check": Door("Compare the scheduler 'slurm' with a recording of slurmctld.", "results.slurm_check"),
}
_NEW: Final = {
    "scheduler": Door("Write a small working scheduler in one of five languages.", "schedulers.new"),
    "keys": Door("Create keys for a scheduler on another machine.", "schedulers.keys"),
}
_CHECK: Final = {
    "scheduler": Door("Test a scheduler with difficult situations.", "schedulers.conformance"),
    "cases": Door("Rerun test cases and compare with their expected results.", "schedulers.ci"),
    "replay": Door("Replay a recorded session to a scheduler or the server.", "schedulers.replay"),
}
#: {group in the help: {command: what it is}}
GROUPS: Final[Mapping[str, Mapping[str, Door]]] = {
    "Run": {
        "run": Door("Simulate a workload under a scheduler.", "run.run"),
        "serve": Door("Run only the server, for a scheduler in another terminal.", "run.serve"),
        "schedule": Door("Run only the scheduler, for a server in another terminal.", "run.schedule"),
        "resume": Door("Continue a run from its last snapshot.", "run.resume"),
        "forecast": Door("Forecast when the pending jobs of a live Slurm cluster start.", "results.forecast"),
    },
    "Look at results": {
        "compare": Door("Compare runs: waits, utilisation, first difference.", "results.compare"),
        "report": Door("Write runs as one self-contained HTML page.", "results.report"),
        "explain": Door("Explain the waits and nodes of a run, and how near the log it is.", doors=_EXPLAIN),
    },
    "Study": {"study": Door("Run many simulations and summarise the results.", doors=_STUDY)},
    "Inputs": {
        "show": Door("List or print bundled platforms, workloads and schedulers.", "inputs.library"),
        "validate": Door("Check input files and describe what is in them.", "inputs.validate"),
        "workload": Door(
            "Create, convert, describe and change workloads.",
            "workload.group:StepGroup",
            _WORKLOAD,
            "To make several changes in one command, put 'then' between them: 'workload filter ... then scale ...'. "
            "'then' works with filter, scale, merge, shuffle, copy and redraw.",
        ),
        "failures": Door("Generate and describe node failures, and plan for them.", doors=_FAILURES),
    },
    "Schedulers and protocol": {
        "new": Door("Create encryption keys, or the source code of a new scheduler.", doors=_NEW),
        "check": Door("Test a scheduler, or check results against recorded ones.", doors=_CHECK),
        "slurm": Door("Compare the scheduler 'slurm' with the real slurmctld.", doors=_SLURM),
    },
    "Help": {"help": Door("Print a documentation page or the help of a command.", "manual")},
}
#: {name of a command before the first release: its name now}
_FORMER: Final = {
    "list": "show",
    "batsim": "pipistrelle-batsim",
    "diff": "compare",
    "convert": "workload convert",
    "outages": "failures",
    "reliability": "failures plan' or 'failures partitions",
    "yield": "failures yield",
    "placement": "explain placement",
    "accuracy": "explain accuracy",
    "steps": "study steps",
    "papers": "study papers",
    "conformance": "check scheduler",
    "ci": "check cases",
    "replay": "check replay",
    "keys": "new keys",
}


class LazyGroup(click.Group):
    """A group that lists its commands without importing them."""

    def __init__(self, sections: Mapping[str, Mapping[str, Door]], **settings: Any) -> None:
        super().__init__(**settings)
        self._sections = sections
        self.doors = {name: door for doors in sections.values() for name, door in doors.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return list(self.doors)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of this name; return None for an unknown name."""
        door = self.doors.get(cmd_name)
        if door is None:
            return None
        module, _, name = door.place.partition(":")
        found: Any = getattr(import_module(f"pipistrelle.cli.{module}"), name or "command") if module else LazyGroup
        if door.doors is None:
            command: click.Command = found
            return command
        group: LazyGroup = found({"Commands": door.doors}, name=cmd_name, help=f"{door.purpose}\n\n{door.text}")
        return group

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and purposes, group by group, in aligned columns."""
        width = max(map(len, self.doors))
        for title, doors in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", door.purpose) for name, door in doors.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of this name.

        For an unknown name, fail with a suggestion: a similar name, or the new name of a renamed command.
        """
        name = args[0]
        if name not in self.doors and not name.startswith("-") and not ctx.resilient_parsing:
            from pipistrelle.protocol.base.errors import did_you_mean

            known = _FORMER.get(name) if ctx.parent is None else None
            hint = f"Use '{known}'." if known else did_you_mean(name, list(self.doors))
            ctx.fail(f"there is no command '{name}'. {hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands without importing them."""
        found = [
            CompletionItem(name, help=door.purpose) for name, door in self.doors.items() if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]
