"""Measure how much simulation time a deep queue costs.

Without --burst: simulates the same number of generated jobs at each offered load, in process. Prints the times relative
to that of the first load, and the length of the queue.

With --burst N: compares the time per event with N queued jobs and with an empty queue, for one scheduler or for the
Maui policy under each configuration below. The same stream of jobs is simulated with and without N earlier jobs. The
time of an event is that from one decision to the next, in server and scheduler together.

    python benchmarks/queue_depth.py [--jobs 130000] [--units 1490] [--loads 0.85 1.05] [--scheduler easy]
    python benchmarks/queue_depth.py --burst 60000 --units 240 [--events 1500] [--scheduler maui] [--only NAME ...]
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.traces.generator import generate
from pipistrelle.traces.workload import Workload

#: {name of the configuration: content of maui.cfg}; users are u0 to u1999, groups g0 to g5, classes c0 to c7, accounts
#: a0 to a39
CONFIGURATIONS: Final = {
    "defaults": "",
    "credentials": "CREDWEIGHT 10\nCLASSWEIGHT 1000\nUSERWEIGHT 5\nCLASSCFG[c1] PRIORITY=10\nUSERCFG[u3] PRIORITY=7",
    "xfactor": "XFACTORWEIGHT 100\nQUEUETIMEWEIGHT 2",
    "resources": "RESWEIGHT 1\nPROCWEIGHT 10\nPSWEIGHT 1\nWALLTIMEWEIGHT 1",
    "targets": "TARGWEIGHT 100\nTARGETQUEUETIMEWEIGHT 9\nTARGETXFACTORWEIGHT 1\n"
    "QOSCFG[DEFAULT] QTTARGET=24:00:00 XFTARGET=9",
    "fairshare": "FSPOLICY DEDICATEDPS\nFSWEIGHT 100\nFSUSERWEIGHT 10\nFSACCOUNTWEIGHT 5\nFSDECAY 0.8\n"
    "USERCFG[DEFAULT] FSTARGET=2\nACCOUNTCFG[DEFAULT] FSTARGET=10-",
    "fairshare caps": "FSPOLICY DEDICATEDPS\nUSERCFG[DEFAULT] FSTARGET=30%\nACCOUNTCFG[a1] FSTARGET=9000000^",
    "bypass": "BYPASSWEIGHT 5",
    "negative": "ENABLENEGJOBPRIORITY TRUE\nREJECTNEGPRIOJOBS TRUE\nUSERWEIGHT 1\nUSERCFG[u3] PRIORITY=-30000",
    "no backfilling": "BACKFILLPOLICY NONE",
    "BESTFIT": "BACKFILLPOLICY BESTFIT\nBACKFILLMETRIC PROCS",
    "BESTFIT PROCSECONDS": "BACKFILLPOLICY BESTFIT\nBACKFILLMETRIC PROCSECONDS",
    "GREEDY": "BACKFILLPOLICY GREEDY\nBACKFILLMETRIC PROCS",
    "GREEDY SECONDS": "BACKFILLPOLICY GREEDY\nBACKFILLMETRIC SECONDS",
    "GREEDY, depth 100": "BACKFILLPOLICY GREEDY\nBACKFILLDEPTH 100",
    "BACKFILLDEPTH 10": "BACKFILLDEPTH 10",
    "BACKFILLDEPTH 100": "BACKFILLDEPTH 100",
    "MAXIJOB per user": "USERCFG[DEFAULT] MAXIJOB=4",
    "MAXIJOB in all": "SYSCFG MAXIJOB=200",
    "MAXIJOB per user, accrual always": "USERCFG[DEFAULT] MAXIJOB=4\nJOBPRIOACCRUALPOLICY ALWAYS",
    "FULLPOLICY": "USERCFG[DEFAULT] MAXJOB=4\nJOBPRIOACCRUALPOLICY FULLPOLICY",
    "MAXJOB hard": "USERCFG[DEFAULT] MAXJOB=4",
    "MAXPROC soft and hard": "USERCFG[DEFAULT] MAXPROC=16,64\nCLASSCFG[c1] MAXNODE=32,64",
    "MAXJOB, MAXPROC, per user in class": "USERCFG[DEFAULT] MAXPROC=32,64 MAXJOB=4,8\nCLASSCFG[c1] MAXPROC[USER]=8,16",
    "MAXPS": "USERCFG[DEFAULT] MAXPS=4000000\nACCOUNTCFG[DEFAULT] MAXWC=9000000",
    "NEVER": "RESERVATIONPOLICY NEVER",
    "RESERVATIONDEPTH 8": "RESERVATIONDEPTH 8",
    "HIGHEST": "RESERVATIONPOLICY HIGHEST",
    "HIGHEST, depth 8": "RESERVATIONPOLICY HIGHEST\nRESERVATIONDEPTH 8",
    "stacks": "RESERVATIONDEPTH[0] 2\nRESERVATIONQOSLIST[0] high\nRESERVATIONDEPTH[1] 2\nRESERVATIONQOSLIST[1] DEFAULT",
    "standing": "SRCFG[a] HOSTLIST=0-31 STARTTIME=8:00:00 ENDTIME=18:00:00 CLASSLIST=c1 TIMELIMIT=600\n"
    "SRCFG[b] HOSTLIST=32-47 PERIOD=INFINITY USERLIST=u3",
    "MAXIJOB per user, limited classes": "USERCFG[DEFAULT] MAXIJOB=8\nCLASSCFG[DEFAULT] MAXPROC=64",
    "MAXIJOB per user and per class": "USERCFG[DEFAULT] MAXIJOB=4\nCLASSCFG[DEFAULT] MAXIJOB=200",
    "a whole centre": "CREDWEIGHT 10\nCLASSWEIGHT 100\nCLASSCFG[c1] PRIORITY=10 MAXPROC=64\nXFACTORWEIGHT 10\n"
    "FSPOLICY DEDICATEDPS\nFSWEIGHT 10\nFSUSERWEIGHT 10\nUSERCFG[DEFAULT] FSTARGET=2 MAXPROC=64,128 MAXIJOB=8\n"
    "RESERVATIONDEPTH 4\nSRCFG[a] HOSTLIST=0-31 STARTTIME=8:00:00 ENDTIME=18:00:00 CLASSLIST=c1 TIMELIMIT=600",
}
#: configurations that are also measured with node failures
FAILING: Final = ("defaults", "a whole centre")
#: numbers of users, groups, accounts and classes; a user has one group and one account
USERS, GROUPS, ACCOUNTS, CLASSES = 2000, 6, 40, 8


class Depth(Observer):
    """Records the queue length after each submission and start.

    Attributes:
        now: current length.
        total: sum of the lengths.
        events: number of the lengths.
        most: greatest length.
    """

    def __init__(self) -> None:
        self.now = 0
        self.total = 0
        self.events = 0
        self.most = 0

    def _change(self, step: int) -> None:
        self.now += step
        self.total += self.now
        self.events += 1
        self.most = max(self.most, self.now)

    def submitted(self, now: float, job: Job) -> None:
        """Increase the queue length by one."""
        self._change(1)

    def started(self, now: float, job: Job) -> None:
        """Decrease the queue length by one."""
        self._change(-1)


class Timed:
    """A policy that measures how long its decisions take.

    It ends the run after ``events`` decisions. The first ``skipped`` decisions, which start jobs of the burst, are not
    counted.

    Attributes:
        whole: processor times from one decision to the next (s).
        decisions: processor times of the decisions alone (s).
        waiting: sum of the queue lengths at the decisions.
    """

    def __init__(self, inner: Policy, events: int, skipped: int) -> None:
        self._inner = inner
        self.name: str = inner.name
        self.order: Order = inner.order
        self.features: tuple[str, ...] = tuple(getattr(inner, "features", ()))
        self.whole: list[float] = []
        self.decisions: list[float] = []
        self.waiting = 0
        self._skip = skipped
        self._events = events
        self._before = 0.0

    def decide(self, view: View) -> None:
        """Let the policy decide, and measure the processor time."""
        began = time.process_time()
        if self._skip > 0:
            self._skip -= 1
            self._inner.decide(view)
        else:
            if self._before:
                self.whole.append(began - self._before)
            self._inner.decide(view)
            self._before = began
            self.decisions.append(time.process_time() - began)
            self.waiting += len(view.waiting)
            if len(self.decisions) > self._events:
                view.stop("measured")


def stream(burst: int, events: int, units: int, load: float) -> Workload:
    """Return ``burst`` jobs submitted at once, followed by a stream of single jobs.

    The stream has the given offered load. The jobs have many users, groups, accounts and classes.
    """
    late = generate(jobs=2 * events, units=units, seed=1, load=load)
    early = generate(jobs=burst or 1, units=units, seed=2, load=load)
    count, first = len(late.ids) + burst, burst
    random = np.random.Generator(np.random.PCG64(3))
    user, queue = random.integers(0, USERS, count).tolist(), random.integers(0, CLASSES, count).tolist()
    labels = {
        "user": [f"u{number}" for number in user],
        "group": [f"g{number % GROUPS}" for number in user],
        "account": [f"a{number % ACCOUNTS}" for number in user],
        "queue": [f"c{number}" for number in queue],
    }

    def joined(name: str) -> Any:
        return np.concatenate([getattr(early, name)[:first], getattr(late, name)])

    return Workload(
        name="burst",
        source="benchmark",
        ids=[str(number) for number in range(count)],
        submit=np.concatenate([np.ones(first), late.submit - late.submit[0] + 2.0]),
        size=joined("size"),
        walltime=joined("walltime"),
        runtime=joined("runtime"),
        labels=labels,
        machine_size=units,
    )


def measure(policy: Policy, workload: Workload, units: int, events: int, *, failing: bool = False) -> Timed:
    """Simulate until ``events`` decisions are measured.

    Return the policy with its times.
    """
    timed = Timed(policy, events, skipped=20)
    machine = homogeneous(units, "machine")
    spec = RunSpec(failures=("exponential,mtbf=20d",), repair="4h") if failing else RunSpec()
    reliability = load_reliability(spec, machine, workload)
    run_in_process(workload, timed, platform=machine, reliability=reliability)
    return timed


def compare(name: str, policies: Sequence[Policy], arguments: argparse.Namespace, *, failing: bool = False) -> None:
    """Compare the time per event of an empty and of a deep queue, and print ratios.

    Each measurement needs its own policy.
    """
    units, events = arguments.units, arguments.events
    found = []
    for policy, burst in zip(policies, (0, arguments.burst), strict=True):
        workload = stream(burst, events, units, 0.3)
        found.append(measure(policy, workload, units, events, failing=failing))
    empty, deep = found
    whole, median, inside = (
        reduce(getattr(deep, what)) / reduce(getattr(empty, what))
        for reduce, what in ((np.mean, "whole"), (np.median, "whole"), (np.mean, "decisions"))
    )
    waited = [timed.waiting / len(timed.decisions) for timed in found]
    print(
        f"{name:36} mean {whole:5.1f} x  median {median:5.1f} x  "
        f"({1e6 * np.mean(empty.whole):4.0f} -> {1e6 * np.mean(deep.whole):5.0f} us; in the policy {inside:5.1f} x; "
        f"queue {waited[0]:.1f} -> {waited[1]:,.0f})",
        flush=True,
    )


def bursts(arguments: argparse.Namespace) -> None:
    """Print the comparison with a deep queue for each requested configuration."""
    if arguments.scheduler != "maui":
        compare(arguments.scheduler, [make_policy(arguments.scheduler) for _ in range(2)], arguments)
        return
    chosen = arguments.only or [*CONFIGURATIONS, *(f"{name}, failures" for name in FAILING)]
    for name in chosen:
        plain = name.removesuffix(", failures")
        settings, warnings = parse_maui_config(CONFIGURATIONS[plain])
        if warnings:
            raise SystemExit(f"{name}: {warnings[0]}")
        compare(name, [MauiPolicy(settings) for _ in range(2)], arguments, failing=plain != name)


def loads(arguments: argparse.Namespace) -> None:
    """Print the times of runs and their queue lengths for each offered load."""
    base = None
    for load in arguments.loads:
        workload = generate(jobs=arguments.jobs, units=arguments.units, seed=1, load=load)
        depth = Depth()
        began = time.process_time()
        result = run_in_process(
            workload,
            arguments.scheduler,
            platform=homogeneous(arguments.units, "machine"),
            options=RunOptions(observers=[depth]),
        )
        seconds = time.process_time() - began
        base = base or seconds
        print(
            f"load {load:.2f}: {seconds / base:5.2f} x the first ({seconds:.1f} s of CPU, "
            f"{1e6 * seconds / result.times.round_trips:.0f} us a round trip), "
            f"queue {depth.total / depth.events:,.0f} on average, {depth.most:,} at most"
        )


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=130_000)
    parser.add_argument("--units", type=int, default=1490)
    parser.add_argument("--loads", type=float, nargs="+", default=[0.85, 1.05])
    parser.add_argument("--scheduler", default="easy")
    parser.add_argument("--burst", type=int, help="number of queued jobs")
    parser.add_argument("--events", type=int, default=1500, help="measured events, with --burst")
    parser.add_argument("--only", nargs="+", choices=[*CONFIGURATIONS, *(f"{name}, failures" for name in FAILING)])
    arguments = parser.parse_args()
    try:
        if arguments.burst is None:
            loads(arguments)
        else:
            bursts(arguments)
    except PipistrelleError as error:
        parser.exit(error.exit_code, f"{error}\n")


if __name__ == "__main__":
    main()
