"""Read and write SIMULATION_BEGINS in Batsim's form."""

from typing import Any, Final

from msgspec import Raw, Struct, field
from msgspec.structs import asdict

from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.batsim.messages import BatsimBeginsData
from pipistrelle.protocol.events import SimulationBegins, SimulationBeginsData
from pipistrelle.protocol.fields import MOST_UNITS, Instant

#: settings that Batsim's clients read without checking whether they exist
_CONFIG: Final[dict[str, Any]] = {
    "redis-enabled": False,
    "redis-hostname": "127.0.0.1",
    "redis-port": 6379,
    "redis-prefix": "default",
    "profiles-forwarded-on-submission": False,
    "dynamic-jobs-enabled": False,
    "dynamic-jobs-acknowledged": False,
    "profile-reuse-enabled": False,
    "sched-config": "",
    "forward-unknown-events": False,
}
_HINT: Final = "Only Batsim 3 and 4 are spoken here, with the whole description of the machine in SIMULATION_BEGINS."


class BeginsDataFrame(Struct):
    """The fields of Batsim's SIMULATION_BEGINS that Pipistrelle reads.

    All others are ignored.
    """

    nb_compute_resources: int | None = None
    nb_resources: int | None = None
    nb_storage_resources: int = 0
    allow_compute_sharing: bool = False
    allow_storage_sharing: bool = True
    config: dict[str, Any] = field(default_factory=dict)
    compute_resources: list[dict[str, Any]] = field(default_factory=list)
    storage_resources: list[dict[str, Any]] = field(default_factory=list)
    workloads: dict[str, str] = field(default_factory=dict)
    profiles: dict[str, dict[str, Raw]] = field(default_factory=dict)


class BeginsFrame(Struct):
    """SIMULATION_BEGINS in Batsim's form."""

    timestamp: Instant
    data: BeginsDataFrame


def begins_of(frame: BeginsFrame) -> SimulationBegins:
    """Return the event in a frame, with a `BatsimBeginsData`.

    Raises:
        RemoteProtocolError: if jobs are in Redis, there are no compute hosts, or the hosts are not numbered from 0.
    """
    data = frame.data
    redis = data.config.get("redis")
    if data.config.get("redis-enabled", redis.get("enabled") if isinstance(redis, dict) else False) is not False:
        raise RemoteProtocolError(
            "Batsim keeps its jobs in Redis, which is not supported",
            where="$.events[0].data.config.redis-enabled",
            expected="false",
            found="true",
            hint="Start Batsim without --enable-redis.",
        )
    hosts = data.nb_resources if data.nb_compute_resources is None else data.nb_compute_resources
    if hosts is None or not 1 <= hosts <= MOST_UNITS:
        raise RemoteProtocolError(
            "there are no compute hosts",
            where="$.events[0].data.nb_compute_resources",
            expected=f"a number of hosts, at most {MOST_UNITS:,}",
            found="nothing" if hosts is None else str(hosts),
            hint=_HINT,
        )
    numbers = [host.get("id") for host in data.compute_resources]
    # Comparing the lists directly would accept 0.0 and False for 0.
    numbered = all(type(number) is int for number in numbers) and len(numbers) == hosts
    if numbers and not (numbered and sorted(numbers) == list(range(hosts))):  # type: ignore[type-var]
        raise RemoteProtocolError(
            "the compute hosts are not numbered from 0 without gaps",
            where="$.events[0].data.compute_resources",
            expected=f"the ids 0 to {hosts - 1}",
            found=f"{len(numbers)} hosts with other ids",
            hint="In the platform file, put hosts with other roles after the compute hosts.",
        )
    read = asdict(data) | {"nb_resources": hosts, "nb_compute_resources": hosts}
    return SimulationBegins(frame.timestamp, BatsimBeginsData(**read))


def begins_on_wire(data: SimulationBeginsData) -> dict[str, Any]:
    """Return the data of a SIMULATION_BEGINS for Batsim's clients.

    It has every field that they need. If the data is from the native dialect, fields that only Batsim has are filled
    in: each host is named by its number, and there are no properties and no profiles. Settings missing from ``config``
    get Batsim's defaults.
    """
    if not isinstance(data, BatsimBeginsData):
        bare: dict[str, Any] = {"state": "idle", "properties": {}, "zone_properties": {}}
        data = BatsimBeginsData(
            nb_resources=data.nb_resources,
            workloads=data.workloads,
            config=data.config,
            compute_resources=[{"id": number, "name": str(number)} | bare for number in range(data.nb_resources)],
            profiles={prefix: {} for prefix in data.workloads},
        )
    compute = data.nb_compute_resources or data.nb_resources
    return {
        "nb_resources": compute + data.nb_storage_resources,
        "nb_compute_resources": compute,
        "nb_storage_resources": data.nb_storage_resources,
        "allow_compute_sharing": data.allow_compute_sharing,
        "allow_storage_sharing": data.allow_storage_sharing,
        "config": _CONFIG | data.config,
        "compute_resources": data.compute_resources,
        "storage_resources": data.storage_resources,
        "workloads": data.workloads,
        "profiles": data.profiles,
    }
