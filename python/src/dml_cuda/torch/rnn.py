"""PyTorch's RNNs, with lengths: the classes that a model gets, and which way a call runs.

    forward ─┬─ without lengths and packs                   PyTorch's own call
             └─ _run ─┬─ a padded batch with lengths        _run_lengths ─┐
                      ├─ a pack that keeps its padded batch _run_kept     ├─ a form of `rnn_choice.py`
                      └─ a pack of PyTorch's                _run_packed  ─┘

A form is PyTorch's own call, whole or packed, or `run_padded` of `rnn_passes.py`. `rnn_conversion.py` gives the modules
of a model these classes."""

import warnings
from typing import Any

import numpy as np
import torch
from torch.nn.utils import parametrize
from torch.nn.utils.rnn import PackedSequence

from .._arguments import check_batch, host_lengths, shown
from . import rnn_choice
from .arguments import as_lengths, check_tensor
from .operators import is_traced_or_exported
from .packed_rows import lengths_of, padded_of, rows_of
from .packs import PACK, Padded, uncompiled
from .rnn_choice import Batch
from .rnn_passes import run_padded


class WithLengths(torch.nn.RNNBase):  # type: ignore[misc]
    """What this package's RNNs add to PyTorch's."""

    def forward(
        self, input: Any, hx: Any = None, *, lengths: Any = None
    ) -> tuple[Any, Any]:
        # torch.compile of PyTorch 2.15 fails where a subclass calls its RNNs: what it compiles breaks its graph before.
        is_plain = isinstance(input, torch.Tensor) and not torch.compiler.is_compiling()
        if hx is not None and _are_integers(hx):
            raise TypeError(
                f"hx is {shown(hx)}, but must be initial states: pass lengths by name, rnn(x, lengths=lengths)"
            )
        if lengths is None and (is_plain or is_traced_or_exported()):
            return super().forward(input, hx)  # type: ignore[no-any-return]
        return self._run(input, hx, lengths)  # type: ignore[no-any-return]

    def __prepare_scriptable__(self) -> torch.nn.Module:
        kind = counterpart(type(self), THEIRS)
        if kind is None:
            return self
        plain = kind.__new__(kind)
        vars(plain).update(vars(self))
        return plain  # type: ignore[no-any-return]

    def __setattr__(self, name: str, value: Any) -> None:
        # quantize_dynamic, which knows PyTorch's classes alone, sets it for the modules that it leaves.
        if name == "qconfig" and value is None:
            kind = pytorchs_class(type(self)).__name__
            words = f"dml_cuda.torch.{kind} stays as it is, because quantization knows only torch.nn.{kind}: quantize first"
            warnings.warn(words, stacklevel=3)
        super().__setattr__(name, value)

    def _plain(self, x: Any, hx: Any) -> tuple[Any, Any]:
        """PyTorch's own call."""
        return super().forward(x, hx)  # type: ignore[no-any-return]

    def _plain_in_time(self, x: torch.Tensor, hx: Any) -> tuple[Any, Any]:
        """PyTorch's own call of [T, B, F], for whole sequences."""
        if not self.batch_first:
            return self._plain(x, hx)
        output, states = self._plain(x.transpose(0, 1), hx)
        return output.transpose(0, 1), states

    @uncompiled
    def _run(self, input: Any, hx: Any, lengths: Any) -> tuple[Any, Any]:
        if isinstance(input, torch.fx.Proxy):
            return self._traced_by_fx(input, hx, lengths)
        if isinstance(input, PackedSequence):
            if lengths is not None:
                raise TypeError(
                    "lengths is given, but must be None, because input is a PackedSequence with its own"
                )
            if type(input) is Padded and input.is_kept:
                return self._run_kept(input, hx)
            return self._run_packed(input, hx)
        if lengths is None:
            return self._plain(input, hx)
        check_tensor(input, "input")
        is_tensor = isinstance(lengths, torch.Tensor)
        near = input if is_tensor else torch.empty(0, device="cpu")
        lengths = as_lengths(near, lengths)
        self._check(input, lengths, hx)
        return self._run_lengths(input, hx, lengths)

    def _traced_by_fx(self, input: Any, hx: Any, lengths: Any) -> Any:
        """One node in a graph, as PyTorch's own RNNs."""
        path = input.tracer.path_of_module(self)
        options = {} if lengths is None else {"lengths": lengths}
        return input.tracer.create_proxy("call_module", path, (input, hx), options)

    def _run_lengths(
        self, input: torch.Tensor, hx: Any, lengths: torch.Tensor
    ) -> tuple[Any, Any]:
        """Runs a padded batch with a tensor of lengths."""
        x = input.transpose(0, 1) if self.batch_first else input
        steps = x.size(0)
        host = rnn_choice.on_host(x, lengths)
        if host:
            if min(host) < 0:
                host_lengths(lengths.numpy())  # refuses them
            longest = max(1, *host)
            if longest < steps:
                return self._without_trailing_padding(input, hx, lengths, longest)
        batch = Batch.of(steps, host) if host else None
        form = rnn_choice.form(self, x, batch, True)
        if form == "whole":
            output, states = self._plain(_own(input), _own(hx))
            return _own(output), _own(states)
        if form == "packed":
            packed = PACK(x, torch.tensor(host, device="cpu"), enforce_sorted=False)
            output, states = self._plain(packed, hx)
            return padded_of(output, self.batch_first, 0.0, steps), states
        if form == "segments":
            return self._run_segments(x, host, hx)
        has_empty = batch is None or batch.has_empty
        return run_padded(self, x, lengths, _own(hx), has_empty=has_empty)

    def _without_trailing_padding(
        self, input: torch.Tensor, hx: Any, lengths: torch.Tensor, longest: int
    ) -> tuple[Any, Any]:
        """Runs a padded batch up to the end of its longest sequence. What comes after it is padding alone."""
        dim = 1 if self.batch_first else 0
        output, states = self._run(input.narrow(dim, 0, longest), hx, lengths)
        rest = (0, 0) * (2 - dim) + (0, input.size(dim) - longest)
        return torch.nn.functional.pad(output, rest), states

    def _run_segments(
        self, x: torch.Tensor, host: Any, hx: Any, is_final: bool = True
    ) -> tuple[Any, Any]:
        """Runs x, [T, B, F], in segments of time, with the sequences in falling order of their lengths."""
        falling, order = torch.tensor(host, device="cpu").sort(
            descending=True, stable=True
        )
        segments = rnn_choice.segments_of(falling.tolist())
        order = order.to(x.device)
        back = order.argsort()
        x, hx = x.index_select(1, order), self._permuted(hx, order)
        output, states = run_padded(self, x, falling, hx, segments, is_final=is_final)
        batch = 0 if self.batch_first and is_final else 1
        return output.index_select(batch, back), self._permuted(states, back)

    def _permuted(self, states: Any, order: Any) -> Any:
        if states is None or order is None:
            return states
        return self.permute_hidden(states, order)

    def _run_kept(self, packed: Padded, hx: Any) -> tuple[Any, Any]:
        """Runs a pack that keeps its padded batch."""
        x, lengths = packed.padded, packed.lengths
        if x.dim() != 3:
            return self._plain(packed.pack(), hx)  # PyTorch's own error
        batch = packed.batch if rnn_choice.may_choose(x, lengths) else None
        form = rnn_choice.form(self, x, batch, True)
        if form == "packed":
            output, states = self._plain(packed.pack(), hx)
            return packed.packed_like(output), states  # type: ignore[return-value]
        self._check(x.transpose(0, 1) if self.batch_first else x, lengths, hx)
        packed.ran = True
        if form == "whole":
            output, states = self._plain_in_time(x, hx)
        elif form == "segments":
            output, states = self._run_segments(x, lengths.tolist(), hx, is_final=False)
        else:
            output, states = run_padded(
                self, x, lengths, hx, is_final=False, has_empty=not lengths.is_cpu
            )
        return packed.like(output), states  # type: ignore[return-value]

    def _run_packed(self, packed: PackedSequence, hx: Any) -> tuple[Any, Any]:
        """Runs a pack of PyTorch's."""
        data, sizes, order, back = packed
        if data.dim() != 2 or not data.size(0):
            return self._plain(packed, hx)
        if not rnn_choice.may_choose(data, sizes):
            return self._plain(packed, hx)
        steps, count = sizes.size(0), data.size(0)
        batch = Batch(steps, int(sizes[0]), count, False)
        form = rnn_choice.form(self, data, batch, False)
        if form == "packed":
            return self._plain(packed, hx)
        hx = self._permuted(hx, order)
        if form == "whole":
            x = data.view(steps, batch.size, -1)
            output, states = self._plain_in_time(x, hx)
            output = output.reshape(count, -1)
        else:
            rows = rows_of(sizes, count, batch.size, data.device)
            x = data.new_zeros(steps * batch.size, data.shape[1])
            x = x.index_copy(0, rows, data).view(steps, batch.size, -1)
            output, states = self._run_rows(x, sizes, form, hx)
            output = output.reshape(steps * batch.size, -1).index_select(0, rows)
        return PackedSequence(output, sizes, order, back), self._permuted(states, back)

    def _run_rows(
        self, x: torch.Tensor, sizes: torch.Tensor, form: str, hx: Any
    ) -> tuple[Any, Any]:
        """Runs a pack's rows, [T, B, F], padded with zeros. sizes: the batch sizes of the pack."""
        falling = lengths_of(sizes.numpy())
        lengths = torch.from_numpy(falling)
        self._check(x.transpose(0, 1) if self.batch_first else x, lengths, hx)
        segments = None
        if form == "segments":
            segments = rnn_choice.segments_of(falling.tolist())
        return run_padded(
            self,
            x,
            lengths,
            hx,
            segments,
            is_clean=True,
            is_final=False,
            has_empty=False,
        )

    def _check(self, x: Any, lengths: Any, hx: Any) -> None:
        batch = 0 if self.batch_first else 1
        if x.dim() != 3 or x.shape[1 - batch] == 0:
            layout = "[B, T, F]" if self.batch_first else "[T, B, F]"
            raise ValueError(
                f"input has shape {list(x.shape)}, but must have three dimensions, {layout}, with T of at least 1"
            )
        other = "batch_first=False" if self.batch_first else "batch_first=True"
        check_batch([*lengths.shape], [x.shape[batch]], x.shape[1 - batch], other)
        if lengths.device not in (x.device, torch.device("cpu")):
            raise ValueError(
                f"lengths is on {lengths.device}, but must be on {x.device}, as input is, or on the CPU"
            )
        if hx is None:
            return self.check_input(x, None)  # type: ignore[no-any-return]
        if self.mode == "LSTM":
            is_right = isinstance(hx, (tuple, list)) and len(hx) == 2
            required = "(h_0, c_0), as this is an LSTM"
        else:
            is_right = isinstance(hx, torch.Tensor)
            required = "the tensor h_0"
        if not is_right:
            raise TypeError(f"hx is a {type(hx).__qualname__}, but must be {required}")
        self.check_forward_args(x, hx, None)


