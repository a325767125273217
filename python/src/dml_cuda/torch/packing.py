"""PyTorch's packing, for RNNs that run padded batches: a pack keeps the padded batch, and is packed when it is read.

`pack_padded_sequence` copies the batch, as PyTorch's does. If the lengths are on the host, it leaves out the padding
after the longest sequence. PyTorch's own function runs for wrong arguments, and for lengths on the host if no RNN would
run the batch padded."""

from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

from .operators import is_traced_or_exported
from .packed_rows import padded_of, padding_of, without_sign
from .packs import PACK, PAD, Padded, uncompiled
from .rnn_choice import Batch, keeps

# What records a call sees a pack as a tuple, and torch.compile cannot take one apart that is none: these run PyTorch's.
_as_they_are = uncompiled(PACK), uncompiled(PAD)


def _is_recorded() -> bool:
    return bool(torch.compiler.is_compiling() or is_traced_or_exported())


def pack_padded_sequence(
    input: torch.Tensor,
    lengths: Any,
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """``torch.nn.utils.rnn.pack_padded_sequence``, whose pack keeps the padded batch for this module's RNNs.

    lengths: as PyTorch takes them, on the host; or a tensor on input's GPU, in any order, where nothing waits for it.
    Then T stays input's, a length above T acts as T, and 0 is a row of padding. With ``enforce_sorted`` such lengths
    must be sorted, and that is checked only when something reads the packed data.

    >>> import torch, dml_cuda.torch
    >>> packed = dml_cuda.torch.pack_padded_sequence(torch.tensor([[1, 3], [2, 0]]), [2, 1])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 3, 2]), tensor([2, 1]))
    """
    is_recorded = _is_recorded() or not isinstance(input, torch.Tensor)
    pack = _as_they_are[0] if is_recorded else _pack
    return pack(input, lengths, batch_first, enforce_sorted)  # type: ignore[no-any-return]


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``torch.nn.utils.rnn.pad_packed_sequence``. Lengths that were packed on a GPU stay there, and then T stays that
    of the packed tensor, or is total_length.

    >>> import torch, dml_cuda.torch as dt
    >>> dt.pad_packed_sequence(dt.pack_padded_sequence(torch.tensor([[1, 3], [2, 0]]), [2, 1]))
    (tensor([[1, 3],
            [2, 0]]), tensor([2, 1]))
    """
    is_ours = type(sequence) is Padded and (
        sequence.is_kept or (sequence.lengths.is_cpu and not _is_recorded())
    )
    unpack = _unpack if is_ours else _as_they_are[1]
    return unpack(sequence, batch_first, padding_value, total_length)  # type: ignore[no-any-return]


# torch.jit.script compiles PyTorch's functions in their place.
pack_padded_sequence.__prepare_scriptable__ = lambda: PACK  # type: ignore[attr-defined]
pad_packed_sequence.__prepare_scriptable__ = lambda: PAD  # type: ignore[attr-defined]


def _pack(
    input: torch.Tensor, lengths: Any, batch_first: bool, enforce_sorted: bool
) -> Any:
    given = lengths
    if not isinstance(lengths, torch.Tensor):
        given = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    x = input.transpose(0, 1) if batch_first and input.dim() > 1 else input
    is_batch = given.shape == x.shape[1:2] and x.dim() > 1 and x.numel() > 0
    is_near = given.is_cpu or given.device == input.device
    if type(given) is not torch.Tensor or not is_batch or not is_near:
        return PACK(input, lengths, batch_first, enforce_sorted)
    batch = None
    if given.is_cpu:
        host = (given if given.dtype == torch.int64 else given.to(torch.int64)).tolist()
        longest = max(host)
        batch = Batch.of(longest, host)
        is_wrong = (
            batch.has_empty
            or longest > x.size(0)
            or (enforce_sorted and host != sorted(host, reverse=True))
        )
        if is_wrong or not keeps(x, batch):  # PyTorch's own error, or its pack
            return PACK(input, lengths, batch_first, enforce_sorted)
        x = x[:longest] if longest < x.size(0) else x
    kept = given.detach().to(torch.int64, copy=True)
    if not given.is_cpu:
        kept = without_sign(kept).clamp_(max=len(x))
    # A copy, as PyTorch's: x may change.
    return Padded.keep(
        x.clone(memory_format=torch.contiguous_format), kept, enforce_sorted, batch
    )


def _unpack(
    sequence: Padded, batch_first: bool, padding_value: float, total_length: int | None
) -> Any:
    x, lengths = sequence.padded, sequence.lengths
    steps = len(x if sequence.is_kept else sequence.batch_sizes)
    if total_length is not None and total_length != steps:
        if lengths.is_cpu and total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {steps}"
            )
        if sequence.is_kept:
            x = torch.nn.functional.pad(
                x, [0, 0] * (x.dim() - 1) + [0, total_length - steps]
            )
    if not sequence.is_kept:
        return padded_of(
            sequence.pack(), batch_first, padding_value, total_length or steps
        ), lengths.clone()
    sequence.ran = True
    padding = padding_of(x, lengths)
    if not batch_first:
        return x.masked_fill(padding, padding_value), lengths.clone()
    if sequence.is_sorted:
        return x.masked_fill(padding, padding_value).transpose(0, 1), lengths.clone()
    # In the memory layout of PyTorch's.
    found = x.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    return found.masked_fill_(padding.transpose(0, 1), padding_value), lengths.clone()
