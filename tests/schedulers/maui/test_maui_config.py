"""Reading a maui.cfg."""

from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.schedulers.maui.config.parameters import ALIASES, PARAMETERS, Support
from pipistrelle.schedulers.maui.config.read import MauiConfigError, parse_maui_config, read_maui_config
from pipistrelle.schedulers.maui.config.settings import Credential, Limit, TargetMode

#: the setup of paper 002, tables and sections 2.1 and 3.1, with comments behind values
SALOMON = """
# a comment
ADMIN1                userx
rmPollInterval        00:00:05 # time step
LOGFILE               /tmp/maui.log
EnableNegJobPriority  TRUE
REJECTNEGPRIOJOBS     FALSE
CREDWEIGHT            864000
CLASSWEIGHT           1000
FSWEIGHT              8640000
FSACCOUNTWEIGHT       1
SERVICEWEIGHT         1
TARGWEIGHT            0
USAGEWEIGHT           0
QUEUETIMEWEIGHT[0]    1
FSPOLICY              DEDICATEDPS # CPU time
FSDEPTH               1
FSINTERVAL            168:00:00
FSDECAY               0.50
ACCOUNTCFG[DEFAULT]   FSTARGET=100
BACKFILLPOLICY        FIRSTFIT
BACKFILLDEPTH         3
RESDEPTH              3
CLASSCFG[qexp]        PRIORITY=150 MAXNODE=32 MAXNODEPERUSER=8
CLASSCFG[qfree]       PRIORITY=-1024 MAXNODE=752
"""


def test_the_configuration_of_the_paper_is_read_as_it_is() -> None:
    """Every line that affects decisions is read; unsupported ones are named with their line."""
    found, warnings = parse_maui_config(SALOMON)

    assert [(warning.line, warning.name.upper()) for warning in warnings] == [
        (4, "RMPOLLINTERVAL"),
        (14, "USAGEWEIGHT"),
    ]
    assert str(warnings[0]).startswith("maui.cfg:4: parameter RMPOLLINTERVAL is not supported: ")
    assert (found.number("CREDWEIGHT"), found.number("FSINTERVAL"), found.number("FSDECAY")) == (864000, 604800, 0.5)
    assert (found.flag("ENABLENEGJOBPRIORITY"), found.flag("REJECTNEGPRIOJOBS")) == (True, False)
    assert found.credentials["ACCOUNT"] == {"DEFAULT": Credential(target=100.0)}
    assert found.credentials["CLASS"]["qexp"] == Credential(
        priority=150.0, limits=(Limit("NODE", None, 32, 32), Limit("NODE", "USER", 8, 8))
    )


def test_unset_parameters_have_the_manuals_defaults() -> None:
    """An empty file is Maui's own default: queue time alone, FIRSTFIT, one reservation."""
    found, warnings = parse_maui_config("")

    assert warnings == []
    assert [found.text(name) for name in ("BACKFILLPOLICY", "RESERVATIONPOLICY", "NODEALLOCATIONPOLICY")] == [
        "FIRSTFIT",
        "CURRENTHIGHEST",
        "LASTAVAILABLE",
    ]
    assert found.stacks == {"0": (1, None)}
    assert (found.number("QUEUETIMEWEIGHT"), found.number("CREDWEIGHT"), found.number("FSWEIGHT")) == (1, 1, 0)


def test_limits_are_soft_and_hard_and_per_credential() -> None:
    """One number is both limits; PER and [] are the same; a later line replaces the same limit alone."""
    found, warnings = parse_maui_config(
        "CLASSCFG[long] MAXPROC=32,64 MAXJOB[USER]=4 MAXPS=INFINITY \\\n  MAXWC=1:00:00,2:00:00\n"
        "CLASSCFG[long] MAXJOBPERUSER=2,5 PRIORITY=100\n"
    )

    assert warnings == []
    assert found.credentials["CLASS"]["long"] == Credential(
        priority=100.0,
        limits=(
            Limit("PROC", None, 32, 64),
            Limit("PS", None, inf, inf),
            Limit("WC", None, 3600, 7200),
            Limit("JOB", "USER", 2, 5),
        ),
    )


