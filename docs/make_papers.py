"""Writes docs/papers.md from what the papers' entries are computed to, with the folder of the real logs.

python docs/make_papers.py $PIPISTRELLE_TRACES > docs/papers.md
"""

import os
import sys
from pathlib import Path

from pipistrelle.papers.bench import SIZES, Bench
from pipistrelle.papers.collection import chosen_entries, get_paper, make_entries, paper_ids
from pipistrelle.papers.telling import logged, markdown

HEAD = """# Five papers made anew

Pipistrelle was made with five papers on the table. `pipistrelle papers` computes each of their tables and figures
that can be computed, and shows the paper's numbers beside ours:

```console
$ pipistrelle papers 001 --only table-4.8 --only p-values -q -o ours
1 reproduced, 1 differs
...
ours/001-table-4.8-p-values.html
ours/001-table-4.8-p-values.json
ours/001-table-4.8-p-values.csv
```

| outcome | what it means |
|---|---|
| reproduced | all figures that are compared agree, within the entry's tolerance or the 95 % interval of ours |
| differs | some do not; the entry says why, and figures that do agree count, too |
| made anew | computed, but the paper has no number of it that could be read: the texts that we have lack the plots |
| not computable | data that nobody has published, or nothing that is computed |
| left out | a real log that it needs is not there |

- `pipistrelle papers` makes all five; `papers 000 004` two of them; `--only ENTRY` one entry; `--list` tells which
  there are. The folder (`-o`) gets a page a paper, which needs no network, and all figures with what charts draw as
  `papers.json` and `papers.csv`.
- `--size small`, the default, takes about a minute a paper on two processors. `--size full` has as much as the
  papers: 1,000 replicas of each of the 138 points of paper 000 (7 hours of one processor), 1,824 hours of paper 001's
  simulation three times, twelve months of failures of paper 004.
- What is interrupted goes on when the same command is given again: trials are kept as those of [studies](studies.md),
  other parts in a journal, both in the folder's `kept`. It is for one version of Pipistrelle; another one asks for
  another folder.
- Entries that need real logs look for them in `--traces DIR`, or where the variable `PIPISTRELLE_TRACES` says.
  Without they are left out; asked for by `--only` they are an error.
- What the papers print, with tolerances and reasons, is data: `papers/library` has a TOML file for each paper. The
  code that computes ours is in `papers`.
- It needs the extras `report` and `study`.

In Python:

```python
from pipistrelle.papers.bench import Bench
from pipistrelle.papers.collection import chosen_entries, get_paper, make_entries

chosen = chosen_entries([get_paper("004")], ["table-2"])
(result,) = make_entries(Bench.alone(), chosen)
print(result.verdict, [round(row.ours, 1) for row in result.finding.rows])
```

<!-- output -->
```text
reproduced [11.0, 13.8, 18.5, 27.9, 57.0]
```

What follows is written by `python docs/make_papers.py TRACES`, at the small size: first without real logs, at the
end with them; a test runs both again.
"""


LOGS = """
## With real logs

The entries that need them, at the small size, with LANL's January 2018 of Grizzly, KTH-SP2 of the Parallel
Workloads Archive, and TitanGPULife:

"""


def page(traces: Path) -> str:
    """Return the whole page: all papers at the small size without real logs, then the entries that need some."""
    size, jobs = SIZES["small"], len(os.sched_getaffinity(0))
    chosen = chosen_entries([get_paper(number) for number in paper_ids()], [])
    with_logs = [(paper, entry) for paper, entry in chosen if entry.needs]
    plain = markdown(list(make_entries(Bench(size, jobs=jobs), chosen)))
    return HEAD + plain + LOGS + logged(list(make_entries(Bench(size, traces=traces, jobs=jobs), with_logs)))


if __name__ == "__main__":
    sys.stdout.write(page(Path(sys.argv[1])))
