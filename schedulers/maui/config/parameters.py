"""The parameters of a maui.cfg: type, default, unit, meaning here, and how far each is supported."""

from enum import Enum
from typing import Final, NamedTuple


class Support(Enum):
    """What becomes of a parameter that stands in a file."""

    YES = "supported"
    #: belongs to a daemon that runs: logs, ports, files, statistics, its own simulator. Nothing to do with decisions.
    DAEMON = "of the daemon"
    NO = "not supported"


class Kind(Enum):
    """How the text after a parameter is read."""

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
    """One parameter; ``choices`` of a choice, ``lacking`` those that Maui has and this one has not."""

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


def _without(name: str, why: str, kind: Kind = Kind.TEXT) -> Parameter:
    return Parameter(name, kind, "", "", why, Support.NO)


#: (component, name of its weight, weight's default, name of its cap)
COMPONENTS: Final = (
    ("SERV", "SERVICEWEIGHT", 1, "SERVCAP"),
    ("TARG", "TARGWEIGHT", 0, "TARGCAP"),
    ("CRED", "CREDWEIGHT", 1, "CREDCAP"),
    ("FS", "FSWEIGHT", 0, "FSCAP"),
    ("RES", "RESWEIGHT", 0, "RESCAP"),
)
#: (component, subcomponent, weight's default, what the factor is); the weight is subcomponent + WEIGHT
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
    Parameter(
        "FSPOLICY",
        Kind.CHOICE,
        "NONE",
        "",
        "what usage is counted in; all three are processors x seconds here",
        choices=("NONE", "DEDICATEDPS", "DEDICATEDPES", "UTILIZEDPS", "DEDICATEDPS*", "DEDICATEDPES*", "UTILIZEDPS*"),
    ),
    Parameter("FSDEPTH", Kind.INTEGER, 7, "windows", "how many windows count, the current one included"),
    Parameter("FSINTERVAL", Kind.TIME, 86400.0, "s", "length of a window; windows begin at its multiples"),
    Parameter("FSDECAY", Kind.NUMBER, 1.0, "", "factor of each older window: the k-th counts FSDECAY^k"),
    Parameter(
        "BACKFILLPOLICY",
        Kind.CHOICE,
        "FIRSTFIT",
        "",
        "which of the jobs that fit are backfilled",
        choices=("FIRSTFIT", "BESTFIT", "GREEDY", "NONE"),
        lacking=("PREEMPT",),
    ),
    Parameter("BACKFILLDEPTH", Kind.INTEGER, 0, "jobs", "how many jobs are looked at in each backfill window; 0: all"),
    Parameter(
        "BACKFILLMETRIC",
        Kind.CHOICE,
        "PROCS",
        "",
        "what makes a job good, for BESTFIT and GREEDY",
        choices=("PROCS", "NODES", "SECONDS", "PROCSECONDS", "PE", "PESECONDS"),
    ),
    Parameter(
        "RESERVATIONPOLICY",
        Kind.CHOICE,
        "CURRENTHIGHEST",
        "",
        "whose reservations there are",
        choices=("CURRENTHIGHEST", "HIGHEST", "NEVER"),
    ),
    Parameter("RESERVATIONDEPTH", Kind.INTEGER, 1, "jobs", "how many jobs of a stack have a reservation; [X] a stack"),
    Parameter("RESERVATIONQOSLIST", Kind.NAMES, ("ALL",), "", "the QOS of stack [X]"),
    Parameter(
        "RESDEPTH",
        Kind.INTEGER,
        24,
        "reservations",
        "how many reservations a unit may have at most, its running job and standing reservations included",
    ),
    Parameter(
        "JOBPRIOACCRUALPOLICY",
        Kind.CHOICE,
        "QUEUEPOLICY",
        "",
        "when queue time counts",
        choices=("ALWAYS", "QUEUEPOLICY", "FULLPOLICY"),
    ),
    Parameter("ENABLENEGJOBPRIORITY", Kind.BOOLEAN, False, "", "if not, the least priority is 1"),
    Parameter("REJECTNEGPRIOJOBS", Kind.BOOLEAN, True, "", "whether a job of negative priority may not start"),
    Parameter(
        "NODEALLOCATIONPOLICY",
        Kind.CHOICE,
        "LASTAVAILABLE",
        "",
        "which units a job gets",
        choices=("FIRSTAVAILABLE", "LASTAVAILABLE", "MINRESOURCE", "CPULOAD", "MAXBALANCE", "FASTEST"),
        lacking=("PRIORITY", "LOCAL", "CONTIGUOUS"),
    ),
    Parameter(
        "DEFERTIME",
        Kind.TIME,
        3600.0,
        "s",
        "how long a job waits aside that needs more units than are in service; 0: until they are back",
    ),
    Parameter("XFMINWCLIMIT", Kind.TIME, -1.0, "s", "least walltime in the expansion factor"),
    Parameter("SYSTEMDEFAULTJOBWALLTIME", Kind.TIME, 864000.0, "s", "walltime that a job without one is planned with"),
    Parameter("SYSTEMMAXPROCPERJOB", Kind.INTEGER, -1, "units", "a larger job is rejected; -1: none"),
    Parameter("SYSTEMMAXPROCSECONDPERJOB", Kind.NUMBER, -1.0, "unit x s", "a larger job is rejected; -1: none"),
    Parameter("SYSTEMMAXJOBWALLTIME", Kind.TIME, -1.0, "s", "a longer job is rejected; -1: none"),
)