@pytest.mark.parametrize(
    ("text", "mode", "target"),
    [
        ("25", TargetMode.TARGET, 25),
        ("25.5+", TargetMode.FLOOR, 25.5),
        ("25-", TargetMode.CEILING, 25),
        ("25%", TargetMode.CAP, 25),
        ("3600^", TargetMode.ABSOLUTE_CAP, 3600),
    ],
)
def test_a_fairshare_target_has_a_mark(text: str, mode: TargetMode, target: float) -> None:
    """+ is a floor, - a ceiling, % a cap."""
    found, _ = parse_maui_config(f"USERCFG[john] FSTARGET={text}")

    assert found.credentials["USER"]["john"] == Credential(target=target, mode=mode)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("2:30", 150), ("1:02:30", 3750), ("1:00:00:00", 86400), ("168:00:00", 604800)]
)
def test_times_count_from_their_end(text: str, seconds: float) -> None:
    """[[[DD:]HH:]MM:]SS, each part as large as one likes."""
    found, _ = parse_maui_config(f"DEFERTIME {text}")

    assert found.number("DEFERTIME") == seconds


def test_standing_reservations_and_stacks_are_indexed() -> None:
    """Attributes of one index are combined over several lines."""
    found, warnings = parse_maui_config(
        "SRCFG[day] STARTTIME=8:00:00 ENDTIME=17:00:00 DAYS=Mon,Fri HOSTLIST=0-3,8\n"
        "SRCFG[day] CLASSLIST=fast,short TIMELIMIT=1:00:00 TASKCOUNT=2 RESOURCES=PROCS:2\n"
        "RESERVATIONDEPTH[1] 4\nRESERVATIONQOSLIST[1] high,low\n"
    )
    day = found.standing[0]

    assert warnings == []
    assert (day.name, day.start, day.end, day.days, day.hosts) == ("day", 28800, 61200, (1, 5), ("0-3", "8"))
    assert (day.tasks, day.units_per_task, day.time_limit) == (2, 2, 3600)
    assert day.access == {"CLASS": ("fast", "short")}
    assert found.stacks == {"1": (4, frozenset({"high", "low"}))}


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("BACKFILPOLICY FIRSTFIT", 1, "Did you mean 'BACKFILLPOLICY'?"),
        ("\nUSERCFG[a] PRIORTY=3", 2, "Did you mean 'PRIORITY'?"),
        ("USERCFG[a] QLIST=high", 1, "QLIST"),
        ("NODEALLOCATIONPOLICY CONTIGUOUS", 1, "CONTIGUOUS"),
        ("CREDWEIGHT[2] 5", 1, "one partition"),
        ("SRCFG[a] FLAGS=BYNAME", 1, "flags of reservations are not simulated"),
        ("USERCFG[a] QTWEIGHT=3", 1, "QOSCFG"),
        ("FSPOLICY DEDICATEDPS%", 1, "FSPOLICY DEDICATEDPS% is not supported"),
        ("USERCFG[a] MAXPROX=3", 1, "Did you mean 'MAXPROC'?"),
        ("NODECFG[n1] PARTITION=a", 1, "NODECFG is not supported"),
        ("MAXJOBPERUSERCOUNT 4", 1, "superseded by the limits of USERCFG"),
    ],
)
def test_unknown_or_unsupported_parameter_is_rejected(text: str, line: int, part: str) -> None:
    """One error with file and line; if one reads leniently, a warning with the same text."""
    _, warnings = parse_maui_config(text, strict=False)

    assert len(warnings) == 1
    assert (warnings[0].line, warnings[0].decides) == (line, True)
    assert part in str(warnings[0])
    with pytest.raises(MauiConfigError, match=f"maui.cfg:{line}: ") as caught:
        parse_maui_config(text)
    assert part.rstrip("?.") in str(caught.value)
    assert "--lenient-config" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("SRCFG[a] PERIOD=WEEK\nSRCFG[a] DAYS=Mon", 2, "DAYS of SRCFG[a] has no effect with PERIOD=WEEK"),
        ("SRCFG[a] ENDTIME=8\nSRCFG[a] PERIOD=INFINITY", 1, "ENDTIME of SRCFG[a] has no effect with PERIOD=INFINITY"),
        ("RMPOLLINTERVAL 00:00:30", 1, "for fixed steps use --poll"),
        ("USERCFG[a] MAXMEM=3", 1, "jobs request no memory"),
        ("SRCFG[a] CHARGEACCOUNT=x", 1, "reservations are not charged"),
        ("UPROCWEIGHT 0", 1, "not part of the priority here"),
        ("NODESETPOLICY NONE", 1, "node sets are not simulated"),
        ("FSPOLICY PSDEDICATED", 1, "DEDICATEDPS counts processors x seconds"),
    ],
)
def test_parameter_without_effect_on_decisions_is_a_warning(text: str, line: int, part: str) -> None:
    """With its line, however one reads."""
    _, warnings = parse_maui_config(text)

    assert [(warning.line, warning.decides) for warning in warnings] == [(line, False)]
    assert part in str(warnings[0])


