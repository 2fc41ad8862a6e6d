"""Read the resources of a pool's nodes from a platform file.

A machine's licences are read, too.
"""

from collections.abc import Mapping
from typing import Any, Final

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import did_you_mean, shown
from pipistrelle.protocol.resources.amounts import (
    CORES,
    GPU,
    MEMORY,
    MILLI,
    NAME,
    AmountError,
    amount_text,
    parse_amount,
    parse_count,
)
from pipistrelle.protocol.resources.nodes import NodeResources

#: keys of the table of a pool's GPUs
_GPU_KEYS: Final = ("count", "model", "share")
#: the most resources of a node besides GPUs
_MOST_RESOURCES: Final = 32


def read_resources(written: Mapping[str, Any], where: str) -> NodeResources:
    """Return what each node of a pool has, from the pool's table ``resources``.

    Args:
        written: {resource: amount}, such as ``{"cores": 64, "memory": "256 GiB", "gpu": {"count": 4}}``. The GPUs are a
            number, or a table with ``count``, ``model`` and ``share``, the number of parts of a GPU.
        where: the table's place in messages, such as ``pools[0].resources``.

    Raises:
        PlatformError: a name or an amount is invalid, a node has no cores, or there are more than 32 resources.
    """
    amounts: dict[str, int] = {}
    gpus: dict[str, Any] = {}
    for name, value in written.items():
        place = f"{where}.{name}"
        if not isinstance(name, str) or NAME.fullmatch(name) is None:
            raise PlatformError(
                "a resource's name is not valid",
                where=where,
                expected="1 to 64 ASCII letters, digits, '_', '.', ':', '/', '@' or '-', a letter or digit first",
                found=shown(name),
            )
        if name == GPU:
            gpus = _gpus(value, place)
        else:
            amounts[name] = _read(name, value, place)
    if not amounts.get(CORES):
        raise PlatformError("nodes with resources have no cores", where=where, expected=f"{CORES} = a number above 0")
    if len(amounts) > _MOST_RESOURCES:
        raise PlatformError(
            "a pool has too many resources", where=where, expected=f"at most {_MOST_RESOURCES}", found=str(len(amounts))
        )
    return NodeResources(amounts, **gpus)


def written_resources(has: NodeResources) -> dict[str, Any]:
    """Return a node's resources as a table of a platform file.

    This is the inverse of `read_resources`.
    """
    written: dict[str, Any] = {}
    for name, amount in has.amounts.items():
        text = amount_text(name, amount)
        written[name] = text if name == MEMORY else float(text) if "." in text else int(text)
    if has.gpus:
        model = {"model": has.gpu_model} if has.gpu_model else {}
        parts = {"share": has.gpu_parts} if has.gpu_parts != MILLI else {}
        written[GPU] = {"count": has.gpus, **model, **parts}
    return written


def resources_text(has: NodeResources) -> str:
    """Return a text that describes a node's resources.

    An example is ``64 cores, 1 TiB, 4 GPUs a100``.
    """
    parts = [f"{amount_text(CORES, has.amounts.get(CORES, 0))} cores"]
    if MEMORY in has.amounts:
        parts.append(amount_text(MEMORY, has.amounts[MEMORY]))
    if has.gpus:
        model = f" {has.gpu_model}" if has.gpu_model else ""
        parts.append(f"{has.gpus} GPU{'s' * (has.gpus > 1)}{model}")
    parts += [f"{amount} {name}" for name, amount in has.amounts.items() if name not in (CORES, MEMORY)]
    return ", ".join(parts)


def check_licenses(licenses: Mapping[str, int], where: str) -> None:
    """Raise PlatformError if a licence is invalid.

    Its name may be invalid, or its number negative or too large.
    """
    for name, count in licenses.items():
        if NAME.fullmatch(name) is None:
            raise PlatformError("a licence's name is not valid", where=where, found=shown(name))
        _read(name, count, f"{where}.{name}")


def _read(name: str, value: object, place: str) -> int:
    try:
        return parse_amount(name, value)
    except AmountError as error:
        raise error.at(place, PlatformError) from None


def _gpus(value: object, place: str) -> dict[str, Any]:
    table = {"count": value} if isinstance(value, int | str) else value
    if not isinstance(table, dict):
        raise PlatformError(
            "the GPUs of a pool cannot be read",
            where=place,
            expected="a number, or { count = 4, model = 'a100', share = 1000 }",
            found=shown(value),
        )
    for key in table:
        if key not in _GPU_KEYS:
            hint = did_you_mean(str(key), list(_GPU_KEYS))
            raise PlatformError(f"unknown key {shown(key)}", where=place, expected=", ".join(_GPU_KEYS), hint=hint)
    try:
        count = parse_count(table.get("count"), "the number of GPUs")
        parts = parse_count(table.get("share", MILLI), "the number of parts of a GPU")
    except AmountError as error:
        raise error.at(place, PlatformError) from None
    model = table.get("model", "")
    if count > MILLI or not 1 <= parts <= MILLI or MILLI % parts:
        raise PlatformError(
            "a number of GPUs or of their parts is out of range",
            where=place,
            expected=f"count from 0 to {MILLI}, share from 1 to {MILLI} and a divisor of {MILLI}",
            found=f"count {count}, share {parts}",
        )
    if not isinstance(model, str) or (model and NAME.fullmatch(model) is None):
        raise PlatformError("a GPU model's name is not valid", where=f"{place}.model", found=shown(model))
    return {"gpus": count, "gpu_model": model if count else "", "gpu_parts": parts}
