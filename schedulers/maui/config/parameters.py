"""The parameters of a maui.cfg: type, default, unit, meaning and support."""

from enum import Enum
from typing import Final, NamedTuple


class Support(Enum):
    """How a parameter in a file is handled."""

    YES = "supported"
    #: only for the running daemon (logs, ports, files, statistics, its simulator), not for decisions
    DAEMON = "of the daemon"
    #: no decision here depends on it
    IDLE = "without effect"
    #: Maui would decide differently
    NO = "not supported"


class Kind(Enum):
    """The type of a parameter's text."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIME = "time"
    CHOICE = "choice"
    NAMES = "names"
    ATTRIBUTES = "attributes"
    TEXT = "text"


Value = int | float | bool | str | tuple[str, ...]


class Parameter(NamedTuple):
    """One parameter; ``lacking`` has the choices that only Maui itself supports."""

    name: str
    kind: Kind
    default: Value
    unit: str
    meaning: str
    support: Support = Support.YES
    choices: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


def _weight(name: str, default: int, meaning: str) -> Parameter:
    return Parameter(name, Kind.NUMBER, default, "", meaning)


def _cap(name: str, what: str) -> Parameter:
    return Parameter(name, Kind.NUMBER, 0.0, "", f"largest value of {what} before its weight; 0: none")


def _choice(name: str, default: str, choices: str, meaning: str, lacking: str = "") -> Parameter:
    every, others = tuple(choices.split()), tuple(lacking.split())
    return Parameter(name, Kind.CHOICE, default, "", meaning, choices=every, lacking=others)


#: (component, name of its weight, weight's default, name of its cap)
COMPONENTS: Final = (
    ("SERV", "SERVICEWEIGHT", 1, "SERVCAP"),
    ("TARG", "TARGWEIGHT", 0, "TARGCAP"),
    ("CRED", "CREDWEIGHT", 1, "CREDCAP"),
    ("FS", "FSWEIGHT", 0, "FSCAP"),
    ("RES", "RESWEIGHT", 0, "RESCAP"),
)
#: (component, subcomponent, weight's default, the factor); the weight is subcomponent + WEIGHT
SUBCOMPONENTS: Final = (
    ("SERV", "QUEUETIME", 1, "effective queue time in minutes"),
    ("SERV", "XFACTOR", 0, "expansion factor, 1 + queue time / walltime"),
    ("SERV", "BYPASS", 0, "number of jobs of lower priority that were backfilled before it"),
    ("TARG", "TARGETQUEUETIME", 0, "(QTTARGET - queue time in seconds)^-2"),
    ("TARG", "TARGETXFACTOR", 0, "(XFTARGET - expansion factor)^-2"),
    ("CRED", "USER", 0, "PRIORITY of the user"),
    ("CRED", "GROUP", 0, "PRIORITY of the group"),
    ("CRED", "ACCOUNT", 0, "PRIORITY of the account"),
    ("CRED", "QOS", 0, "PRIORITY of the QOS"),
    ("CRED", "CLASS", 0, "PRIORITY of the class"),
    ("FS", "FSUSER", 0, "FSTARGET - usage in percent, of the user"),
    ("FS", "FSGROUP", 0, "FSTARGET - usage in percent, of the group"),
    ("FS", "FSACCOUNT", 0, "FSTARGET - usage in percent, of the account"),
    ("FS", "FSQOS", 0, "FSTARGET - usage in percent, of the QOS"),
    ("FS", "FSCLASS", 0, "FSTARGET - usage in percent, of the class"),
    ("RES", "NODE", 0, "nodes asked for"),
    ("RES", "PROC", 0, "processors asked for"),
    ("RES", "PS", 0, "processors x walltime in seconds"),
    ("RES", "PE", 0, "processor equivalents, here the processors"),
    ("RES", "WALLTIME", 0, "walltime in seconds"),
)

_DECISIONS = (
    _choice(
        "FSPOLICY",
        "NONE",
        "NONE DEDICATEDPS DEDICATEDPES UTILIZEDPS DEDICATEDPS* DEDICATEDPES* UTILIZEDPS*",
        "unit of usage; always processors x seconds here",
    ),
    Parameter("FSDEPTH", Kind.INTEGER, 7, "windows", "number of windows, including the current one"),
    Parameter("FSINTERVAL", Kind.TIME, 86400.0, "s", "length of a window; windows begin at its multiples"),
    Parameter("FSDECAY", Kind.NUMBER, 1.0, "", "factor of each older window: the k-th counts FSDECAY^k"),
    _choice(
        "BACKFILLPOLICY",
        "FIRSTFIT",
        "FIRSTFIT BESTFIT GREEDY NONE",
        "which of the jobs that fit are backfilled",
        lacking="PREEMPT",
    ),
    Parameter("BACKFILLDEPTH", Kind.INTEGER, 0, "jobs", "number of jobs considered in each backfill window; 0: all"),
    _choice(
        "BACKFILLMETRIC",
        "PROCS",
        "PROCS NODES SECONDS PROCSECONDS PE PESECONDS",
        "value of a job, for BESTFIT and GREEDY",
    ),
    _choice("RESERVATIONPOLICY", "CURRENTHIGHEST", "CURRENTHIGHEST HIGHEST NEVER", "which jobs get reservations"),
    Parameter("RESERVATIONDEPTH", Kind.INTEGER, 1, "jobs", "number of jobs of a stack with a reservation; [X] is a stack"),
    Parameter("RESERVATIONQOSLIST", Kind.NAMES, ("ALL",), "", "the QOS of stack [X]"),
    Parameter(
        "RESDEPTH",
        Kind.INTEGER,
        24,
        "reservations",
        "most reservations of a unit, including its running job and standing reservations",
    ),
    _choice(
        "PREEMPTPOLICY",
        "REQUEUE",
        "REQUEUE CHECKPOINT CANCEL NONE",
        "what happens to a preempted job, see Preemption",
        lacking="SUSPEND OVERCOMMIT",
    ),
    _choice("JOBPRIOACCRUALPOLICY", "QUEUEPOLICY", "ALWAYS QUEUEPOLICY FULLPOLICY", "when queue time counts"),
    Parameter("ENABLENEGJOBPRIORITY", Kind.BOOLEAN, False, "", "if not, the least priority is 1"),
    Parameter("REJECTNEGPRIOJOBS", Kind.BOOLEAN, True, "", "whether a job of negative priority may not start"),
    _choice(
        "NODEALLOCATIONPOLICY",
        "LASTAVAILABLE",
        "FIRSTAVAILABLE LASTAVAILABLE MINRESOURCE CPULOAD MAXBALANCE FASTEST",
        "which units a job gets",
        lacking="PRIORITY LOCAL CONTIGUOUS",
    ),
    Parameter(
        "DEFERTIME",
        Kind.TIME,
        3600.0,
        "s",
        "how long a job that needs more units than are in service is held back; 0: until they return",
    ),
    Parameter("XFMINWCLIMIT", Kind.TIME, -1.0, "s", "least walltime in the expansion factor"),
    Parameter("SYSTEMDEFAULTJOBWALLTIME", Kind.TIME, 864000.0, "s", "planned walltime of a job without one"),
    Parameter("SYSTEMMAXPROCPERJOB", Kind.INTEGER, -1, "units", "a larger job is rejected; -1: none"),
    Parameter("SYSTEMMAXPROCSECONDPERJOB", Kind.NUMBER, -1.0, "unit x s", "a larger job is rejected; -1: none"),
    Parameter("SYSTEMMAXJOBWALLTIME", Kind.TIME, -1.0, "s", "a longer job is rejected; -1: none"),
)

_OBJECTS: Final = {
    "USERCFG": "priority, fairshare target, limits and default QOS of a user; DEFAULT: of those without",
    "GROUPCFG": "the same of a group",
    "ACCOUNTCFG": "the same of an account",
    "CLASSCFG": "the same of a class, the queue of a job",
    "QOSCFG": "the same of a QOS, with QTWEIGHT, XFWEIGHT, QTTARGET and XFTARGET",
    "SYSCFG": "limits of all jobs together, and the default QOS",
    "SRCFG": "a standing reservation",
}
#: {old parameter: attribute of a QOS}
OLD_QOS: Final = {
    "QOSPRIORITY": "PRIORITY",
    "QOSQTWEIGHT": "QTWEIGHT",
    "QOSXFWEIGHT": "XFWEIGHT",
    "QOSQTTARGET": "QTTARGET",
    "QOSXFTARGET": "XFTARGET",
    "QOSFLAGS": "QFLAGS",
}

#: {why no decision here depends on them: parameters}
_IDLE: Final = {
    "decisions are taken at every event; for fixed steps use --poll": "RMPOLLINTERVAL",
    "decisions are taken at every event": "JOBAGGREGATIONTIME",
    "no start fails": "DEFERSTARTCOUNT RESERVATIONRETRYTIME",
    "the server kills a job at its walltime": "WCVIOLATIONACTION",
    "a job asks for a number of units, nothing else": "JOBNODEMATCHPOLICY JOBSIZEPOLICY",
    "all units are alike": "NODEMAXLOAD NODELOADPOLICY USEMACHINESPEED",
    "there are no manual reservations": "RESCTLPOLICY",
    "a job never uses more than it asked for": "RESOURCELIMITPOLICY",
    "a job asks for no memory": "MEMWEIGHT SWAPWEIGHT",
    "a job asks for no disk": "DISKWEIGHT",
    "it concerns only running jobs": "USAGEWEIGHT USAGEPERCENTWEIGHT",
    "jobs have no attributes": "ATTRWEIGHT",
    "superseded by JOBPRIOACCRUALPOLICY": "USESYSTEMQUEUETIME",
}
#: {why they are not supported: parameters}
_WITHOUT: Final = {
    "there is no chunking": "BFCHUNKDURATION BFCHUNKSIZE",
    "the lowest priority is always preempted first": "BFPRIORITYPOLICY",
    "a job is never held for good": "DEFERCOUNT",
    "a failed node is planned from its repair on": "DOWNNODEDELAYTIME NODEDOWNSTATEDELAYTIME",
    "a job may have any number of units": "ENABLEMULTINODEJOBS",
    "the server kills a job at its walltime": "JOBMAXOVERRUN",
    "all units are alike": "NODECFG QOSFEATURES",
    "there are no sets of nodes": "NODESETATTRIBUTE NODESETDELAY NODESETLIST NODESETPOLICY NODESETPRIORITYTYPE "
    "NODESETTOLERANCE",
    "the machine is one partition": "PARTITIONMODE",
    "not part of the priority here": "SPVIOLATIONWEIGHT UPROCWEIGHT UJOBWEIGHT",
    "superseded by the limits of USERCFG, GROUPCFG and ACCOUNTCFG": " ".join(
        f"MAX{what}PER{whom}{how}"
        for what in ("JOB", "NODE", "PE", "PROC", "PS", "WC", "JOBQUEUED")
        for whom in ("USER", "GROUP", "ACCOUNT")
        for how in ("COUNT", "POLICY")
    ),
    "superseded by SRCFG": """