@pytest.mark.parametrize(
    ("text", "policy"),
    [("TRUE", "DEDICATEDPS"), ("yes", "DEDICATEDPS"), ("1", "DEDICATEDPS"), ("FALSE", "NONE"), ("PSDEDICATED", "NONE")],
)
def test_fairshare_policies_are_taken_as_maui_takes_them(text: str, policy: str) -> None:
    """A boolean of older versions, and the word of Maui's own sample file, which Maui itself does not know."""
    assert parse_maui_config(f"FSPOLICY {text}")[0].text("FSPOLICY") == policy


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("FSDEPTH many", "FSDEPTH is wrong: expected a whole number, found 'many'"),
        ("FSDEPTH 0", "at least 1"),
        ("FSDECAY 1.5", "at most 1"),
        ("DEFERTIME 1:2:3:4:5", "[[[DD:]HH:]MM:]SS"),
        ("ENABLENEGJOBPRIORITY perhaps", "TRUE or FALSE"),
        ("BACKFILLPOLICY WORSTFIT", "FIRSTFIT, BESTFIT, GREEDY, NONE"),
        ("CREDWEIGHT 1 2", "one value"),
        ("CREDWEIGHT nan", "a number"),
        ("CREDWEIGHT", "has no value"),
        ("CLASSCFG PRIORITY=1", "needs a name"),
        ("CLASSCFG[a] PRIORITY", "ATTRIBUTE=VALUE"),
        ("CLASSCFG[a] MAXJOB=8,4", "soft limit not above"),
        ("CLASSCFG[a] MAXJOB=1,2,3", "SOFT,HARD"),
        ("CLASSCFG[a] FSTARGET=%", "a number"),
        ("SRCFG[a] PERIOD=MONTH", "DAY, WEEK or INFINITY"),
        ("SRCFG[a] DAYS=Someday", "Mon,Tue"),
        ("SRCFG[a] HOSTLIST=5-3", "intervals of units, such as 0-15"),
        ("SRCFG[a] HOSTLIST=n[1", "a name, or a regular expression"),
        ("SRCFG[a] HOSTLIST=,", "separated by commas"),
        (
            "SRCFG[a] STARTTIME=24:00:00",
            "STARTTIME of SRCFG[a] is wrong: expected a time within the day, from 0 to 86400",
        ),
        ("SRCFG[a] ENDTIME=24:00:01", "ENDTIME of SRCFG[a] is wrong"),
        ("SRCFG[a] PERIOD=WEEK ENDTIME=7:00:00:01", "within the week, from 0 to 604800 s, found '604801 s'"),
        ("CLASSCFG[ ] PRIORITY=1", "needs a name"),
        ("CREDWEIGHT 1e30", "a number from -1e+15 to 1e+15, found '1e30'"),
        ("= 5", "not a line of a maui.cfg"),
    ],
)
def test_a_wrong_value_is_one_clear_message(text: str, part: str) -> None:
    """The error names file and line, the expected and the actual text."""
    with pytest.raises(MauiConfigError, match=r"^maui\.cfg:2: ") as caught:
        parse_maui_config("\n" + text)
    assert part in str(caught.value)


def test_fairshare_works_without_the_unsupported_mark() -> None:
    """FSPOLICY DEDICATEDPS% counts usage all the same, as DEDICATEDPS."""
    found, warnings = parse_maui_config("FSPOLICY dedicatedps%", strict=False)

    assert found.text("FSPOLICY") == "DEDICATEDPS"
    assert str(warnings[0]).endswith("dedicatedps is used")


def test_standing_reservations_may_end_with_their_period() -> None:
    """ENDTIME=24:00:00 is the end of the day; warnings of whole reservations stand among the others by their lines."""
    text = "SRCFG[a] STARTTIME=8:00:00 ENDTIME=24:00:00\nSRCFG[b] PERIOD=INFINITY DEPTH=3\nFOO 1\n"
    found, warnings = parse_maui_config(
        text + "SRCFG[c] PERIOD=WEEK STARTTIME=6:00:00:00 ENDTIME=7:00:00:00", strict=False
    )

    assert [standing.end for standing in found.standing] == [86400.0, None, 604800.0]
    assert [(warning.line, warning.name) for warning in warnings] == [(2, "DEPTH"), (3, "FOO")]
    assert not str(warnings[1]).endswith(" ")


