"""Valid input files of many kinds, as text; `readers` damages copies of them."""

import json

#: {name: content}
FILES: dict[str, str] = {
    "machine.toml": 'name = "x"\nnode_table = "table.csv"\n[[pools]]\nname = "p"\nnodes = 4\nnames = "n[1-4]"\n'
    '[[failures]]\nmodel = "exponential,mtbf=9d"\nrepair = "1h"\n[topology]\nkind = "torus"\nshape = [2, 2]\n',
    "table.csv": "name,class,mttf,age\nn1,old,9d,2y\nn2,new,10d,1d\nn3,old,,\n",
    "run.toml": 'workload = "made.swf"\nplatform = "tiny"\nscheduler = "easy"\nuntil = "2h"\n'
    '[[transform]]\nstep = "scale"\nload = 0.9\n',
    "maui.cfg": "QUEUETIMEWEIGHT 2\nFSPOLICY DEDICATEDPS\nFSDEPTH 4\nFSINTERVAL 24:00:00\n"
    "USERCFG[2] FSTARGET=20 PRIORITY=5\n"
    "BACKFILLPOLICY FIRSTFIT\nRESERVATIONDEPTH 3\nSRCFG[m] PERIOD=DAY STARTTIME=8:00:00 ENDTIME=9:00:00\n",
    "preset.toml": 'description = "x"\norder = "sjf"\nbackfill = "easy"\nplacement = "lowest"\n',
    "made.pbs": "03/01/2017 08:00:00;Q;101.s;queue=q\n03/01/2017 08:30:10;E;101.s;user=alice account=a jobname=my job "
    "queue=q ctime=1488355200 start=1488355210 exec_host=a/0*24+b/0-3,5 Resource_List.nodect=2 "
    "Resource_List.select=2:ncpus=24 Resource_List.walltime=01:00:00 end=1488357010 Exit_status=0 "
    "depend=afterok:99.s@s\n03/01/2017 09:30:10;E;102.s;user=bob queue=q ctime=1488355300 start=1488355310 "
    "Resource_List.nodes=1:ppn=4 Resource_List.walltime=02:00:00 end=1488358010\n",
    "leases.xml": '<?xml version="1.0"?>\n<lease-workload><site><nodes><node-set numnodes="4"/></nodes></site>\n'
    '<lease-requests>\n<lease-request arrival="00:00:00.00"><lease id="1"><nodes><node-set numnodes="1"/></nodes>'
    '<start><exact time="00:30:00"/></start><duration time="01:00:00"/></lease></lease-request>\n'
    "</lease-requests></lease-workload>\n",
    "helios.csv": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "j1,u1,vcA,16,64,2,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:01:00,2020-04-01 01:01:00,3600,60\n"
    "j2,u2,vcB,3,9,2,FAILED,2020-04-01 00:05:00,,,0,0\n",
    "philly.json": json.dumps(
        [
            {
                "status": "Pass",
                "vc": "v",
                "jobid": f"application_{number}",
                "user": "u",
                "submitted_time": f"2017-10-09 07:02:1{number}",
                "attempts": [
                    {
                        "start_time": "2017-10-09 07:02:50",
                        "end_time": "2017-10-09 07:03:00",
                        "detail": [{"ip": "m1", "gpus": ["0", "1"]}, {"ip": "m2", "gpus": ["3"]}],
                    }
                ],
            }
            for number in range(3)
        ]
    ),
    "slurm.conf": "ClusterName=zeus\nSchedulerParameters=bf_window=2880,bf_interval=60\nSelectType=select/linear\n"
    "PriorityType=priority/multifactor\nPriorityWeightAge=1000\nPriorityWeightFairshare=10000\nPriorityMaxAge=1-0\n"
    "TopologyPlugin=topology/tree\nAccountingStorageEnforce=associations,limits,qos\nLicenses=a:2,b\n"
    "NodeName=DEFAULT RealMemory=64000\nNodeName=n[01-04,07] CPUs=16 Feature=a,b Weight=3\n"
    "PartitionName=batch Nodes=ALL Default=YES MaxTime=1-00:00:00\nPartitionName=debug Nodes=n[03-04] MaxTime=30\n",
    "gres.conf": "NodeName=n[01-02] Name=gpu Type=a100 File=/dev/nvidia[0-1]\nName=bw Count=2K\n",
    "topology.conf": "SwitchName=s1 Nodes=n[01-04]\nSwitchName=s2 Nodes=n07\nSwitchName=top Switches=s[1-2]\n",
    "jobs.events": "# start: 2026-01-05T00:00:00\n"
    "-dt 0 -e submit_batch_job | -J jobid_1 -sim-walltime 100 --uid=u1 -A a -t 5 -N 2 --job-name=first pseudo.job\n"
    "-dt 1 -e submit_batch_job | -J jobid_2 -sim-walltime 50 --uid=u1 -A a -t 5 -n 8 -p debug pseudo.job\n"
    "-dt 3 -e submit_batch_job | -J jobid_3 -sim-walltime 10 --uid=u1 -A a -t 5 -n 1 --array=0-3%2 pseudo.job\n"
    "-dt 9 -e scancel | 3_1\n",
    "accounts.txt": "Cluster - 'zeus':Fairshare=1:QOS='normal'\nParent - 'root'\n"
    "Account - 'a':Fairshare=2:GrpTRES=cpu=300,mem=2G\nParent - 'a'\n"
    "User - 'u1':DefaultAccount='a':MaxWallDurationPerJob=60:QOS='normal'\n",
    "qos.txt": "Name|Priority|GraceTime|MaxTRESPU|MaxWall|UsageFactor\nhigh|3|00:01:00|cpu=3|1-00:00:00|1.5\n",
    "reserved.txt": "create reservation=r starttime=now+5minutes duration=1:00 nodes=n[01-02] flags=maint users=u1\n",
    "four.csv": "node,down,up,cause\n0,3000,4000,fan\n1-3,5000,6000.5,\n",
    "down.sacctmgr": "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n"
    "zeus|n2|2023-01-02T00:00:00|2023-01-02T01:00:00|DOWN*|Not responding|slurm(64030)\n"
    "zeus|n10|2023-01-03T00:00:00|Unknown|DRAIN||root(0)\n",
    "down.scontrol": "NodeName=n1 Arch=x86_64 CoresPerSocket=8\n   State=IDLE ThreadsPerCore=1\n\n"
    "NodeName=n2 Arch=x86_64\n   State=DOWN+DRAIN\n   Reason=bad DIMM, slot 3 [root@2023-02-03T04:05:06]\n",
    "down.pbs": "02/07/2017 12:00:00;0004;Server@zeus;Node;n1;attributes set: state = offline\n"
    "02/07/2017 12:02:00;0002;Server@zeus;Node;n1;node down: communication closed\n"
    "02/07/2017 13:00:00;0004;Server@zeus;Node;n1;attributes set: state - offline\n"
    "02/07/2017 13:30:00.25;0002;Server@zeus;Node;n1;node up\n",
    "down.json": '{"timestamp": 5, "type": "machine_unavailable", "resources": "0-1"}\n'
    '{"timestamp": 9, "type": "machine_available", "resources": "0-1"}\n',
    "events.txt": '{"timestamp": 5, "type": "machine_unavailable", "resources": "0-1"}\n'
    '{"timestamp": 9, "type": "machine_available", "resources": "0-1"}\n',
    "lanl.csv": "System,machine type,nodes,nodenum,nodenumz,node install,node prod,node decom,Prob Started,Prob Fixed,"
    "Facilities,Hardware,Human Error,Network,Undetermined,Software\n"
    "20,cluster,3,1,1,1-Oct,1-Dec,current,1/6/2002 10:54,1/6/2002 11:00,,CPU,,,,\n"
    "20,cluster,3,2,2,1-Oct,1-Dec,current,1/7/2002 10:54,1/8/2002 11:00,,,,,,DST\n",
    "lives.csv": "SN,location,insert,remove,duration,out,event\n"
    "01,c0-0c0s0n0,2014-01-21 10:00:00,2016-01-21 10:00:00,63072000,TRUE,DBE\n"
    "01,c0-0c0s0n1,2016-02-01 00:00:00,2019-01-01 00:00:00,92016000,FALSE,\n"
    "02,c0-0c0s0n0,2017-01-01 00:00:00,2019-01-01 00:00:00,63072000,TRUE,OTB\n",
    "sizes.toml": 'name = "week"\nmachine_size = 4\nduration = "1d"\n[[classes]]\nsize = 3\nrate = 1.5\n'
    'service = "1h"\n[[classes]]\nsize = 1\nrate = 6\nservice = "30min"\n',
    "told.txt": '{"policy": "easy"}\n',
    "keys/scheduler.pub": "public = \"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID\"\n",
    "connection.json": '{"endpoint": "tcp://127.0.0.1:9", "pid": 1}\n',
    "foreign/scheduler.toml": 'name = "mine"\nargv = ["/bin/false", "{folder}/mine", "{endpoint}"]\n',
    "usage.json": json.dumps(
        {
            "nb_res": 4,
            "jobs": [{"id": one, "subtime": one, "walltime": 999, "res": 2, "profile": "p"} for one in range(4)],
            "profiles": {"p": {"type": "usage_trace", "trace": "usage.txt"}},
        }
    ),
    "usage.txt": "ranks/0.txt\nranks/1.txt\n",
    "ranks/0.txt": "# a rank\n0 m_usage 1.0 1e9\n0 m_usage 0.5 2e9\n",
    "ranks/1.txt": "1 m_usage 0.25 1e9\n1 m_usage 1 5e8\n",
    "nodes.maui": "".join(
        f"COMPUTENODE AVAILABLE 1488355200 r1i0n{one} srv 131072 131000 1 24 1 1 1 [NONE] x86_64 [mic][ib] "
        "[qprod:24] [NONE] 1.0 [NONE] [NONE] [NONE]\n"
        for one in range(4)
    ),
    "rules.txt": "# twice\n@1000 +200s all\n@1500 +20s 0-1 cause cooling\n@90000 to @90100 2 weekly 3 times named c\n",
    "mine.csv": "name,class,mttf,age\nn0,old,9d,2y\nn1,new,10d,1d\nn2,old,,\nn3,old,,\n",
    "mine.toml": "".join(f'[[nodes]]\nname = "n{one}"\nclass = "old"\nmttf = "9d"\n' for one in range(4)),
    "large/demo/case.toml": 'proves = "x"\nbecause = "y"\n[run]\nworkload = "demo"\nuntil = "5d"\nscheduler = "easy"\n',
    "commands.csv": "t,command\n5,scontrol create reservation reservationname=r starttime=now+1minute duration=5 "
    "nodes=n01 users=root\n",
    "live/columns.txt": "  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
    "    101     batch     flow      ada  R      30:00      2 n[01-02]\n"
    "    104     batch     wide      bob PD       0:00      3 (Resources)\n"
    "105_[0-9%2]   batch     flow    ada PD       0:00      1 (Priority)\n",
    "live/queue.sacct": "JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|Timelimit|NNodes|ReqTRES|"
    "NodeList\n"
    "101|ada|physics|batch|RUNNING|2026-01-05T07:00:00|2026-01-05T07:30:00|Unknown|1800|01:00:00|2|cpu=8|n[01-02]\n"
    "104|bob|physics|batch|PENDING|2026-01-05T07:20:00|Unknown|Unknown|0|01:00:00|3|cpu=12,mem=3G,node=3|"
    "None assigned\n",
    "live/jobs.txt": "JobId=201 JobName=a job\n   UserId=ada(1001) GroupId=ada(1001) MCS_label=N/A\n   Priority=700 "
    "Nice=0 Account=physics QOS=normal\n   JobState=PENDING Reason=Resources Dependency=afterok:104\n   "
    "RunTime=00:00:00 TimeLimit=01:00:00 TimeMin=N/A\n   SubmitTime=2026-01-05T07:30:00 "
    "EligibleTime=2026-01-05T07:30:00\n   StartTime=Unknown EndTime=Unknown\n   Partition=batch "
    "ReqNodeList=n[01-03] ExcNodeList=n04\n   NumNodes=2-2 "
    "NumCPUs=4 NumTasks=4 CPUs/Task=1\n   TRES=cpu=4,mem=2G,node=2,billing=4\n   MinCPUsNode=1 MinMemoryCPU=500M\n\n"
    "JobId=202 ArrayJobId=202 ArrayTaskId=1-5%2 JobName=b\n   UserId=bob(1002) Account=physics QOS=normal "
    "Priority=1\n   JobState=RUNNING Reason=None RunTime=00:10:00 TimeLimit=02:00:00\n   "
    "SubmitTime=2026-01-05T07:30:00 StartTime=2026-01-05T07:50:00\n   Partition=batch NodeList=n04 NumNodes=1 "
    "NumCPUs=2\n   Nodes=n04 CPU_IDs=0-1 Mem=1000 GRES=\n",
    "live/sinfo.txt": "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
    "batch*       up 1-00:00:00      1  drain n03\n"
    "batch*       up 1-00:00:00      3  alloc n[01-02,04]\ngpu          up 1-00:00:00      1    mix g01\n",
    "live/squeue.json": json.dumps(
        {
            "meta": {"Slurm": {"version": {"major": 22}}},
            "last_update": {"set": True, "infinite": False, "number": 1767600000},
            "jobs": [
                {
                    "job_id": 300 + one,
                    "name": "x",
                    "user_name": "ada",
                    "account": "physics",
                    "partition": "batch",
                    "qos": "normal",
                    "job_state": ["RUNNING"] if one == 0 else "PENDING",
                    "submit_time": 1767599000 + one,
                    "start_time": {"set": True, "number": 1767599900 if one == 0 else 0},
                    "time_limit": {"set": True, "infinite": False, "number": 60},
                    "nodes": "n[01-02]" if one == 0 else "",
                    "node_count": {"set": True, "number": 2},
                    "cpus": {"number": 4, "set": True},
                    "memory_per_node": {"set": True, "number": 1000},
                    "priority": 10 + one,
                    "array_job_id": 301 if one == 1 else 0,
                    "array_task_string": "1-7%2" if one == 1 else "",
                    "dependency": "afterok:300" if one == 2 else "",
                    "job_resources": {
                        "allocated_nodes": [{"nodename": "n01", "cpus_used": 2, "memory_allocated": 500}]
                    },
                }
                for one in range(3)
            ],
        }
    ),
    "live/nodes.json": json.dumps(
        {"nodes": [{"name": f"n0{one}", "state": ["IDLE", "DRAIN"], "reason": "disk"} for one in (1, 2, 3, 4)]}
    ),
    "live/sinfo.json": json.dumps(
        {
            "sinfo": [
                {
                    "node": {"state": ["DOWN"]},
                    "nodes": {"nodes": ["n01", "n02"]},
                    "partition": {"name": "batch", "partition": {"state": ["UP"]}},
                }
            ]
        }
    ),
    "live/reservations.json": json.dumps(
        {
            "reservations": [
                {
                    "name": "service",
                    "start_time": {"set": True, "number": 1767614400},
                    "end_time": 1767621600,
                    "node_list": "n[01-04]",
                    "users": "root",
                    "flags": ["MAINT", "SPEC_NODES"],
                }
            ]
        }
    ),
    "live/sshare.json": json.dumps(
        {
            "shares": {
                "shares": [
                    {"name": "physics", "parent": "root", "usage": 600000, "type": ["ASSOCIATION"]},
                    {"name": "ada", "parent": "physics", "usage": 100000, "type": ["USER"], "partition": ""},
                ]
            }
        }
    ),
}  # fmt: skip
