"""Write docs/explanation/papers.md from computed results; keep its beginning.

Run it with: python docs/make_papers.py $PIPISTRELLE_TRACES
"""

import os
import sys
from pathlib import Path

from pipistrelle.papers.bench import SIZES, Bench
from pipistrelle.papers.collection import chosen_entries, get_paper, make_entries, paper_ids
from pipistrelle.papers.telling import logged, markdown

PAGE = Path(__file__).resolve().parent / "explanation" / "papers.md"
LOGS = """
## With real logs

These entries of the papers need real logs: LANL's log of Grizzly of January 2018, the log KTH-SP2 of the Parallel
Workloads Archive, and the record of Titan's GPUs (TitanGPULife). They were computed with `--size small`. A dash in the
column "paper" means that the paper gives no number:

"""


def head() -> str:
    """Return the beginning of the page, which is written by hand."""
    return PAGE.read_text(encoding="utf-8").partition("\n## ")[0]


def page(traces: Path) -> str:
    """Return the page of all papers.

    First come the results at small size without real logs, then the entries that need real logs.
    """
    size, jobs = SIZES["small"], len(os.sched_getaffinity(0))
    chosen = chosen_entries([get_paper(number) for number in paper_ids()], [])
    with_logs = [(paper, entry) for paper, entry in chosen if entry.needs]
    plain = markdown(list(make_entries(Bench(size, jobs=jobs), chosen)))
    return head() + plain + LOGS + logged(list(make_entries(Bench(size, traces=traces, jobs=jobs), with_logs)))


if __name__ == "__main__":
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
