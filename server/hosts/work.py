"""What a job's profile comes to: how it ends, and whether its hosts decide how long it takes."""

from pipistrelle.traces.batsim.profiles import Composed, Profile


def outcome(profile: Profile) -> tuple[Profile, int]:
    """Return the part of a profile that is carried out and what the job then returns.

    A part that fails ends a composed profile at once, in its first round.
    """
    return _outcome(profile, {})


def _outcome(profile: Profile, known: dict[int, tuple[Profile, int]]) -> tuple[Profile, int]:
    """Do so; ``known`` has the outcomes of parts by their identity, since profiles may share many of them."""
    if not isinstance(profile, Composed):
        return profile, profile.ret
    done: list[Profile] = []
    for part in profile.seq:
        if id(part) not in known:
            known[id(part)] = _outcome(part, known)
        carried_out, code = known[id(part)]
        done.append(carried_out)
        if code:
            names = profile.names[: len(done)]
            return Composed(name=profile.name, repeat=1, seq=tuple(done), names=names, ret=code), code
    return profile, profile.ret
