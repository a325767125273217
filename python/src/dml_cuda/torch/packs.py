"""A pack that keeps its padded batch, and is packed when it is read.

`packing.py` makes such packs, and the RNNs of `rnn.py` take the padded batch from them. Everything else finds PyTorch's
PackedSequence: whoever reads `data`, an item or the tuple gets what PyTorch would have packed, with its gradients, when
the pack was made."""

import contextlib
import copy
import functools
import sys
import warnings
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.nn.utils import rnn as pytorch
from torch.nn.utils.rnn import PackedSequence

from ._private import exists, private
from .operators import in_transform
from .rnn_choice import Batch

# PyTorch's functions as they were imported: a program may put this package's in their place.
PACK, PAD = pytorch.pack_padded_sequence, pytorch.pad_packed_sequence

_DISABLE, _TRACING = "torch._compile._disable_dynamo", "torch._guards.TracingContext"


def uncompiled(function: Any) -> Any:
    """A function that torch.compile calls as it is, with a graph break."""
    disabled = private(_DISABLE)(function) if exists(_DISABLE) else function

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        # Disabling loads the compiler, which takes seconds, and needs a user's name and a folder.
        return (disabled if "torch._dynamo" in sys.modules else function)(
            *given, **named
        )

    called._torchdynamo_disable = True  # type: ignore[attr-defined]
    called._torchdynamo_disable_msg = (  # type: ignore[attr-defined]
        "compiled, an RNN with lengths would be a loop over all steps: leave fullgraph=True out, and export with strict=False"
    )
    return called


_CONVERSIONS = (
    "to cpu cuda double float half long int short char byte pin_memory".split()
)


def _as_it_is(saved: torch.Tensor) -> torch.Tensor:
    return saved


def _class_of_packs() -> type:
    """PackedSequence. But torch.compile, which would read the items of that class's tuple, breaks its graph."""
    if (
        "torch._dynamo" in sys.modules
        and exists(_TRACING)
        and private(_TRACING).try_get() is not None
    ):
        raise private("torch._dynamo.exc.Unsupported")(
            "what reads a pack of dml_cuda.torch from outside of a compiled function is not compiled: pack inside of it, "
            "or pass torch.nn.utils.rnn.PackedSequence(*pack)"
        )
    return PackedSequence


