"""Write the tables of a run as Parquet beside the CSV, with fixed column types."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.whole import whole_file
from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outputs.folder import OUTPUT_FILES

if TYPE_CHECKING:
    import pyarrow

#: text columns, and integer columns; all other columns are doubles
_TEXTS: Final = frozenset(
    (
        *("job_id", "workload_name", "profile", "final_state", "allocated_resources", "metadata", "batsim_version"),
        *("user", "group", "account", "queue", "qos", "decision", "alloc", "verdict", "why", "message"),
        *("pool", "cause", "first_job_id", "job_name", "allocated_nodes", "takes", "nodes"),
    )
)
_WHOLE: Final = frozenset(
    (
        *("requested_number_of_resources", "success", "waiting_jobs", "waiting_units", "running_jobs", "attempt"),
        *(
            "failures",
            "maintenances",
            "planned",
            "ended",
            "node",
            "retried",
            "nodes_lost",
            "failures_survived",
            "dumps",
        ),
        *("reads", "requested_memory", "allocated_memory", "node_memory"),
    )
)
#: number of bytes of a CSV file to read at a time
_BLOCK: Final = 1 << 24


class NoParquet(PipistrelleError):
    """Parquet output was requested but pyarrow is not installed."""


def import_arrow() -> Any:
    """Import pyarrow; raise NoParquet if it is not installed."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise NoParquet(
            "Parquet files need pyarrow", where="--format parquet", hint="Install it: pip install 'pipistrelle[study]'."
        ) from None
    return pyarrow


def write_parquet(folder: Path) -> list[Path]:
    """Write each table of a run as Parquet beside the CSV; return the new files.

    An empty cell of a number column becomes null. With one version of pyarrow, equal tables give equal bytes.

    Raises:
        NoParquet: pyarrow is not installed.
        OutputFailed: a file cannot be read or written.
    """
    tables = (folder / name for name in OUTPUT_FILES if name.endswith(".csv"))
    return [_written(path, path.with_suffix(".parquet")) for path in tables if path.is_file()]


def read_table(path: Path) -> "pyarrow.Table":
    """Read an output table (CSV) of a run, with the column types of `write_parquet`.

    Raises:
        NoParquet: pyarrow is not installed.
        OutputFailed: the file cannot be read.
    """
    arrow = import_arrow()
    try:
        with _opened(path, arrow) as reader:
            return reader.read_all()
    except (OSError, arrow.ArrowException) as error:
        raise OutputFailed(f"cannot read the table ({error})", where=str(path)) from None


def _opened(source: Path, arrow: Any) -> Any:
    """Open a CSV file with pyarrow (``arrow``).

    Return a reader that gives its rows in batches of typed columns.
    """
    with source.open(encoding="utf-8") as file:
        names = file.readline().rstrip("\n").split(",")
    return arrow.csv.open_csv(
        source,
        read_options=arrow.csv.ReadOptions(block_size=_BLOCK, use_threads=False),
        parse_options=arrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow.csv.ConvertOptions(
            column_types={name: _type(name, arrow) for name in names}, null_values=[""], strings_can_be_null=False
        ),
    )


def _written(source: Path, target: Path) -> Path:
    arrow = import_arrow()
    try:
        with (
            _opened(source, arrow) as reader,
            whole_file(target) as new,
            arrow.parquet.ParquetWriter(new, reader.schema, compression="zstd") as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)
    except (OSError, arrow.ArrowException) as error:
        raise OutputFailed(f"cannot write the table as Parquet ({error})", where=str(target)) from None
    return target


def _type(name: str, arrow: Any) -> Any:
    if name in _TEXTS:
        return arrow.string()
    return arrow.int64() if name in _WHOLE or name.startswith("nb_") else arrow.float64()
