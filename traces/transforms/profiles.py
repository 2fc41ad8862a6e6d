"""Give jobs profiles, and unite the profiles of several workloads."""

from dataclasses import replace

import msgspec

from pipistrelle.traces.batsim.profile_reader import delay_json
from pipistrelle.traces.batsim.text import job_text, with_members
from pipistrelle.traces.profiles import Composed, Delay, Profile
from pipistrelle.traces.transforms.cut import changed
from pipistrelle.traces.workload import Workload


def with_profiles(workload: Workload) -> Workload:
    """Return the workload with a profile for each job.

    A job from a log gets a delay profile of its run time.
    """
    if workload.profiles is not None:
        return workload
    names = [workload.profile_of(row) for row in range(len(workload))]
    runtimes = dict(zip(names, workload.runtime.tolist(), strict=True))
    return replace(
        workload,
        profiles=names,
        table={name: Delay(name=name, delay=runtime) for name, runtime in runtimes.items()},
        profile_json={name: delay_json(runtime) for name, runtime in runtimes.items()},
        job_json=[job_text(workload, row, job) for row, job in enumerate(workload.ids)],
    )


def united_profiles(workloads: list[Workload]) -> list[Workload]:
    """Return the workloads with one common table of profiles.

    If two workloads use a name for different profiles, all profiles of the later workload get the suffix ``@k``, where
    k is its number from 1. The suffix is repeated if necessary.
    """
    table: dict[str, Profile] = {}
    texts: dict[str, bytes] = {}
    renamed = []
    for number, workload in enumerate(map(with_profiles, workloads), start=1):
        mine = {name: msgspec.json.format(text, indent=-1) for name, text in (workload.profile_json or {}).items()}
        suffix = ""
        while any(texts.get(name + suffix, text) != text for name, text in mine.items()):
            suffix += f"@{number}"
        known: dict[int, Profile] = {}
        table |= {name + suffix: _renamed(profile, suffix, known) for name, profile in (workload.table or {}).items()}
        texts |= {name + suffix: _renamed_parts(text, suffix) for name, text in mine.items()}
        profiles = [name + suffix for name in workload.profiles or []]
        renamed.append(changed(workload, profiles=profiles) if suffix else workload)
    return [replace(workload, table=table, profile_json=texts) for workload in renamed]


def _renamed(profile: Profile, suffix: str, known: dict[int, Profile]) -> Profile:
    if not suffix:
        return profile
    if id(profile) not in known:
        new = msgspec.structs.replace(profile, name=profile.name + suffix)
        if isinstance(profile, Composed):
            parts = tuple(_renamed(part, suffix, known) for part in profile.seq)
            names = tuple(name + suffix for name in profile.names)
            new = msgspec.structs.replace(new, seq=parts, names=names)
        known[id(profile)] = new
    return known[id(profile)]


def _renamed_parts(text: bytes, suffix: str) -> bytes:
    """Return a profile's JSON object with its parts renamed, if it has parts."""
    if not suffix:
        return text
    value = msgspec.json.decode(text)
    if not (isinstance(value, dict) and value.get("type") == "composed" and isinstance(value.get("seq"), list)):
        return text
    return with_members(text, seq=[f"{name}{suffix}" for name in value["seq"]])