def _are_integers(hx: Any) -> bool:
    """Whether a value for initial states can only be lengths."""
    if isinstance(hx, torch.Tensor):
        return not (hx.is_floating_point() or hx.is_complex())
    return isinstance(hx, np.ndarray) or (
        isinstance(hx, (list, tuple)) and isinstance(next(iter(hx), None), int)
    )


def _own(value: Any) -> Any:
    """Returns copies of tensors, because a backward pass may keep them and the caller may change its own. Without
    gradients it returns the tensors themselves."""
    if isinstance(value, torch.Tensor):
        return value.clone() if torch.is_grad_enabled() else value
    return value if value is None else tuple(map(_own, value))


class LSTM(WithLengths, torch.nn.LSTM):  # type: ignore[misc]
    """``torch.nn.LSTM`` that also takes lengths. It has PyTorch's constructor, parameters and checkpoints.

    input: with ``lengths``, a padded batch, [T, B, F], or [B, T, F] with ``batch_first``. The padding may have any
    values, even NaN. Or a PackedSequence, preferably one made by :func:`pack_padded_sequence`; the output is then a
    PackedSequence. Or, with neither, what PyTorch's class takes, which then runs.
    lengths: [B], integers in any order, on the host or on input's GPU, where nothing waits for them. A length above T
    acts as T. A row of length 0 is all padding. A negative length is an error on the host and acts as T on a GPU.
    hx: (h_0, c_0). None is zeros.

    Returns ``output, (h_n, c_n)``, as PyTorch's class does for a packed batch: the states at the ends of the sequences,
    and with ``lengths`` zeros in the output's padding. A row of length 0 returns its h_0 and c_0.

    >>> import torch, dml_cuda.torch
    >>> lstm = dml_cuda.torch.LSTM(3, 5, bidirectional=True)
    >>> output, (h_n, c_n) = lstm(torch.randn(7, 2, 3), lengths=torch.tensor([7, 4]))
    >>> output.shape, c_n.shape, output[4:, 1].any()
    (torch.Size([7, 2, 10]), torch.Size([2, 2, 5]), tensor(False))
    """


