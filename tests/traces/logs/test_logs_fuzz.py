"""Damaged logs of computing centres: the result is jobs or one error that names the file."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.logs.haizea import HaizeaLog
from pipistrelle.traces.logs.job_table import LogOptions
from pipistrelle.traces.logs.maui import MauiLog, maui_chunks
from pipistrelle.traces.logs.pbs import PbsLog
from pipistrelle.traces.slurm.sacct import SacctLog
from pipistrelle.traces.slurm.sacct_text import sacct_chunks

PBS = (
    b"03/01/2017 08:00:00;Q;101.s;queue=q\n03/01/2017 08:30:10;E;101.s;user=alice account=a jobname=my job queue=q "
    b"ctime=1488355200 start=1488355210 exec_host=a/0*24+b/0-3,5 Resource_List.nodect=2 "
    b"Resource_List.select=2:ncpus=24 Resource_List.walltime=01:00:00 end=1488357010 Exit_status=0 "
    b"depend=afterok:99.s@s\n"
)
SACCT = (
    b"JobID|JobName|User|Partition|QOS|SubmitLine|State|Submit|Start|End|Elapsed|Timelimit|NNodes|NCPUS\n"
    b"1|a|u|batch|normal|sbatch -d afterok:7 x|CANCELLED by 7|2024-01-31T08:00:00|Unknown|None|1-00:00:10|"
    b"UNLIMITED|2K|9\n"
    b"1|a|u|batch|normal|x|COMPLETED|1706688000|1706688010|1706688110|00:01:40|2-01|2|9\n"
)
MAUI = (
    b"VERSION 310\nw1.17 2 48 alice users 3600 Completed [qprod:1] 1488355200 1488355210 1488355210 1488357010 [NONE] "
    b"[NONE] [NONE] >= 0 >= 0 [NONE] 1488355200 48 24 high:normal [NONE] acc run [NONE] 0 86400 ALL 1 0 0 0 0 0 r1 m "
    b"[NONE] [NONE] [NONE] [NONE] [NONE]\n"
)
HAIZEA = (
    b'<?xml version="1.0"?>\n<lease-workload><site><nodes><node-set numnodes="4"/></nodes></site><lease-requests>\n'
    b'<lease-request arrival="00:00:00.00"><lease id="1"><nodes><node-set numnodes="1"/></nodes><start>'
    b'<exact time="00:30:00"/></start><duration time="01:00:00"/></lease></lease-request>\n'
    b"</lease-requests></lease-workload>\n"
)
FORMATS = {
    "pbs": (PbsLog.parse, PBS),
    "sacct": (SacctLog.parse, SACCT),
    "maui": (MauiLog.parse, MAUI),
    "haizea": (HaizeaLog.parse, HAIZEA),
}
#: inserted damage: signs of the formats, numbers that are too large, and any bytes
SIGNS = [*(bytes([sign]) for sign in b'\n;|:=+-.*[]/<>&" \0ER0'), b"", b"-1", b"\xc2\xb2", b"\xff", b"\xe2\x80\xa8"]
NUMBERS = [b"9" * 15, b"9" * 30, b"1e308", b"nan", b"inf"]
PIECES = st.one_of(st.sampled_from(SIGNS + NUMBERS), st.binary(max_size=4))


def outcome(work) -> tuple[object, str]:
    """Return what a function returns, or None and the message of its error."""
    try:
        return work(), ""
    except TraceError as error:
        return None, str(error)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=150)
@given(data=st.data())
def test_damaged_logs(name, data):
    """A log with pieces replaced can be read and written, or is rejected with its name; nothing else happens."""
    parse, text = FORMATS[name]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(PIECES) + text[at + data.draw(st.integers(0, 12)) :]
    for units in ("nodes", "processors"):
        options = LogOptions(units)
        log, message = outcome(lambda options=options: parse(io.BufferedReader(io.BytesIO(text)), "LOG", options))
        if log is None:
            assert "LOG" in message
            assert "\n" not in message
            continue
        for writer in (maui_chunks, sacct_chunks):
            written, message = outcome(lambda writer=writer, log=log: b"".join(writer(log)))
            assert written or "cannot hold this job id" in message
