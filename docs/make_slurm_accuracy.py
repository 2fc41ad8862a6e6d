"""Update the table in docs/explanation/slurm-accuracy.md.

It is computed from recordings of the real slurmctld. Run it with: python docs/make_slurm_accuracy.py
"""

import os
import re
from pathlib import Path
from typing import Final

from pipistrelle.runs.recordings.check import check_recording

ROOT = Path(__file__).resolve().parents[1]
RECORDINGS = Path(os.environ.get("PIPISTRELLE_SLURM22", ROOT.parent / "shared" / "slurm22"))
PAGE = ROOT / "docs" / "explanation" / "slurm-accuracy.md"
BEGIN: Final = "<!-- made by docs/make_slurm_accuracy.py -->"
END: Final = "<!-- made by docs/make_slurm_accuracy.py: end -->"
_HEAD: Final = (
    "| recording | main passes | backfill outcomes | priorities | starts of a pass | starts of a run, delays recorded "
    "| starts of a run, delays modelled | largest error of a mean wait |\n|---|---|---|---|---|---|---|---|"
)
_COLUMNS: Final = (
    "main passes",
    "backfill outcomes",
    "priorities",
    "starts of a pass",
    "starts of a run, delays recorded",
    "starts of a run, delays modelled",
)


def row(folder: Path) -> str:
    """Return a recording's row of the table."""
    found = check_recording(folder)
    compared = {one.what: one for one in found.agreements}
    cells = [found.name, *(_of(compared[what].equal, compared[what].compared) for what in _COLUMNS)]
    cells.append(f"{100 * found.runs[-1].largest_error:.2f} %")
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
    folders = sorted(path.parent for path in RECORDINGS.glob("*/decisions.log.xz"))
    PAGE.write_text(written(PAGE.read_text(), table(folders)))
