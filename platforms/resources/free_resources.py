"""Record the free resources of shared nodes.

Requests take them and give them back.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.resources.node_request import OneNodeRequest
from pipistrelle.platforms.resources.shared_nodes import Amounts, SharedNodes
from pipistrelle.protocol.base.errors import shown
from pipistrelle.protocol.resources.amounts import GPU, MILLI, amount_text


class FreeResources:
    """The free resources of each node; at first, all that the node has.

    Only the methods change these arrays.

    Attributes:
        nodes: what the nodes have.
        amounts: shape (nodes, resources), free amounts.
        gpus: shape (nodes, most GPUs of a node), free thousandths of each GPU.
        holders: shape (nodes, 1 + most GPUs of a node): how many requests hold a share of one GPU (column 0), and how
            many hold k GPUs (column k).
        changed: shape (nodes,): the value of `changes` at each node's last change.
        changes: the number of changes so far.
        licenses: {licence: free number}.
    """

    def __init__(self, nodes: SharedNodes) -> None:
        self.nodes = nodes
        self.amounts: Amounts = nodes.amounts.copy()
        self.gpus: Amounts = nodes.gpus.copy()
        self.holders: Amounts = np.zeros((len(nodes), 1 + nodes.gpus.shape[1]), dtype=np.int64)
        self.changed: Amounts = np.zeros(len(nodes), dtype=np.int64)
        self.changes = 0
        self.licenses = dict(nodes.licenses)

    def fits(self, request: OneNodeRequest, among: Amounts | None = None) -> NDArray[np.bool_]:
        """Return whether each node has enough free resources for a request now.

        Args:
            among: indices of the nodes to test; None: all nodes. The result has one value for each tested node.
        """
        every = slice(None) if among is None else among
        fits: NDArray[np.bool_] = np.all(self.amounts[every] >= request.amounts, axis=1)
        if request.gpus:
            fits &= (self.gpus[every] >= request.share).sum(axis=1) >= request.gpus
            if request.models is not None:
                fits &= np.isin(self.nodes.model_of[every], request.models)
        return fits

    def take(self, node: int, request: OneNodeRequest, gpus: Sequence[int] = ()) -> None:
        """Take the resources of a request from one node, and from the given GPUs.

        Raises:
            PlatformError: if the node has too little free; the message names node, resource, requested and free amount.
                Nothing is taken then.
        """
        numbers = self._numbers(node, request, gpus)
        for name, asked, free in zip(self.nodes.resources, request.amounts, self.amounts[node].tolist(), strict=True):
            if asked > free:
                self._refuse(node, name, asked, free)
        for number, free in zip(numbers, self.gpus[node, numbers].tolist(), strict=True):
            if request.share > free:
                self._refuse(node, f"GPU {number}", request.share, free)
        self._change(node, request, numbers, -1)

    def give_back(self, node: int, request: OneNodeRequest, gpus: Sequence[int] = ()) -> None:
        """Free the resources that `take` took for a request.

        Raises:
            PlatformError: if more would be free on the node than it has. Nothing is freed then.
        """
        numbers = self._numbers(node, request, gpus)
        after = self.amounts[node] + request.amounts
        gpus_after = self.gpus[node, numbers] + request.share
        held = self.holders[node, self._kind(request)] if request.gpus else 1
        if (after > self.nodes.amounts[node]).any() or (gpus_after > self.nodes.gpus[node, numbers]).any() or not held:
            raise PlatformError(f"node {shown(self.nodes.name(node))} gets back more than was taken of it")
        self._change(node, request, numbers, 1)

    def take_rows(self, nodes: Amounts, amounts: Amounts, gpus: Amounts) -> bool:
        """Take amounts of resources from several nodes if all have enough free.

        Return whether the amounts were taken.

        Args:
            nodes: shape (n,), each node once.
            amounts: shape (n, resources).
            gpus: thousandths of each GPU, shape (n, most GPUs of a node).
        """
        if (self.amounts[nodes] < amounts).any() or (gpus.any() and (self.gpus[nodes] < gpus).any()):
            return False
        self._change_rows(nodes, amounts, gpus, -1)
        return True

    def give_back_rows(self, nodes: Amounts, amounts: Amounts, gpus: Amounts) -> None:
        """Free the amounts that `take_rows` took with the same arguments."""
        self._change_rows(nodes, amounts, gpus, 1)

    def _change_rows(self, nodes: Amounts, amounts: Amounts, gpus: Amounts, sign: int) -> None:
        self.amounts[nodes] += sign * amounts
        self.changes += 1
        self.changed[nodes] = self.changes
        if gpus.any():
            self.gpus[nodes] += sign * gpus
            counts = (gpus > 0).sum(axis=1)
            kinds = np.where((counts == 1) & (gpus.max(axis=1) < MILLI), 0, counts)
            self.holders[nodes[counts > 0], kinds[counts > 0]] -= sign

    def missing_license(self, licenses: Mapping[str, int]) -> str | None:
        """Return the first requested licence of which too few are free.

        Return None if all suffice.
        """
        return next((name for name, count in licenses.items() if count > self.licenses.get(name, 0)), None)

    def take_licenses(self, licenses: Mapping[str, int]) -> None:
        """Take free licences for a job; ``licenses`` is {licence: number}.

        Raises:
            PlatformError: if too few are free; the message names the licence, the requested and the free number.
                Nothing is taken then.
        """
        name = self.missing_license(licenses)
        if name is not None:
            raise PlatformError(
                f"too few licences {shown(name)} are free",
                expected=f"at least {licenses[name]}",
                found=str(self.licenses.get(name, 0)),
            )
        for one, count in licenses.items():
            self.licenses[one] -= count

    def return_licenses(self, licenses: Mapping[str, int]) -> None:
        """Free licences that `take_licenses` took."""
        for name, count in licenses.items():
            self.licenses[name] += count

    def check(self) -> None:
        """Assert that no free amount is negative, or more than its node has in total."""
        assert (self.amounts >= 0).all()
        assert (self.amounts <= self.nodes.amounts).all()
        assert (self.gpus >= 0).all()
        assert (self.gpus <= self.nodes.gpus).all()
        assert (self.holders >= 0).all()
        assert all(0 <= count <= self.nodes.licenses[name] for name, count in self.licenses.items())

    def state(self) -> dict[str, Any]:
        """Return the free amounts as plain values, for `restore`."""
        arrays = {name: getattr(self, name).tolist() for name in ("amounts", "gpus", "holders")}
        return {**arrays, "licenses": dict(self.licenses)}

    def restore(self, state: dict[str, Any]) -> None:
        """Set the free amounts to those in ``state``.

        `FreeResources.state` returned this value.
        """
        for name in ("amounts", "gpus", "holders"):
            array: Amounts = getattr(self, name)
            array[...] = np.array(state[name], dtype=np.int64).reshape(array.shape)
        self.licenses = dict(state["licenses"])
        self.changes += 1
        self.changed[:] = self.changes

    def _kind(self, request: OneNodeRequest) -> int:
        return 0 if request.is_share else request.gpus

    def _numbers(self, node: int, request: OneNodeRequest, gpus: Sequence[int]) -> list[int]:
        """Return ``gpus`` as a list.

        Raise PlatformError if the node lacks one, or their number is not the requested one.
        """
        numbers = list(gpus)
        count = int((self.nodes.gpus[node] > 0).sum())
        if len(set(numbers)) != request.gpus or len(numbers) != request.gpus:
            raise PlatformError(
                "a request takes other GPUs than it asks for", expected=f"{request.gpus} GPUs", found=shown(numbers)
            )
        if any(not 0 <= number < count for number in numbers):
            raise PlatformError(
                f"node {shown(self.nodes.name(node))} does not have these GPUs",
                expected=f"numbers below {count}",
                found=shown(numbers),
            )
        return numbers

    def _refuse(self, node: int, resource: str, asked: int, free: int) -> None:
        raise PlatformError(
            f"node {shown(self.nodes.name(node))} has too little free of {resource}",
            expected=f"at least {_text(resource, asked)}",
            found=_text(resource, free),
        )

    def _change(self, node: int, request: OneNodeRequest, numbers: list[int], sign: int) -> None:
        self.amounts[node] += sign * np.array(request.amounts, dtype=np.int64)
        if numbers:
            self.gpus[node, numbers] += sign * request.share
            self.holders[node, self._kind(request)] -= sign
        self.changes += 1
        self.changed[node] = self.changes


def _text(resource: str, amount: int) -> str:
    """Return an amount of a resource as text.

    For a resource such as ``GPU 3``, the amount is a fraction of a GPU.
    """
    return f"{amount / MILLI:g}" if resource.startswith("GPU ") else amount_text(resource, amount)


def amounts_of(of: SharedNodes | FreeResources) -> dict[str, Amounts]:
    """Return {resource: amount on each node, shape (nodes,)}.

    The amounts are what the nodes have (for `SharedNodes`), or what is free (for `FreeResources`).
    """
    nodes = of if isinstance(of, SharedNodes) else of.nodes
    found = {name: of.amounts[:, column] for column, name in enumerate(nodes.resources)}
    return {**found, GPU: of.gpus.sum(axis=1)} if nodes.gpus.any() else found
