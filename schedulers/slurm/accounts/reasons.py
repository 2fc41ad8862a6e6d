"""The reasons that Slurm shows for jobs that a limit keeps waiting."""

from typing import Final

#: {TRES: (word in most reasons, word in reasons per job and per user of memory)}
_WORD: Final = {"cpu": "Cpu", "mem": "Mem", "node": "Node", "billing": "Billing", "energy": "Energy", "bb": "BB"}


def _kind(tres: str) -> str:
    head = tres.split("/", maxsplit=1)[0]
    return {"gres": "GRES", "license": "License"}.get(head, _WORD.get(tres, "Unknown"))


def group_reason(level: str, tres: str) -> str:
    """Return the reason of a job that a GrpTRES limit keeps waiting.

    Examples are QOSGrpCpuLimit and AssocGrpGRES. ``level`` is the reason's first word, QOS or Assoc.
    """
    kind = _kind(tres)
    if kind in ("GRES", "Unknown"):
        return f"{level}Grp{kind}"
    if kind == "Mem":
        return f"{level}GrpMemLimit" if level == "QOS" else "AssocGrpMemLimit"
    return f"{level}Grp{kind}" if kind in ("Billing", "License", "Energy", "BB") else f"{level}Grp{kind}Limit"


def minutes_reason(level: str, tres: str, *, running: bool = False) -> str:
    """Return the reason of GrpTRESMins or GrpTRESRunMins, such as QOSGrpMemRunMinutes."""
    kind = "CPU" if tres == "cpu" else _kind(tres)
    run = "Run" if running else ""
    return f"{level}Grp{kind}{run}MinutesLimit" if kind == "CPU" else f"{level}Grp{kind}{run}Minutes"


def job_reason(level: str, tres: str) -> str:
    """Return the reason of MaxTRES per job, such as QOSMaxCpuPerJobLimit."""
    kind = _kind(tres)
    if kind == "Mem":
        return "QOSMaxMemoryPerJob" if level == "QOS" else "AssocMaxMemPerJob"
    limit = "Limit" if kind in ("Cpu", "Node") else ""
    return f"{level}Max{kind}PerJob{limit}"


def job_minutes_reason(level: str, tres: str) -> str:
    """Return the reason of MaxTRESMins per job, such as QOSMaxCpuMinutesPerJobLimit."""
    kind = _kind(tres)
    return f"{level}Max{kind}MinutesPerJob{'Limit' if kind == 'Cpu' else ''}"


def node_reason(level: str, tres: str) -> str:
    """Return the reason of MaxTRES per node, such as QOSMaxCpuPerNode."""
    return f"{level}Max{_kind(tres)}PerNode"


def least_reason(tres: str) -> str:
    """Return the reason of MinTRES per job, such as QOSMinCpuNotSatisfied."""
    kind = _kind(tres)
    if kind == "Cpu":
        return "QOSMinCpuNotSatisfied"
    return "QOSMinMemory" if kind == "Mem" else f"QOSMin{kind}"


def holder_reason(tres: str, holder: str) -> str:
    """Return the reason of MaxTRESPU or MaxTRESPA, such as QOSMaxCpuPerUserLimit.

    ``holder`` says to whom the limit applies: User or Account.
    """
    kind = _kind(tres)
    if kind == "Mem":
        kind = "Memory"
    limit = "Limit" if kind in ("Cpu", "Node") and holder == "User" else ""
    return f"QOSMax{kind}Per{holder}{limit}"


#: reasons that a limit of an association or QOS set; the next test clears them
def is_limit(reason: str) -> bool:
    """Return whether a reason comes from a limit of a QOS or association."""
    return reason.startswith(("QOS", "Assoc"))


def is_of_usage(reason: str) -> bool:
    """Return whether a job waits for a limit of past usage.

    Such a job may start later without any other job's end, because past usage decays or is reset.
    """
    return is_limit(reason) and ("Minutes" in reason or "GrpWall" in reason)