def test_comments_quotes_and_continuations(tmp_path: Path) -> None:
    """A # in quotes is none; a backslash joins lines, also the last; bytes that are no UTF-8 do no harm."""
    path = tmp_path / "maui.cfg"
    path.write_bytes(b"NODECFG[DEFAULT] PRIORITYF='A # B'\nCREDWEIGHT \\\n 7 # caf\xe9\nFSWEIGHT 3 \\")
    found, warnings = read_maui_config(path, strict=False)

    assert (found.number("CREDWEIGHT"), found.number("FSWEIGHT")) == (7, 3)
    assert [warning.name for warning in warnings] == ["NODECFG"]


@pytest.mark.parametrize(
    ("line", "priority"),
    [("1 # 'a", 1), ("1 #\"a\" 'b'", 1), ("PRIORITY='1' # it's", 1), ('PRIORITY="2"#\'', 2), ("PRIORITY='3'# \" #", 3)],
)
def test_a_comment_begins_at_the_first_hash_outside_quotes(line: str, priority: int) -> None:
    """Quotes inside a comment do no harm; an unmatched quote is an ordinary character."""
    text = f"CREDWEIGHT {line}" if line[0] == "1" else f"USERCFG[u] {line}"
    found, _ = parse_maui_config(text, strict=False)

    told = found.number("CREDWEIGHT") if line[0] == "1" else found.credentials["USER"]["u"].priority
    assert told == priority


def test_a_long_file_is_refused(tmp_path: Path) -> None:
    """A file of the greatest length is read; unknown words get suggestions up to a number."""
    path = tmp_path / "maui.cfg"
    path.write_bytes(b"#" * 1024 * 1024)
    read_maui_config(path)
    for content in (b"#" * (1024 * 1024 + 1), "# \u00e9".encode() * 300_000):  # the latter has 900,000 characters
        path.write_bytes(content)
        with pytest.raises(MauiConfigError, match="too long: expected at most 1,048,576 bytes"):
            read_maui_config(path)

    _, warnings = parse_maui_config("FSWIGHT 1\n" * 101, strict=False)
    assert ["FSWEIGHT" in warning.why for warning in warnings] == [True] * 100 + [False]


def test_long_words_are_cut_in_messages() -> None:
    """Of names, of values, and of lines that cannot be read."""
    word = "w" * 70_000
    for text in (f"{word} 1", f"FSPOLICY {word}", f"FSDEPTH {word}", f"USERCFG[{word}] {word}=1", f"[{word}"):
        with pytest.raises(MauiConfigError) as error:
            parse_maui_config(text)
        assert len(str(error.value)) < 600


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    """One message with the path."""
    with pytest.raises(MauiConfigError, match="cannot read the Maui configuration"):
        read_maui_config(tmp_path / "none.cfg")


def test_the_table_of_parameters_is_consistent() -> None:
    """Similar names suggest known ones, and each parameter has its meaning or why it is not supported."""
    assert set(ALIASES.values()) <= PARAMETERS.keys()
    assert not set(ALIASES) & PARAMETERS.keys()
    assert all(parameter.meaning for parameter in PARAMETERS.values() if parameter.support is not Support.DAEMON)


LINES = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.builds(
            lambda name, index, rest: f"{name}{index} {rest}",
            st.sampled_from([*PARAMETERS]),
            st.sampled_from(["", "[0]", "[a]", "[", "[DEFAULT]"]),
            st.one_of(
                st.text(max_size=20),
                st.from_regex(r"[A-Z.\[\]]{2,12}=[-0-9A-Za-z:,%+^]{0,8}", fullmatch=True),
                st.from_regex(r"(MAXPROC|FSTARGET|QDEF|HOSTLIST|DAYS|RESOURCES|DEPTH)=[-0-9A-Z:;,%^]{0,9}"),
            ),
        ),
    ),
    max_size=4,
)


@settings(max_examples=200)
@given(LINES)
def test_any_file_is_read_or_rejected_with_its_line(lines: list[str]) -> None:
    """No text makes the reader fail in another way."""
    message = None
    try:
        parse_maui_config("\n".join(lines), strict=False)
    except MauiConfigError as error:
        message = str(error)
    assert message is None or message.startswith("maui.cfg:")
