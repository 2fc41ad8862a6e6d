"""The program ``pipistrelle-batsim``, for scripts that call Batsim.

It has Batsim 4's command line.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from pipistrelle.cli.doors import SETTINGS
from pipistrelle.cli.options.fields import Choice, added, options_of
from pipistrelle.cli.options.sections import CONNECTION, INPUTS, MACHINE, OUTPUTS, SCHEDULER, Command, in_section
from pipistrelle.cli.options.shared import snapshot_options, timeout_option
from pipistrelle.cli.run.described import transform_option
from pipistrelle.cli.terminal.console import configure_log, import_numpy, progress_observers
from pipistrelle.cli.terminal.guard import FilledPath, refuse_overwriting
from pipistrelle.runs.description.spec import BATSIM_ENDPOINT, BatsimSpec, RunSpec

if TYPE_CHECKING:
    from pipistrelle.runs.execution.run import RunOptions
    from pipistrelle.server.simulation.simulate import Result

#: {unsupported option: why}, first Batsim 4's, then older ones
REFUSED: Final = {
    "--workflow": "workflows are not simulated; a scheduler can register each job when its turn has come",
    "--workflow-start": "workflows are not simulated; a scheduler can register each job when its turn has come",
    "--workflow-jobs-limit": "workflows are not simulated",
    "--ignore-beyond-last-workflow": "workflows are not simulated",
    "--enable-redis": "schedulers receive jobs over the socket only",
    "--redis-hostname": "schedulers receive jobs over the socket only",
    "--redis-port": "schedulers receive jobs over the socket only",
    "--redis-prefix": "schedulers receive jobs over the socket only",
    "--disable-storage-sharing": "Pipistrelle does not simulate storage",
    "--sg-cfg": "Pipistrelle does not use SimGrid, which this option configures",
    "--sg-log": "Pipistrelle does not use SimGrid, whose log this option sets",
    "--simgrid-version": "Pipistrelle does not use SimGrid",
    "--batexec": "it is called --no-sched since Batsim 3",
    "--allow-time-sharing": "it is called --enable-compute-sharing since Batsim 3",
    "--config-file": "Batsim 3 replaced it by options",
    "--enable-sg-process-tracing": "Pipistrelle does not use SimGrid, which writes these traces",
}
_ALIASES: Final = {"-W": "--workflow", "--WS": "--workflow-start"}
_C = TypeVar("_C", bound=Callable[..., Any])
_VERBOSITIES: Final = ("quiet", "network-only", "information", "debug")
#: options that need a scheduler
_FOR_A_SCHEDULER: Final = (
    *("socket_endpoint", "events", "forward_profiles_on_submission", "enable_dynamic_jobs", "acknowledge_dynamic_jobs"),
    *("enable_profile_reuse", "forward_unknown_events", "sched_cfg", "sched_cfg_file"),
    *("hello_timeout", "decision_timeout"),
)


class BatsimCommand(Command):
    """A command that accepts abbreviated options and explains unsupported ones."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Complete abbreviated options before click parses them."""
        words = list(args)
        while True:
            try:
                return super().parse_args(ctx, list(words))
            except click.NoSuchOption as error:
                given = error.option_name
                name = self._whole(ctx, given)
                if name in REFUSED:
                    raise click.UsageError(f"{given} is not supported: {REFUSED[name]}.", ctx) from None
                if name is None:
                    raise
                words = [name + word[len(given) :] if word.partition("=")[0] == given else word for word in words]

    def _whole(self, ctx: click.Context, given: str) -> str | None:
        """Return the full name of an abbreviated option.

        Return None if no option, or more than one, begins like this.
        """
        if given in _ALIASES:
            return _ALIASES[given]
        known = {name for option in self.get_params(ctx) for name in option.opts} | REFUSED.keys()
        if given in known:
            return given
        found = [name for name in known if given.startswith("--") and name.startswith(given)]
        return found[0] if len(found) == 1 else None


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from pipistrelle.protocol.fields import package_version

        click.echo(f"pipistrelle {package_version()} (command line of Batsim 4)")
        ctx.exit()


