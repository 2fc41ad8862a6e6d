"""A recording of three jobs on two nodes, in the form of a recording of the real slurmctld."""

import lzma
from pathlib import Path

CONF = """ClusterName=tiny
SlurmctldHost=localhost
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30
PriorityType=priority/basic
SelectType=select/linear
NodeName=n[1-2] CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=16000 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=1440 State=UP OverSubscribe=EXCLUSIVE
"""
_COLUMNS = "id,submit,user,account,partition,qos,nodes,tasks,cpus_per_task,mem,mem_per,gres,exclusive,"
JOBS = f"""{_COLUMNS}limit_min,run_s,begin_s,after,constraint,array,name
1,127,ada,physics,batch,,1,,,,,,,10,100,,,,,
2,128,bob,physics,batch,,2,,,,,,,10,60,,,,,
3,129,ada,physics,batch,,1,,,,,,,1,50,,,,,
"""
EVENTS = """-dt 127 -e submit_batch_job | -sim-walltime 100 --uid=ada -t 00:10:00 -N 1 -A physics -p batch pseudo.job
-dt 128 -e submit_batch_job | -sim-walltime 60 --uid=bob -t 00:10:00 -N 2 -A physics -p batch pseudo.job
-dt 129 -e submit_batch_job | -sim-walltime 50 --uid=ada -t 00:01:00 -N 1 -A physics -p batch pseudo.job
"""
RESULT = """id,array_job,array_task,submit,eligible,start,end,state,nodes,tres,scheduler,priority,restarts,reason
1,,,127,127,128,228,COMPLETED,n1,,main,4294901759,0,None
2,,,128,128,229,289,COMPLETED,n[1-2],,main,4294901758,0,None
3,,,129,129,158,208,COMPLETED,n2,,backfill,4294901757,0,None
"""
STARTS = """id,time,by,nodes,label
1,128.0,main,n1,
3,158.0,backfill,n2,
2,229.0,main,n[1-2],
"""
PASSES = """time,kind,n_tested,n_started,tested,started,note
60.0,main-full,0,0,,,
120.0,main-full,0,0,,,
"""
CONTROLLER = """time,event,id,detail
228.0,complete,1,
228.02,request,1,complete
"""
LOG = """127.049 _slurm_rpc_submit_batch_job: JobId=1 InitPrio=4294901759 usec=0
128.0 sched: Running job scheduler for default depth.
 sched: Allocate JobId=1 NodeList=n1 #CPUs=4 Partition=batch
128.049 _slurm_rpc_submit_batch_job: JobId=2 InitPrio=4294901758 usec=0
129.049 _slurm_rpc_submit_batch_job: JobId=3 InitPrio=4294901757 usec=0
158.0 bf: beginning
 bf: test for JobId=2 Prio=4294901758 Partition=batch Reservation=NONE
 bf: reserve JobId=2 to start at 00:12:08, end at 00:22:00 on nodes n[1-2] in partition batch
 bf: test for JobId=3 Prio=4294901757 Partition=batch Reservation=NONE
 bf: _start_job: Started JobId=3 in batch on n2
 bf: completed testing 2(2) jobs, usec=0
208.0 _job_complete: JobId=3 done
228.0 _job_complete: JobId=1 done
229.0 sched: Running job scheduler for default depth.
 sched: Allocate JobId=2 NodeList=n[1-2] #CPUs=8 Partition=batch
289.0 _job_complete: JobId=2 done
"""
FILES = {
    "slurm.conf": CONF,
    "jobs.csv": JOBS,
    "jobs.events": EVENTS,
    "result.csv": RESULT,
    "starts.csv": STARTS,
    "passes.csv": PASSES,
    "events.csv": CONTROLLER,
}


def write_recording(folder: Path) -> Path:
    """Write the recording to a new folder and return the folder."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    write_log(folder, LOG)
    return folder


def write_log(folder: Path, text: str) -> None:
    """Replace the recording's log."""
    (folder / "decisions.log.xz").write_bytes(lzma.compress(text.encode()))
