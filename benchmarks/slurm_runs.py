"""Simulate the jobs of slurmctld recordings with our scheduler ``slurm``.

Every start is compared.

    python benchmarks/slurm_runs.py [FOLDER ...] [--model | --engine | --spread N] [--verbose N]

Submissions and runtimes come from the recording. Without ``--model``, the delays in `Timing` are also taken from the
recording, because they depend on polling inside slurmctld and on the recording's clock. With ``--engine``, the
simulation is ``pipistrelle run --scheduler slurm`` with the recording's files and modelled delays.

Prints the number of starts at the same second on the same nodes, and the mean wait of each partition, account and QOS.

With ``--spread N``, N runs differ in two details only: which job has which of the recorded delays, and at which
fraction of a second the main loop runs (0, 0.02 or 0.04 s, drawn every 300 s). The runs are compared with each other
and with the recording. So ``--spread`` shows how equal two runs can be if these details are unknown.
"""

import argparse
import random
from itertools import combinations
from pathlib import Path
from statistics import mean, median

from slurm_passes import recordings

from pipistrelle.runs.recordings.names import JobStart
from pipistrelle.runs.recordings.recording import Recording
from pipistrelle.runs.recordings.whole_runs import (
    Timing,
    equal,
    largest_error,
    mean_waits,
    pairs,
    play,
    play_on_engine,
    recorded_timing,
)

#: phases of the main loop in recordings with slurmdbd (s), time between two changes (s), and number of changes drawn
SLIPS = (0.0, 0.02, 0.04)
PERIOD, SAVES = 300, 100


def drawn(recording: Recording, chance: random.Random) -> Timing:
    """Return random delays of jobs, and random times of the main loop.

    The delays are the recorded ones, assigned to jobs at random. The times are fractions of a second at which the main
    loop runs.
    """
    delays = recorded_timing(recording).delays
    values = chance.sample(list(delays.values()), len(delays))
    times = range(SAVES * PERIOD, 0, -PERIOD)
    slips = [(recording.config.start + at, chance.choice(SLIPS)) for at in times]
    return Timing(dict(zip(delays, values, strict=True)), slips[::-1])


def equal_starts(starts: list[JobStart], others: list[JobStart]) -> float:
    """Return the share of ``starts`` that are also in ``others``.

    Such a start is at the same second on the same nodes.
    """
    return sum(equal(one, other) for one, other in pairs(starts, others)) / max(1, len(starts))


def spread(recording: Recording, count: int) -> None:
    """Simulate a recording several times, and print how equal the runs are.

    Delays and times of the main loop are random (see `drawn`).
    """
    runs = [play(recording, drawn(recording, random.Random(seed))) for seed in range(count)]
    waits = [mean_waits(recording, run) for run in runs]
    alike = [equal_starts(one, other) for one, other in combinations(runs, 2)]
    errors = [largest_error(one, other) for one, other in combinations(waits, 2)]
    theirs = recording.starts
    to_recording = [equal_starts(theirs, run) for run in runs]
    print(
        f"{recording.name}: {count} runs; of two runs, {100 * median(alike):.1f} % of the starts are equal"
        f" ({100 * min(alike):.1f} to {100 * max(alike):.1f} %), largest error of a mean wait"
        f" {100 * median(errors):.2f} % ({100 * min(errors):.2f} to {100 * max(errors):.2f} %);"
        f" equal to the recording {100 * median(to_recording):.1f} %"
        f" ({100 * min(to_recording):.1f} to {100 * max(to_recording):.1f} %)"
    )
    for group, wait in sorted(mean_waits(recording, theirs).items()):
        some = [one[group] for one in waits]
        print(
            f"    {' '.join(group)}: recorded {wait:.1f} s, runs {mean(some):.1f} s"
            f" ({min(some):.1f} to {max(some):.1f} s)"
        )


def compare(recording: Recording, ours: list[JobStart], verbose: int) -> None:
    """Print how many starts of our simulation equal those of a recording.

    The mean waits are printed, too.
    """
    both = pairs(recording.starts, ours)
    same_time = sum(other is not None and int(one.time) == int(other.time) for one, other in both)
    real, own = mean_waits(recording, recording.starts), mean_waits(recording, ours)
    print(
        f"{recording.name}: {sum(equal(*some) for some in both)}/{len(both)} starts at the same second on the"
        f" same nodes ({same_time} at the same second), ours {len(ours)} starts, largest error of a mean wait"
        f" {100 * largest_error(real, own):.2f} %"
    )
    for one, other in [some for some in both if not equal(*some)][:verbose]:
        print("    first:", one, "ours", other)
    if verbose:
        for group in sorted(own):
            print(f"    {' '.join(group)}: {real.get(group, 0):.0f} s, ours {own[group]:.0f} s")


def main() -> None:
    """Simulate the chosen recordings and print the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--model", action="store_true", help="model the delay of requests after completions")
    how.add_argument("--engine", action="store_true", help="run the simulator, with the same model")
    how.add_argument("--spread", type=int, metavar="N", help="compare N runs with random delays and phases")
    parser.add_argument("--verbose", type=int, default=2, help="differences to print per recording")
    options = parser.parse_args()
    for recording in map(Recording, options.folders or recordings()):
        if options.spread:
            spread(recording, options.spread)
            continue
        timing = Timing() if options.model else recorded_timing(recording)
        compare(recording, play_on_engine(recording) if options.engine else play(recording, timing), options.verbose)


if __name__ == "__main__":
    main()