_TEXTS: Final = {
    "events": "FILE\tExternal events to send to the scheduler: one JSON object per line.",
    "master_host": "NAME\tHost that runs no jobs: Batsim's master host.",
    "add_role_to_hosts": "HOST,...:ROLE\tGive hosts a role: compute_node, storage or master.",
    "energy": "Compute energy use; write PREFIX_consumed_energy.csv and PREFIX_pstate_changes.csv.",
    "mmax": "NUMBER\tMaximum number of compute hosts; 0: all.",
    "mmax_workload": "Use at most as many compute hosts as the workload states (nb_res).",
    "forward_profiles_on_submission": "Send each job's profile to the scheduler.",
    "enable_dynamic_jobs": "Let the scheduler register jobs and profiles.",
    "acknowledge_dynamic_jobs": "Answer the scheduler's REGISTER_JOB with JOB_SUBMITTED.",
    "enable_profile_reuse": "Keep profiles after their jobs end, for jobs registered later.",
    "forward_unknown_events": "Send events of unknown types to the scheduler.",
    "enable_compute_sharing": "Allow several jobs to run on a host at the same time.",
    "no_sched": "Run without a scheduler: start all jobs at time 0.",
    "sched_cfg": "TEXT\tConfiguration text that the scheduler receives in its first message.",
    "sched_cfg_file": "FILE\tFile with configuration text that the scheduler receives in its first message.",
    "bandwidth": "BYTES/S\tNetwork bandwidth of a host, for jobs that communicate (not a Batsim option).",
}


def _own(*names: str) -> Callable[[_C], _C]:
    """Return a decorator that adds the options for these fields of `BatsimSpec`."""
    short = {"master_host": "-m", "add_role_to_hosts": "-r", "energy": "-E"}
    return added(options_of(BatsimSpec, {name: _TEXTS[name] for name in names}, names=short))


