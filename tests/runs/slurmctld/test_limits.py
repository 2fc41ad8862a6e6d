"""Each limit of QOS and associations holds the same jobs in an unmodified slurmctld and in the scheduler ``slurm``."""

from pathlib import Path

import pytest
from tests.runs.slurmctld.beside import ACCOUNTS, CONF, both, differences, job
from tests.runs.slurmctld.test_bridge import needs_slurm

MORE = """add account lab parent=bio
add qos high Priority=50
add qos part
add user eve Account=lab
modify user ada set qos=normal,high
modify user bob set qos=normal,high
modify user cyd set qos=normal,high
"""
#: (number, time, run time, options, user, limit in minutes); the jobs compete from the fourth on
STREAM = (
    (1, 121, 170, "-n 3", "ada", 5),
    (2, 122, 400, "-N 2 -n 3 --gres=gpu:1", "bob", 10),
    (3, 129, 100, "-n 6 --mem-per-cpu=700", "ada", 20),
    (4, 142, 250, "-n 4 --gres=gpu:1", "cyd", 10),
    (5, 143, 40, "-n 1 --qos=high", "ada", 3),
    (6, 163, 170, "-N 3 -n 4", "bob", 20),
    (7, 166, 250, "-n 2 --mem-per-cpu=1000", "eve", 5),
    (8, 171, 100, "-n 8", "ada", 10),
    (9, 172, 70, "-n 1 --gres=gpu:1 --qos=high", "cyd", 30),
    (10, 193, 110, "-n 2", "eve", 10),
    (11, 200, 90, "-N 2 -n 6", "bob", 5),
    (12, 209, 60, "-n 1 --exclusive", "ada", 5),
)
JOBS = "".join(job(number, at, run, more, who, str(limit)) for number, at, run, more, who, limit in STREAM)
#: settings, each alone: of the QOS of most jobs, of the partition's QOS, of an account, of a user
LIMITS = [
    "qos normal set GrpTRESRunMins=node=20",  # of the partition's QOS, slurmctld starts jobs up to 27 s later
    *(
        f"qos {name} set {limit}"
        for name in ("normal", "part")
        for limit in (
            *(
                "GrpJobs=2",
                "GrpSubmit=4",
                "GrpTRES=cpu=7",
                "GrpTRES=mem=4000",
                "GrpTRES=gres/gpu=2",
                "GrpTRESMins=cpu=30",
            ),
            *("GrpTRESRunMins=cpu=90", "GrpWall=4", "MaxJobsPU=1", "MaxJobsPA=2"),
            *("MaxSubmitPU=2", "MaxSubmitPA=3", "MaxTRESPJ=cpu=4", "MaxTRESPJ=node=2", "MaxTRESPN=cpu=3"),
            *("MaxTRESPU=cpu=6", "MaxTRESPU=mem=3000", "MaxTRESPA=cpu=6", "MaxTRESMinsPJ=cpu=40", "MaxWall=9"),
            *("MinTRESPJ=cpu=2", "MaxTRESRunMinsPU=cpu=10", "MaxTRESPJ=cpu=4 Flags=DenyOnLimit"),
        )
    ),
    *(
        f"{who} set {limit}"
        for who in ("account bio", "user ada")
        for limit in (
            *(
                "GrpJobs=2",
                "GrpSubmit=3",
                "GrpTRES=cpu=7",
                "GrpTRES=mem=4000",
                "GrpTRES=gres/gpu=1",
                "GrpTRESMins=cpu=20",
            ),
            *("GrpTRESRunMins=cpu=90", "GrpWall=4", "MaxJobs=1", "MaxSubmit=2", "MaxTRESPJ=cpu=4", "MaxTRESPN=cpu=3"),
            *("MaxTRESMinsPJ=cpu=40", "MaxWall=9"),
        )
    ),
]


@pytest.mark.slow
@needs_slurm
@pytest.mark.parametrize("limit", LIMITS)
def test_limit_holds_the_same_jobs(tmp_path: Path, limit: str) -> None:
    """Starts, CPUs on each node, and the reasons that squeue shows are equal."""
    conf = CONF + "PriorityCalcPeriod=1\nPriorityDecayHalfLife=0\nPriorityUsageResetPeriod=YEARLY\n"
    if limit.startswith("qos part"):
        conf = conf.replace("DefMemPerCPU=500", "DefMemPerCPU=500 QOS=part")
    seen = both(tmp_path, JOBS, f"{ACCOUNTS}{MORE}modify {limit}\n", conf, times=(150, 180, 230, 330, 460))
    assert differences(seen["real"], seen["model"]) == []