class GRU(WithLengths, torch.nn.GRU):  # type: ignore[misc]
    """``torch.nn.GRU`` that also takes lengths: see :class:`LSTM`. hx is h_0, and the second result is h_n."""


class RNN(WithLengths, torch.nn.RNN):  # type: ignore[misc]
    """``torch.nn.RNN`` that also takes lengths: see :class:`LSTM`. hx is h_0, and the second result is h_n."""


# The classes of this module for those of PyTorch, and for subclasses that `rnn_conversion.py` has met. The second table
# is the inverse of the first.
OURS: dict[Any, Any] = {torch.nn.LSTM: LSTM, torch.nn.GRU: GRU, torch.nn.RNN: RNN}
THEIRS = {ours: theirs for theirs, ours in OURS.items()}


def pytorchs_class(kind: type) -> Any:
    """The class of PyTorch that a class derives from."""
    for base in kind.__mro__:
        if base in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
            return base
    raise AssertionError(f"{kind} is no RNN")


def counterpart(kind: Any, classes: dict[Any, Any]) -> Any:
    """Returns the class that `classes` has for this one, or None. A class that torch.nn.utils.parametrize made has its
    base's counterpart as the base of a new class."""
    if kind in classes or kind.__module__ != parametrize.__name__:
        return classes.get(kind)
    base = counterpart(kind.__bases__[0], classes)
    if base is None:
        return None
    own = ("__dict__", "__weakref__")
    kept = {name: value for name, value in vars(kind).items() if name not in own}
    return type(kind.__name__, (base,), kept)