@click.command(
    "pipistrelle-batsim",
    cls=BatsimCommand,
    context_settings=SETTINGS,
    common=(
        *("workload", "platform", "events", "socket_endpoint", "export", "enable_dynamic_jobs"),
        *("enable_compute_sharing", "no_sched", "verbosity", "quiet"),
    ),
)
@in_section(
    INPUTS,
    click.option(
        "-w",
        "--workload",
        metavar="FILE",
        multiple=True,
        help="Jobs as Batsim JSON; repeatable: ids of jobs begin with w0!, w1!, ...",
    ),
    transform_option,
    _own("events"),
)
@in_section(
    MACHINE,
    click.option("-p", "--platform", metavar="FILE", required=True, help="Hosts as SimGrid XML."),
    _own("master_host", "add_role_to_hosts", "energy", "mmax", "mmax_workload", "enable_compute_sharing", "bandwidth"),
)
@in_section(
    SCHEDULER,
    _own("forward_profiles_on_submission", "enable_dynamic_jobs", "acknowledge_dynamic_jobs", "enable_profile_reuse"),
    _own("forward_unknown_events", "no_sched", "sched_cfg", "sched_cfg_file"),
)
@in_section(
    CONNECTION,
    click.option(
        "-s",
        "--socket-endpoint",
        metavar="ADDRESS",
        default=BATSIM_ENDPOINT,
        help="Address at which the scheduler listens.",
    ),
    timeout_option("hello", "the scheduler to listen (not a Batsim option)"),
    timeout_option("decision", "each reply of the scheduler (not a Batsim option)"),
)
@in_section(
    OUTPUTS,
    click.option(
        "-e",
        "--export",
        metavar="PREFIX",
        type=FilledPath(),
        default="out",
        help="Beginning of the path of every output file, such as results/easy.",
    ),
    click.option(
        "--disable-schedule-tracing", is_flag=True, help="No effect, because Pipistrelle never writes Pajé traces."
    ),
    click.option("--disable-machine-state-tracing", is_flag=True, help="Do not write PREFIX_machine_states.csv."),
    click.option(
        "-v",
        "--verbosity",
        type=Choice(_VERBOSITIES),
        default="information",
        help="What to print: errors, protocol messages, a summary, or everything.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Same as --verbosity quiet."),
    snapshot_options,
)
@click.option(
    "--dump-execution-context", is_flag=True, help="Print the socket address and the output prefix as JSON, and exit."
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def command(ctx: click.Context, /, dump_execution_context: bool, quiet: bool, **options: Any) -> None:
    """Simulate with Batsim 4's command-line options.

    \b
    pipistrelle-batsim -p cluster.xml -w jobs.json -e results/easy
    """
    if dump_execution_context:
        click.echo(_execution_context(options))
        return
    _check(ctx, options)
    _run("quiet" if quiet else options["verbosity"], options)


def _execution_context(options: dict[str, Any]) -> str:
    """Return what Batsim's ``--dump-execution-context`` prints.

    This is the socket address and the output prefix, as JSON.
    """
    context = {
        "socket_endpoint": options["socket_endpoint"],
        "redis_enabled": False,
        "redis_hostname": "127.0.0.1",
        "redis_port": 6379,
        "redis_prefix": "default",
        "export_prefix": options["export"],
        "external_scheduler": not options["no_sched"],
    }
    import msgspec

    return msgspec.json.encode(context).decode()


def _check(ctx: click.Context, options: dict[str, Any]) -> None:
    """Raise a usage error if --no-sched conflicts with another option.

    This is an option that needs a scheduler.
    """
    if options["no_sched"]:
        for name in _FOR_A_SCHEDULER:
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise click.UsageError(
                    f"--no-sched runs without a scheduler, and --{name.replace('_', '-')} needs one: omit one of them."
                )


def _run(verbosity: str, options: dict[str, Any]) -> None:
    import_numpy()
    # Not needed for help and --dump-execution-context.
    from pipistrelle.cli.terminal.heartbeat import heartbeat_of
    from pipistrelle.runs.description.setup import load_setup
    from pipistrelle.runs.execution.connection import Connecting
    from pipistrelle.runs.execution.run import RunOptions, run
    from pipistrelle.runs.folders.occupied import check_prefix
    from pipistrelle.server.batsim.outputs import BatsimOutputs, output_paths
    from pipistrelle.server.outputs.lock import sole_writer

    logs_messages = verbosity in ("network-only", "debug")
    configure_log({"network-only": 1, "debug": 2}.get(verbosity, 0))
    prefix = options["export"]
    spec = RunSpec(
        platform=options["platform"],
        workload=options["workload"],
        transform=options["transform"],
        scheduler=(),
        dialect="batsim",
        strict=True,
        batsim=BatsimSpec(**{name: options[name] for name in BatsimSpec.__struct_fields__}),
    )
    refuse_overwriting(spec.inputs, output_paths(prefix))
    setup = load_setup(spec)
    progress = None if verbosity == "information" else False
    ways = RunOptions(
        connection=Connecting(
            endpoint=options["socket_endpoint"],
            hello_timeout=options["hello_timeout"],
            decision_timeout=options["decision_timeout"],
            logged=logs_messages,
        ),
        outputs=BatsimOutputs(prefix, machine_states=not options["disable_machine_state_tracing"]),
        observers=progress_observers(setup, progress),
        setup=setup,
        check=False,
        beat=heartbeat_of(setup, progress),
    )
    with sole_writer(prefix, "--export"):
        check_prefix(prefix, "--export")
        result = run(spec, ways) if options["snapshot_every"] is None else _run_kept(spec, ways, prefix, options)
    if verbosity in ("information", "debug"):
        from pipistrelle.cli.terminal.summary import report  # not needed before there is something to show

        report(result, setup, Path(f"{prefix}_*.csv"), None)
    elif result.failure is not None:
        raise result.failure


def _run_kept(spec: RunSpec, ways: "RunOptions", prefix: str, options: dict[str, Any]) -> "Result":
    """Simulate a run that saves snapshots of its state for ``pipistrelle resume``."""
    from dataclasses import replace

    from pipistrelle.runs.description.spec_file import with_digests
    from pipistrelle.runs.sessions.resume import run_kept
    from pipistrelle.runs.sessions.snapshot import Every, Keeping

    every, most = Every.of(options["snapshot_every"]), options["keep_snapshots"]
    path = Path(f"{prefix}_")
    keeping = Keeping(every=every, most=most, leave=options["leave_snapshots"], prefix=path.name)
    return run_kept(with_digests(spec), replace(ways, out=path.parent), keeping)