SRACCESS SRACCOUNTLIST SRCHARGEACCOUNT SRCLASSLIST SRDAYS SRDEPTH SRENDTIME SRFEATURES SRFLAGS SRGROUPLIST SRHOSTLIST
SRMAXTIME SRNAME SRPARTITION SRPERIOD SRQOSLIST SRRESOURCES SRSTARTTIME SRTASKCOUNT SRTIMELOGIC SRTPN SRUSERLIST
SRWENDTIME SRWSTARTTIME
""",
}

_OF_THE_DAEMON = """
ADMIN1 ADMIN2 ADMIN3 ADMINHOST ADMINHOSTS ADMIN_HOST ADMIN_USERS AMCFG BANKTYPE CHECKPOINTEXPIRATIONTIME CHECKPOINTFILE
CHECKPOINTINTERVAL CLIENTCFG CLIENTTIMEOUT DEFAULTCLASSLIST DISPLAYFLAGS ENABLEMULTIREQJOBS ENFORCERESOURCELIMITS
FEATURENODETYPEHEADER
FEATUREPARTITIONHEADER FEATUREPROCSPEEDHEADER FEEDBACKPROGRAM FSCONFIGFILE JOBMAXSTARTTIME JOBPURGETIME JOBSYNCTIME
LOCKFILE LOGDIR LOGFACILITY LOGFILE LOGFILEMAXSIZE LOGFILEROLLDEPTH LOGLEVEL NODEACCESSPOLICY NODEAVAILABILITYPOLICY
NODEPOLLFREQUENCY NODEPURGETIME NODESYNCTIME NOTIFICATIONPROGRAM PLOTMAXPROC PLOTMAXTIME PLOTMINPROC PLOTMINTIME
PLOTPROCSCALE PLOTTIMESCALE PURGETIME RMAUTHTYPE RMCFG RMHOST RMNMPORT RMPORT RMSERVER RMTIMEOUT RMTYPE SERVERHOST
SERVERMODE SERVERNAME SERVERPORT SIMAUTOSHUTDOWN SIMCPUSCALINGPERCENT SIMDEFAULTJOBFLAGS SIMEXITITERATION SIMFLAGS
SIMIGNOREJOBFLAGS SIMINITIALQUEUEDEPTH SIMJOBSUBMISSIONPOLICY SIMNODECONFIGURATION SIMNODECOUNT SIMRESOURCETRACEFILE
SIMRMRANDOMDELAY SIMSTOPITERATION SIMTIMERATIO SIMWORKLOADTRACEFILE STATDIR TASKDISTRIBUTIONPOLICY TOOLSDIR
TRAPFUNCTION TRAPJOB TRAPNODE TRAPRES USERHOMEDIR
"""

#: {name: parameter}, in the order of the documentation
PARAMETERS: Final[dict[str, Parameter]] = {
    parameter.name: parameter
    for parameter in (
        *(_weight(weight, default, f"weight of the component {name}") for name, weight, default, _ in COMPONENTS),
        *(_weight(f"{name}WEIGHT", default, what) for _, name, default, what in SUBCOMPONENTS),
        *(_cap(cap, f"the component {name}") for name, _, _, cap in COMPONENTS),
        *(_cap(f"{name}CAP", f"the factor {name}") for _, name, _, _ in SUBCOMPONENTS),
        *_DECISIONS,
        *(Parameter(name, Kind.ATTRIBUTES, "", "", meaning) for name, meaning in _OBJECTS.items()),
        *(Parameter(old, Kind.TEXT, "", "", f"old way to write QOSCFG[X] {new}=") for old, new in OLD_QOS.items()),
        *(
            Parameter(name, Kind.TEXT, "", "", why, support)
            for support, reasons in ((Support.IDLE, _IDLE), (Support.NO, _WITHOUT))
            for why, names in reasons.items()
            for name in names.split()
        ),
        *(Parameter(name, Kind.TEXT, "", "", "", Support.DAEMON) for name in _OF_THE_DAEMON.split()),
    )
}

#: {other name: name}, from the manual's own examples and older versions
ALIASES: Final[dict[str, str]] = {
    "SERVWEIGHT": "SERVICEWEIGHT",
    "TARGETWEIGHT": "TARGWEIGHT",
    "RESOURCEWEIGHT": "RESWEIGHT",
    "AFSWEIGHT": "FSACCOUNTWEIGHT",
    "XFWEIGHT": "XFACTORWEIGHT",
    "SYSTEMCFG": "SYSCFG",
    "SYSTEMMAXJOBPROC": "SYSTEMMAXPROCPERJOB",
    "SYSTEMMAXJOBPROCSECOND": "SYSTEMMAXPROCSECONDPERJOB",
}
#: {parameter: {other value: its meaning in Maui}}: booleans of older versions, and values of its sample file
SYNONYMS: Final[dict[str, dict[str, str]]] = {
    "FSPOLICY": dict.fromkeys(("TRUE", "ON", "YES", "1"), "DEDICATEDPS")
    | dict.fromkeys(("FALSE", "OFF", "NO", "0", "PSDEDICATED"), "NONE")
}
