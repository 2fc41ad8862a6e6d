"""Writes docs/papers.md from what the papers' entries are computed to: python docs/make_papers.py > docs/papers.md"""

import os
import sys

from pipistrelle.studies.papers.bench import SIZES, Bench
from pipistrelle.studies.papers.collection import chosen_entries, get_paper, make_entries, paper_ids
from pipistrelle.studies.papers.telling import markdown

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
- An entry is data in a file a paper, in `studies/papers`: what the paper has and where, what computes ours, a
  tolerance, a reason.
- It needs the extras `report` and `study`.

In Python:

```python
from pipistrelle.studies.papers.bench import Bench
from pipistrelle.studies.papers.collection import chosen_entries, get_paper, make_entries

chosen = chosen_entries([get_paper("004")], ["table-2"])
(result,) = make_entries(Bench.alone(), chosen)
print(result.verdict, [round(row.ours, 1) for row in result.finding.rows])
```

<!-- output -->
```text
reproduced [11.0, 13.8, 18.5, 27.9, 57.0]
```

What follows is written by `python docs/make_papers.py`, at the small size and without real logs; a test runs it
again.
"""


def page() -> str:
    """Return the whole page: all papers at the small size, without real logs; it takes some minutes."""
    bench = Bench(SIZES["small"], jobs=len(os.sched_getaffinity(0)), tell=lambda text: None)
    chosen = chosen_entries([get_paper(number) for number in paper_ids()], [])
    return HEAD + markdown(list(make_entries(bench, chosen)))


if __name__ == "__main__":
    sys.stdout.write(page())