_OBJECTS = tuple(
    Parameter(name, Kind.ATTRIBUTES, "", "", meaning)
    for name, meaning in (
        ("USERCFG", "priority, fairshare target, limits and default QOS of a user; DEFAULT: of those without"),
        ("GROUPCFG", "the same of a group"),
        ("ACCOUNTCFG", "the same of an account"),
        ("CLASSCFG", "the same of a class, the queue of a job"),
        ("QOSCFG", "the same of a QOS, with QTWEIGHT, XFWEIGHT, QTTARGET and XFTARGET"),
        ("SYSCFG", "limits of all jobs together, and the default QOS"),
        ("SRCFG", "a standing reservation"),
    )
)
#: old ways to write an attribute of a QOS: {parameter: attribute}
OLD_QOS: Final = {
    "QOSPRIORITY": "PRIORITY",
    "QOSQTWEIGHT": "QTWEIGHT",
    "QOSXFWEIGHT": "XFWEIGHT",
    "QOSQTTARGET": "QTTARGET",
    "QOSXFTARGET": "XFTARGET",
}

_WITHOUT = (
    _without("RMPOLLINTERVAL", "decisions are taken at every event; for fixed steps use --poll"),
    _without("JOBAGGREGATIONTIME", "decisions are taken at every event"),
    _without("BFCHUNKDURATION", "there is no chunking"),
    _without("BFCHUNKSIZE", "there is no chunking"),
    _without("BFPRIORITYPOLICY", "there is no preemption"),
    _without("PREEMPTPOLICY", "there is no preemption"),
    _without("DEFERCOUNT", "a job is never held for good"),
    _without("DEFERSTARTCOUNT", "no start fails"),
    _without("DOWNNODEDELAYTIME", "a node that is down is planned with when it is up again"),
    _without("NODEDOWNSTATEDELAYTIME", "a node that is down is planned with when it is up again"),
    _without("ENABLEMULTINODEJOBS", "a job may have any number of units"),
    _without("JOBMAXOVERRUN", "the server ends a job at its walltime"),
    _without("WCVIOLATIONACTION", "the server ends a job at its walltime"),
    _without("JOBNODEMATCHPOLICY", "a job asks for a number of units, nothing else"),
    _without("JOBSIZEPOLICY", "a job asks for a number of units, nothing else"),
    _without("NODECFG", "all units are alike"),
    _without("NODEMAXLOAD", "all units are alike"),
    _without("NODELOADPOLICY", "all units are alike"),
    _without("NODESETATTRIBUTE", "there are no sets of nodes"),
    _without("NODESETDELAY", "there are no sets of nodes"),
    _without("NODESETLIST", "there are no sets of nodes"),
    _without("NODESETPOLICY", "there are no sets of nodes"),
    _without("NODESETPRIORITYTYPE", "there are no sets of nodes"),
    _without("NODESETTOLERANCE", "there are no sets of nodes"),
    _without("PARTITIONMODE", "the machine is one partition"),
    _without("QOSFEATURES", "all units are alike"),
    _without("QOSFLAGS", "a QOS has no flags"),
    _without("RESCTLPOLICY", "nobody makes reservations by hand"),
    _without("RESERVATIONRETRYTIME", "no start fails"),
    _without("RESOURCELIMITPOLICY", "a job never uses more than it asked for"),
    _without("SPVIOLATIONWEIGHT", "not part of the priority here"),
    _without("MEMWEIGHT", "a job asks for no memory"),
    _without("SWAPWEIGHT", "a job asks for no memory"),
    _without("DISKWEIGHT", "a job asks for no disk"),
    _without("UPROCWEIGHT", "not part of the priority here"),
    _without("UJOBWEIGHT", "not part of the priority here"),
    _without("USAGEWEIGHT", "it concerns running jobs alone"),
    _without("USAGEPERCENTWEIGHT", "it concerns running jobs alone"),
    _without("ATTRWEIGHT", "jobs have no attributes"),
    _without("USEMACHINESPEED", "all units are alike"),
    _without("USESYSTEMQUEUETIME", "superseded by JOBPRIOACCRUALPOLICY"),
    *(_without(f"MAX{what}PER{whom}{how}", "superseded by the limits of USERCFG, GROUPCFG and ACCOUNTCFG")
      for what in ("JOB", "NODE", "PE", "PROC", "PS", "WC", "JOBQUEUED")
      for whom in ("USER", "GROUP", "ACCOUNT") for how in ("COUNT", "POLICY")),
    *(_without(f"SR{name}", "superseded by SRCFG")
      for name in ("ACCESS", "ACCOUNTLIST", "CHARGEACCOUNT", "CLASSLIST", "DAYS", "DEPTH", "ENDTIME", "FEATURES",
                   "FLAGS", "GROUPLIST", "HOSTLIST", "MAXTIME", "NAME", "PARTITION", "PERIOD", "QOSLIST", "RESOURCES",
                   "STARTTIME", "TASKCOUNT", "TIMELOGIC", "TPN", "USERLIST", "WENDTIME", "WSTARTTIME")),
)  # fmt: skip

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

#: {name: parameter}, in the order of the page
PARAMETERS: Final[dict[str, Parameter]] = {
    parameter.name: parameter
    for parameter in (
        *(_weight(weight, default, f"weight of the component {name}") for name, weight, default, _ in COMPONENTS),
        *(_weight(f"{name}WEIGHT", default, what) for _, name, default, what in SUBCOMPONENTS),
        *(_cap(cap, f"the component {name}") for name, _, _, cap in COMPONENTS),
        *(_cap(f"{name}CAP", f"the factor {name}") for _, name, _, _ in SUBCOMPONENTS),
        *_DECISIONS,
        *_OBJECTS,
        *(Parameter(old, Kind.TEXT, "", "", f"old way to write QOSCFG[X] {new}=") for old, new in OLD_QOS.items()),
        *_WITHOUT,
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
