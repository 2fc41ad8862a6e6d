"""The reasons that Slurm shows for jobs that a limit keeps waiting."""

from typing import Final

#: {TRES: its word in reasons}
_WORD: Final = {"cpu": "Cpu", "mem": "Mem", "node": "Node", "billing": "Billing", "energy": "Energy", "bb": "BB"}
#: kinds of TRES whose reasons have "Limit" at the end, if the limit is on an amount
_LIMIT: Final = ("Cpu", "Node")
_OF_USAGE: Final = ("MinutesLimit", "Minutes", "GrpWallLimit")
_RUN: Final = ("RunMinutesLimit", "RunMinutes")


def _kind(tres: str, level: str = "Assoc") -> str:
    """Return the word for a TRES in a reason, such as Cpu or GRES.

    Memory is ``Mem`` in reasons of associations, and ``Memory`` in those of QOS.
    """
    head = tres.split("/", maxsplit=1)[0]
    word = {"gres": "GRES", "license": "License"}.get(head, _WORD.get(tres, "Unknown"))
    return "Memory" if word == "Mem" and level == "QOS" else word


def group_reason(level: str, tres: str) -> str:
    """Return the reason of a job that a GrpTRES limit keeps waiting.

    Examples are QOSGrpCpuLimit and AssocGrpGRES. ``level`` is the reason's first word, QOS or Assoc.
    """
    kind = _kind(tres)
    return f"{level}Grp{kind}{'Limit' if kind in (*_LIMIT, 'Mem') else ''}"


def minutes_reason(level: str, tres: str, *, running: bool = False) -> str:
    """Return the reason for GrpTRESMins or GrpTRESRunMins.

    An example is QOSGrpMemoryRunMinutes. ``running`` selects GrpTRESRunMins.
    """
    run = "Run" if running else ""
    if tres == "cpu":
        return f"{level}GrpCPU{run}MinutesLimit"
    return f"{level}Grp{_kind(tres, level)}{run}Minutes"


def job_reason(level: str, tres: str) -> str:
    """Return the reason for the limit MaxTRES per job, such as QOSMaxCpuPerJobLimit."""
    kind = _kind(tres, level)
    return f"{level}Max{kind}PerJob{'Limit' if kind in _LIMIT else ''}"


def job_minutes_reason(level: str, tres: str) -> str:
    """Return the reason for MaxTRESMins per job, such as QOSMaxCpuMinutesPerJobLimit."""
    kind = _kind(tres, level)
    return f"{level}Max{kind}MinutesPerJob{'Limit' if kind == 'Cpu' else ''}"


def node_reason(level: str, tres: str) -> str:
    """Return the reason for the limit MaxTRES per node, such as QOSMaxCpuPerNode."""
    return f"{level}Max{_kind(tres, level)}PerNode"


def least_reason(tres: str) -> str:
    """Return the reason for the limit MinTRES per job, such as QOSMinCpuNotSatisfied."""
    kind = _kind(tres, "QOS")
    return "QOSMinCpuNotSatisfied" if kind == "Cpu" else f"QOSMin{kind}"


def user_reason(tres: str) -> str:
    """Return the reason for the limit MaxTRESPU, such as QOSMaxCpuPerUserLimit."""
    kind = _kind(tres, "QOS")
    return f"QOSMax{kind}PerUser{'Limit' if kind in _LIMIT else ''}"


def account_reason(tres: str) -> str:
    """Return the reason for the limit MaxTRESPA, such as MaxCpuPerAccount."""
    return f"Max{_kind(tres, 'QOS')}PerAccount"


def is_limit(reason: str) -> bool:
    """Return whether a reason comes from a limit that Slurm tests again in each pass.

    These are limits of QOS and associations. The reasons of limits on GPUs, on billing, per node or per account do not
    count: they stay until another reason replaces them.
    """
    return reason.startswith(("QOS", "Assoc")) and reason.endswith(("Limit", "QOSMinCpuNotSatisfied"))


def is_of_usage(reason: str) -> bool:
    """Return whether a reason comes from a limit on past usage.

    A job with this reason may start later although no other job ends, because past usage decays or is reset.
    """
    return reason.endswith(_OF_USAGE) and not reason.endswith(_RUN)
