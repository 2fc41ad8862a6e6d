"""Put into words why a job waited."""

from collections.abc import Mapping, Sequence
from typing import Final

from pipistrelle.protocol.base.lengths import two_units_text
from pipistrelle.reports.explain.looks import Limit
from pipistrelle.reports.explain.passing import Passing
from pipistrelle.runs.folders.files import JobLine, RunFiles
from pipistrelle.server.outputs.folder import OUTPUT_PREFIX
from pipistrelle.server.outputs.lock import is_written

#: {limit: text that follows "for 2 h"}
WORDS: Final[Mapping[Limit, str]] = {
    "dependency": "a job that it depends on had not reached the required state",
    "class": "its class or its user had reached a limit",
    "limit": "a limit of the scheduler held it back",
    "units": "fewer units were free than it needs",
    "down": "enough units would have been free, but some were out of service",
    "nodes": "enough units were free, but too few on nodes that suit it",
    "window": "enough units were free, but announced maintenance would have ended it",
    "order": "enough units were free, but they were kept for jobs before it in the queue",
    "poll": "nothing held it back, but the scheduler decides only at fixed steps",
    "other": "enough units were free and it was first in the queue, but a rule of the scheduler held it back",
    "resources": "too little was free of a resource",
    "unknown": "enough units were free; why it did not start is unknown",
}


def answer(
    files: RunFiles,
    line: JobLine,
    waited: float,
    limits: Mapping[Limit, float],
    passed_by: Sequence[Passing],
    short: Mapping[str, tuple[float, str]],
) -> str:
    """Return a sentence that says why a job waited.

    Args:
        line: the job.
        waited: how long it waited (s).
        limits: {limit: how long it kept the job waiting (s)}.
        passed_by: the jobs that passed it.
        short: {resource of shared nodes that was short: (for how long (s), a text that says how much was free)}.
    """
    rejected = line.state == "REJECTED"
    why = files.whys.get(line.id) or line.metadata or "nothing tells why"
    if rejected and waited <= 0:
        when = f" when it was submitted, at {line.submit:.10g} s" if line.id in files.rejections else ""
        return f"{line.id} was rejected{when}: {why.removesuffix('.')}."
    if waited <= 0 and line.start is not None:
        return f"{line.id} did not wait: it started when it was submitted, at {line.start:.10g} s."
    parts = []
    for limit, seconds in limits.items():
        words = WORDS[limit]
        if limit == "units":
            words = "no unit was free" if line.size == 1 else f"fewer units were free than the {line.size:,} it needs"
        if limit == "resources":
            spans = ((two_units_text(time), name, text) for name, (time, text) in short.items())
            parts += [f"for {span} too little was free ({name}): {text}" for span, name, text in spans]
            continue
        parts.append(f"for {two_units_text(seconds)} {words}")
    parts.append(_passed_words(passed_by))
    still = "" if line.start is not None else ", and still did when the run ended"
    if line.state == "CANCELLED":
        still = ", until it was cancelled"
    if rejected:
        still = f", then was rejected ({why})"
    return f"{line.id} waited {two_units_text(waited)}{still}: {'; '.join(parts)}."


def _passed_words(passed_by: Sequence[Passing]) -> str:
    if not passed_by:
        return "no later job passed it"
    jobs = "1 job" if len(passed_by) == 1 else f"{len(passed_by):,} jobs"
    text = f"it was passed by {jobs} that came later"
    delaying = sum(one.may_delay for one in passed_by)
    if not delaying:
        return f"{text}, which did not delay it" if len(passed_by) == 1 else f"{text}, none of which delayed it"
    if len(passed_by) == 1:
        return f"{text}, which may have delayed it"
    return f"{text}, {'all' if delaying == len(passed_by) else f'{delaying:,}'} of which may have delayed it"


def remarks(files: RunFiles, line: JobLine) -> list[str]:
    """Return notes on the job ``line``.

    They are about other attempts, preemptions and incomplete outputs.
    """
    found = []
    root, mark, number = line.id.rpartition("#")
    if mark and number.isdecimal() and len(number) < 16 and root in files.jobs:
        before = root if number == "1" else f"{root}#{int(number) - 1}"
        how = "was preempted" if before in files.preempted else "lost its nodes"
        found.append(f"It is attempt {number} of {root}, which {how} and was submitted again.")
    tries = sum(1 for name in files.jobs if name.startswith(f"{line.id}#"))
    if tries:
        more = f"1 more attempt after this one: {line.id}#1"
        if tries > 1:
            more = f"{tries} more attempts after this one: {line.id}#1 to #{tries}"
        found.append(f"It {'was preempted' if line.id in files.preempted else 'lost its nodes'} and had {more}.")
    if line.id in files.preempted and line.end is not None:
        why = files.preempted[line.id]
        found.append(f"It was preempted at {line.end:.10g} s{f'; the scheduler says: {why}' if why else ''}.")
    if line.queued != line.submit:
        found.append(f"It queued from {line.queued:.10g} s on, when its first attempt was submitted.")
    if files.summary is None:
        how = "is still running" if is_written(str(files.folder / OUTPUT_PREFIX).removesuffix("_")) else "was killed"
        found.append(f"The run has no out_summary.json: it {how}; its outputs are incomplete.")
    return found
