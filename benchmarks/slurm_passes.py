"""Compare passes of our scheduler ``slurm`` with recordings of slurmctld.

    python benchmarks/slurm_passes.py [FOLDER ...] [--verbose N]

Without folders, those in PIPISTRELLE_SLURM22 (default: ``../shared/slurm22`` beside the checkout) are compared.
`pipistrelle.runs.recordings.passes` says what is compared.
"""

import argparse
import os
from pathlib import Path

from pipistrelle.runs.recordings.passes import Player
from pipistrelle.runs.recordings.recording import Recording

HERE = Path(__file__).resolve()
RECORDINGS = Path(os.environ.get("PIPISTRELLE_SLURM22", HERE.parents[2] / "shared" / "slurm22"))


def recordings(folder: Path = RECORDINGS) -> list[Path]:
    """Return the folders below ``folder`` that hold a recording."""
    return sorted(path.parent for path in folder.glob("*/decisions.log.xz"))


def main() -> None:
    """Replay the chosen recordings and print how many results are equal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--verbose", type=int, default=3, help="differences to print per recording")
    options = parser.parse_args()
    for folder in options.folders or recordings():
        player = Player(Recording(folder))
        player.play()
        counts = player.counts
        print(
            f"{folder.name}: main passes {counts['main passes equal']}/{counts['main passes']},"
            f" backfill passes {counts['backfill passes equal']}/{counts['backfill passes']},"
            f" outcomes {counts['outcomes equal']}/{counts['outcomes']}"
            f" ({counts['outcomes equal with nodes']} with nodes and end),"
            f" priorities {counts['priorities equal']}/{counts['priorities']},"
            f" starts on the same nodes {counts['starts on the same nodes']}/{counts['starts']},"
            f" same CPUs {counts['allocations with the same CPUs']}/{counts['allocations']}"
        )
        for one in player.differences[: options.verbose]:
            print(f"    {one.time:g} {one.text}")


if __name__ == "__main__":
    main()