class Padded:
    """A PackedSequence that keeps the padded batch: [T, B, ...], and the lengths, on the host or on its device. Reading
    `data` packs the batch, and from then on this is a pack like PyTorch's, because data may be changed. It is no tuple,
    whose items C code would read without asking, but isinstance takes it for PyTorch's class."""

    __class__ = property(lambda self: _class_of_packs())  # type: ignore[assignment]

    padded: torch.Tensor
    """The padded batch. Once this is packed, only its device counts: `packed_like` keeps the packed data here."""
    lengths: torch.Tensor
    is_sorted: bool
    _has_gradients: bool
    _packed: PackedSequence  # once it is packed
    ran = False
    """Whether a call has taken the padded batch. The gradient of `data` that is read later has no part of that call."""

    def __new__(cls, data: Any, *others: Any, **named: Any) -> Any:
        """PyTorch's pack, for what takes tuples apart and makes them again: a DataLoader passes the parts, and skorch
        one iterable of parts, which it may have moved to a GPU."""
        if not (others or named or isinstance(data, torch.Tensor)):
            data, sizes, *others = data  # type: ignore[assignment]
            others = [sizes.cpu(), *others]  # type: ignore[assignment]
        return PackedSequence(data, *others, **named)

    _fields, _make = PackedSequence._fields, PackedSequence._make

    @classmethod
    def keep(
        cls,
        padded: torch.Tensor,
        lengths: torch.Tensor,
        is_sorted: bool,
        batch: Batch | None = None,
    ) -> "Padded":
        """batch: known to be that of the lengths, or None."""
        self: Padded = object.__new__(cls)
        self.padded, self.lengths, self.is_sorted = padded, lengths, is_sorted
        if batch is not None:
            self.batch = batch
        self._has_gradients = torch.is_grad_enabled()
        return self

    def like(self, padded: torch.Tensor) -> "Padded":
        """Another batch of the same lengths."""
        return self.keep(padded, self.lengths, self.is_sorted, vars(self).get("batch"))

    def packed_like(self, packed: PackedSequence) -> "Padded":
        """A batch of the same lengths that is packed."""
        pack = self.like(packed.data)
        pack._packed = packed
        return pack

    @property
    def is_kept(self) -> bool:
        """Whether the padded batch still is what this pack holds."""
        return "_packed" not in vars(self)

    def pack(self) -> PackedSequence:
        """The packed batch, as it would be had it been packed when this pack was made, whoever reads it first."""
        if not self.is_kept:
            return self._packed
        leaves_inference = (
            torch.is_inference_mode_enabled() and not self.padded.is_inference()
        )
        is_same_mode = (
            torch.is_grad_enabled() is self._has_gradients and not leaves_inference
        )
        if is_same_mode and not self.padded.requires_grad:
            packed = self._pack_here()
        else:
            packed = self._pack_in_its_mode(leaves_inference)
        # What is made inside of a transform ends with it. Threads get one result.
        return packed if in_transform() else vars(self).setdefault("_packed", packed)

    def _read(self) -> PackedSequence:
        """`pack` for a caller, whose tensors may be asked for gradients."""
        if (
            self.ran
            and self.is_kept
            and self.padded.requires_grad
            and torch.is_grad_enabled()
        ):
            words = "a call took this pack before its data was read: the gradient of data has no part of that call"
            warnings.warn(f"{words}. Read data before the call", stacklevel=3)
        return self.pack()

    def _pack_here(self) -> PackedSequence:
        return PACK(self.padded, self.lengths.cpu(), enforce_sorted=self.is_sorted)

    def _pack_in_its_mode(self, leaves_inference: bool) -> PackedSequence:
        """Packs in the mode in which this pack was made."""
        with contextlib.ExitStack() as modes:
            # A checkpoint must not count what is saved here. Where hooks are forbidden there is none.
            with contextlib.suppress(RuntimeError):
                if self.padded.requires_grad:
                    modes.enter_context(
                        torch.autograd.graph.saved_tensors_hooks(_as_it_is, _as_it_is)
                    )
            if leaves_inference:
                modes.enter_context(torch.inference_mode(False))
            modes.enter_context(torch.set_grad_enabled(self._has_gradients))
            return self._pack_here()

    @functools.cached_property
    def batch(self) -> Batch | None:
        """What an RNN's form is chosen by; None if the lengths are on a GPU."""
        return (
            Batch.of(len(self.padded), self.lengths.tolist())
            if self.lengths.is_cpu
            else None
        )

    @functools.cached_property
    def _of_lengths(self) -> PackedSequence:
        """A pack with the same fields but `data`."""
        if not self.is_kept:
            return self._packed
        batch = self.padded.detach().new_empty(()).expand(self.padded.shape[:2])
        return PACK(batch, self.lengths.cpu(), enforce_sorted=self.is_sorted)

    data = property(lambda self: self._read().data)
    batch_sizes = property(lambda self: self._of_lengths.batch_sizes)
    sorted_indices = property(lambda self: self._of_lengths.sorted_indices)
    unsorted_indices = property(lambda self: self._of_lengths.unsorted_indices)
    is_cuda = property(lambda self: self.padded.is_cuda)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not self.is_kept or name not in _CONVERSIONS:
            return getattr(self.pack(), name)

        def converted(*args: Any, **kwargs: Any) -> Padded:
            self.ran = True
            padded = getattr(self.padded, name)(*args, **kwargs)
            lengths = (
                self.lengths if self.lengths.is_cpu else self.lengths.to(padded.device)
            )
            return (
                self
                if padded is self.padded
                else self.keep(padded, lengths, self.is_sorted)
            )

        return converted

    def __iter__(self) -> Any:
        return iter(self._read())

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __len__(self) -> int:
        return 4

    def __repr__(self) -> str:
        return repr(self.pack())

    def __radd__(self, other: Any) -> Any:
        return other + self.pack()

    def __copy__(self, memo: Any = None) -> "Padded":
        pack: Padded = object.__new__(Padded)
        fields = vars(self) if memo is None else copy.deepcopy(vars(self), memo)
        vars(pack).update(fields)
        return pack

    __deepcopy__ = __copy__

    def __reduce_ex__(self, _: Any) -> Any:
        # A file holds PyTorch's pack, without the padding. A copy is packed, so that this pack stays as it is.
        return PackedSequence, tuple(copy.copy(self).pack())


def _of_tuple(name: str) -> Any:
    def called(pack: Padded, *others: Any) -> Any:
        return getattr(pack.pack(), name)(
            *(other.pack() if type(other) is Padded else other for other in others)
        )

    return called


for _name in "add mul rmul eq lt le gt ge hash".split():
    setattr(Padded, f"__{_name}__", _of_tuple(f"__{_name}__"))


def _sent(pack: Padded) -> Any:
    return (
        (Padded.keep, (pack.padded, pack.lengths, pack.is_sorted))
        if pack.is_kept
        else pack.__reduce_ex__(2)
    )


# To another process, as a DataLoader's worker sends it, a pack stays padded.
ForkingPickler.register(Padded, _sent)
# Maps over trees find the tensors of a pack.
torch.utils._pytree.register_pytree_node(
    Padded,
    lambda pack: (list(pack.pack()), None),
    lambda parts, _: PackedSequence(*parts),
)
