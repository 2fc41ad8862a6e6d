"""Update the table in docs/explanation/slurm-accuracy.md from recordings of the real slurmctld.

Run it with: python docs/make_slurm_accuracy.py
"""

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import slurm_passes  # noqa: E402 - the benchmarks are scripts, not a package
import slurm_runs  # noqa: E402

PAGE = ROOT / "docs" / "explanation" / "slurm-accuracy.md"
BEGIN: Final = "<!-- made by docs/make_slurm_accuracy.py -->"
END: Final = "<!-- made by docs/make_slurm_accuracy.py: end -->"
_HEAD: Final = (
    "| recording | main passes | backfill outcomes | priorities | starts of a pass | starts of a run, delays recorded "
    "| starts of a run, delays modelled | largest error of a mean wait |\n|---|---|---|---|---|---|---|---|"
)


def row(folder: Path) -> str:
    """Return a recording's row of the table."""
    player = slurm_passes.Player(folder)
    player.play()
    counts = player.counts
    with contextlib.redirect_stdout(io.StringIO()):
        recorded = slurm_runs.compare(folder, slurm_runs.play(folder, model=False), 0)
        modelled = slurm_runs.compare(folder, slurm_runs.play_on_engine(folder), 0)
    cells = [
        folder.name,
        _of(counts["main passes equal"], counts["main passes"]),
        _of(counts["outcomes equal"], counts["outcomes"]),
        _of(counts["priorities equal"], counts["priorities"]),
        _of(counts["starts on the same nodes"], counts["starts"]),
        _of(*recorded[:2]),
        _of(*modelled[:2]),
        f"{100 * modelled[2]:.2f} %",
    ]
    return f"| {' | '.join(cells)} |"


def _of(equal: int, count: int) -> str:
    return f"{equal:,} of {count:,} ({100 * equal / max(1, count):.1f} %)"


def table(folders: list[Path]) -> str:
    """Return the table, with one row per recording."""
    return "\n".join([_HEAD, *map(row, folders)])


def written(text: str, made: str) -> str:
    """Return the page's text with its table replaced by ``made``."""
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", f"{BEGIN}\n\n{made}\n\n{END}", text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(), table(slurm_passes.recordings())))
