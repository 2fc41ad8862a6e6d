"""What a run in Batsim's way is set up with, beyond platform and workloads."""

from dataclasses import dataclass

from pipistrelle.traces.batsim.events import ExternalEvent


@dataclass(frozen=True, slots=True)
class BatsimOptions:
    """Batsim's options that change what is simulated or what a scheduler is told; all are off by default.

    Parameters
    ----------
    dynamic_jobs
        whether a scheduler may register jobs and profiles; the run then ends only after it has said
        ``registration_finished``.
    acknowledge_dynamic_jobs
        whether a registered job comes back as JOB_SUBMITTED.
    profile_reuse
        whether profiles of a workload may be used by registered jobs after their own jobs are gone.
    forward_profiles
        whether JOB_SUBMITTED carries the job's profile.
    forward_unknown_events
        whether events of unknown types, from the events files, are told to the scheduler.
    compute_sharing
        whether several jobs may run on one host at a time.
    energy
        whether the energy of the hosts is metered.
    sched_config
        free text for the scheduler.
    events
        what happens from outside, by time.
    bandwidth
        bytes per second that a host can send or receive; None: profiles that communicate are refused.
    """

    dynamic_jobs: bool = False
    acknowledge_dynamic_jobs: bool = False
    profile_reuse: bool = False
    forward_profiles: bool = False
    forward_unknown_events: bool = False
    compute_sharing: bool = False
    energy: bool = False
    sched_config: str = ""
    events: tuple[ExternalEvent, ...] = ()
    bandwidth: float | None = None
