"""PyTorch's RNNs, with lengths."""

import types
import warnings
from typing import Any

import numpy as np
import torch
from torch.nn.utils import parametrize
from torch.nn.utils.rnn import PackedSequence

from .._arguments import check_batch, host_lengths, shown
from . import rnn_choice
from .operators import as_lengths, check_tensor, is_tracing
from .packing import PACK, Padded, lengths_of, padded_of, rows_of, uncompiled
from .rnn_passes import run_padded
from .rnn_choice import Batch


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
        if lengths is None and (
            is_plain or torch.compiler.is_exporting() or is_tracing()
        ):
            return super().forward(input, hx)  # type: ignore[no-any-return]
        return self._run(input, hx, lengths)  # type: ignore[no-any-return]

    def __prepare_scriptable__(self) -> torch.nn.Module:
        kind = _counterpart(type(self), _THEIRS)
        if kind is None:
            return self
        plain = kind.__new__(kind)
        vars(plain).update(vars(self))
        return plain  # type: ignore[no-any-return]

    def __setattr__(self, name: str, value: Any) -> None:
        if (
            name == "qconfig" and value is None
        ):  # of quantize_dynamic, which knows PyTorch's classes alone
            kind = pytorchs(type(self)).__name__
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
        if isinstance(
            input, torch.fx.Proxy
        ):  # one node in a graph, as PyTorch's own RNNs
            path = input.tracer.path_of_module(self)
            options = {} if lengths is None else {"lengths": lengths}
            return input.tracer.create_proxy("call_module", path, (input, hx), options)  # type: ignore[return-value]
        if isinstance(input, PackedSequence):
            if lengths is not None:
                raise TypeError(
                    "lengths is given, but must be None, because input is a PackedSequence with its own"
                )
            return (
                self._run_kept(input, hx)
                if type(input) is Padded and input.is_kept
                else self._run_packed(input, hx)
            )
        if lengths is None:
            return self._plain(input, hx)
        check_tensor(input, "input")
        lengths = (
            as_lengths(torch.empty(0, device="cpu"), lengths)
            if not isinstance(lengths, torch.Tensor)
            else as_lengths(input, lengths)
        )
        self._check(input, lengths, hx)
        x = input.transpose(0, 1) if self.batch_first else input
        steps = x.size(0)
        host = rnn_choice.on_host(x, lengths)
        if host:
            longest = max(1, *host)
            if min(host) < 0:
                host_lengths(lengths.numpy())  # refuses them
            if (
                longest < steps
            ):  # what comes after the longest sequence is padding alone
                dim = 1 if self.batch_first else 0
                output, states = self._run(input.narrow(dim, 0, longest), hx, lengths)
                return torch.nn.functional.pad(
                    output, (0, 0) * (2 - dim) + (0, steps - longest)
                ), states
        batch = Batch.of(steps, host) if host else None
        form = rnn_choice.form(self, x, batch, True)
        if form == "whole":
            output, states = self._plain(_own(input), _own(hx))
            return _own(output), _own(states)
        if form == "packed":
            packed, states = self._plain(
                PACK(x, torch.tensor(host, device="cpu"), enforce_sorted=False), hx
            )
            return padded_of(packed, self.batch_first, 0.0, steps), states
        if form == "segments":
            return self._run_segments(x, host, hx)
        return run_padded(
            self, x, lengths, _own(hx), has_empty=batch is None or batch.has_empty
        )

    def _run_segments(
        self, x: torch.Tensor, host: Any, hx: Any, **options: Any
    ) -> tuple[Any, Any]:
        """Runs x in segments of time."""
        falling, there = torch.tensor(host, device="cpu").sort(
            descending=True, stable=True
        )
        cuts, there = rnn_choice.cuts_of(falling.tolist()), there.to(x.device)
        back = there.argsort()
        batch_first, fills = self.batch_first, options.get("fills", True)
        output, states = run_padded(
            self,
            x.index_select(1, there),
            falling,
            self._permuted(hx, there),
            cuts,
            **options,
        )
        return output.index_select(
            0 if batch_first and fills else 1, back
        ), self._permuted(states, back)

    def _permuted(self, states: Any, order: Any) -> Any:
        return (
            states
            if states is None or order is None
            else self.permute_hidden(states, order)
        )

    def _run_kept(self, packed: Padded, hx: Any) -> tuple[Any, Any]:
        """Runs a pack that keeps its padded batch."""
        x, lengths = packed.padded, packed.lengths
        if x.dim() != 3:
            return self._plain(packed.pack(), hx)  # PyTorch's own error
        form = rnn_choice.form(
            self, x, packed.batch if rnn_choice.may_choose(x, lengths) else None, True
        )
        if form == "packed":
            output, states = self._plain(packed.pack(), hx)
            return packed.packed_like(output), states  # type: ignore[return-value]
        self._check(x.transpose(0, 1) if self.batch_first else x, lengths, hx)
        packed.ran = True
        if form == "whole":
            output, states = self._plain_in_time(x, hx)
        elif form == "segments":
            output, states = self._run_segments(x, lengths.tolist(), hx, fills=False)
        else:
            output, states = run_padded(
                self, x, lengths, hx, fills=False, has_empty=not lengths.is_cpu
            )
        return packed.like(output), states  # type: ignore[return-value]

    def _run_packed(self, packed: PackedSequence, hx: Any) -> tuple[Any, Any]:
        """Runs a pack of PyTorch's."""
        data, sizes, order, back = packed
        if (
            data.dim() != 2
            or not data.size(0)
            or not rnn_choice.may_choose(data, sizes)
        ):
            return self._plain(packed, hx)
        steps, count = sizes.size(0), data.size(0)
        batch = Batch(steps, int(sizes[0]), count, False)
        form = rnn_choice.form(self, data, batch, False)
        if form == "packed":
            return self._plain(packed, hx)
        hx = self._permuted(hx, order)
        rows = None
        if form == "whole":
            x = data.view(steps, batch.size, -1)
            output, states = self._plain_in_time(x, hx)
        else:
            area = steps * batch.size
            rows = rows_of(sizes, count, batch.size, data.device)
            x = (
                data.new_zeros(area, data.shape[1])
                .index_copy(0, rows, data)
                .view(steps, batch.size, -1)
            )
            host = lengths_of(sizes.numpy())
            lengths = torch.from_numpy(host)
            self._check(x.transpose(0, 1) if self.batch_first else x, lengths, hx)
            cuts = rnn_choice.cuts_of(host.tolist()) if form == "segments" else None
            output, states = run_padded(
                self, x, lengths, hx, cuts, is_clean=True, fills=False, has_empty=False
            )
        output = output.reshape(steps * batch.size, -1)
        output = output if rows is None else output.index_select(0, rows)
        return PackedSequence(output, sizes, order, back), self._permuted(states, back)

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
        is_lstm = self.mode == "LSTM"
        if not (
            isinstance(hx, (tuple, list)) and len(hx) == 2
            if is_lstm
            else isinstance(hx, torch.Tensor)
        ):
            required = "(h_0, c_0), as this is an LSTM" if is_lstm else "the tensor h_0"
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
    """Copies of tensors that a backward pass may need, which so is not shared with the caller."""
    if isinstance(value, torch.Tensor):
        return value.clone() if torch.is_grad_enabled() else value
    return value if value is None else tuple(map(_own, value))


class LSTM(WithLengths, torch.nn.LSTM):  # type: ignore[misc]
    """``torch.nn.LSTM`` that also takes lengths. It has PyTorch's constructor, parameters and checkpoints.

    input: with ``lengths``, a padded batch, [T, B, F], or [B, T, F] with ``batch_first``. The padding may have any
    values, also NaN. Or a PackedSequence, best of :func:`pack_padded_sequence`, which gives a PackedSequence. Or, with
    neither, what PyTorch's class takes, which then runs.
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


# The classes of this module for those of PyTorch, and for subclasses that `_converted` has met. The second table is the
# inverse of the first.
_OURS: dict[Any, Any] = {torch.nn.LSTM: LSTM, torch.nn.GRU: GRU, torch.nn.RNN: RNN}
_THEIRS = {ours: theirs for theirs, ours in _OURS.items()}
# What a subclass may define besides names of its own.
_OVERRIDDEN = {"forward", "reset_parameters", "extra_repr"}
_PACKING = {"PackedSequence", "pack_padded_sequence"}


def pytorchs(kind: type) -> Any:
    """The class of PyTorch that a class derives from."""
    return next(
        base
        for base in kind.__mro__
        if base in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)
    )


def _counterpart(kind: Any, classes: dict[Any, Any]) -> Any:
    """What `classes` has for a class, or for that which torch.nn.utils.parametrize made a class of. None: nothing."""
    if kind in classes or kind.__module__ != parametrize.__name__:
        return classes.get(kind)
    base = _counterpart(kind.__bases__[0], classes)
    kept = {
        name: value
        for name, value in vars(kind).items()
        if name not in ("__dict__", "__weakref__")
    }
    return base and type(kind.__name__, (base,), kept)


def _is_wrapper(kind: type) -> bool:
    """Whether a subclass of PyTorch's adds only names of its own, and has PyTorch's forward or one that hands packs to
    it."""
    reserved = {*vars(WithLengths), *vars(torch.nn.RNNBase)} - _OVERRIDDEN
    for part in kind.__mro__[: kind.__mro__.index(pytorchs(kind))]:
        if any(name in reserved and not name.startswith("__") for name in vars(part)):
            return False
        if "forward" in vars(part):
            code = getattr(vars(part)["forward"], "__code__", None)
            if (
                code is None
                or "super" not in code.co_names
                or not _PACKING.intersection(code.co_names)
            ):
                return False
    return True


def _converted(kind: Any) -> Any:
    """The class for a module of a class of PyTorch, or of a subclass that wraps it. None for other subclasses."""
    plain = kind.__bases__[0] if kind.__module__ == parametrize.__name__ else kind
    if plain not in _OURS and _is_wrapper(plain):
        names = {
            "__module__": plain.__module__,
            "__qualname__": plain.__qualname__,
            "__reduce_ex__": _reduce,
        }
        _OURS[plain] = type(plain.__name__, (plain, _OURS[pytorchs(plain)]), names)
        _THEIRS[_OURS[plain]] = plain
    return _counterpart(kind, _OURS)


def _reduce(rnn: torch.nn.Module, _: Any) -> Any:
    """For pickle, which does not find a class that is made."""
    return _made_again, (_THEIRS[type(rnn)],), rnn.__getstate__()  # type: ignore[operator]


def _made_again(kind: Any) -> Any:
    return object.__new__(_converted(kind))


def _change_class(
    name: str, part: Any, found: Any, reason: str = "has a class of its own"
) -> None:
    """Changes the class of a module. If there is none, or a function hides its forward, it warns who called the
    caller."""
    kind: Any = type(part)
    # accelerate keeps the forward of a module, for its hooks to call.
    methods = [
        name
        for name, value in vars(part).items()
        if isinstance(value, types.MethodType)
    ]
    methods = [
        name
        for name in methods
        if vars(part)[name] == types.MethodType(kind.forward, part)
    ]
    if found is None:
        reason = f"{reason}, {kind.__module__}.{kind.__qualname__}"
    elif "forward" in vars(part) and not methods:
        reason = "has a forward that was set on the instance"
    else:
        part.__class__ = found
        for name in methods:
            vars(part)[name] = types.MethodType(found.forward, part)
        return
    warnings.warn(f"{name or 'the module'} {reason}, and stays as it is", stacklevel=3)


def convert_rnns(module: torch.nn.Module) -> torch.nn.Module:
    """Changes the class of every ``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` of a model to this package's, and returns the
    model. It does so in place: modules, parameters, hooks and names stay. :func:`restore_rnns` undoes it.

    A subclass that hands packs to ``super().forward`` gets a class that has both bases. One with another forward of its
    own, a module whose forward was set on the instance, and a quantized module stay as they are, with a warning. So
    does a model without RNNs.

    >>> import torch, dml_cuda.torch
    >>> dml_cuda.torch.convert_rnns(torch.nn.Sequential(torch.nn.GRU(3, 5)))
    Sequential(
      (0): GRU(3, 5)
    )
    """
    has_rnns = False
    for name, part in module.named_modules():
        kind: Any = type(part)
        is_quantized = kind.__module__.startswith(
            "torch.ao.nn.quant"
        ) and kind.__name__ in ("LSTM", "GRU", "RNN")
        if is_quantized or isinstance(
            part, (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)
        ):
            has_rnns = True
            if is_quantized:
                _change_class(name, part, None, "is quantized")
            elif not isinstance(part, WithLengths):
                _change_class(name, part, _converted(kind))
    if not has_rnns:
        words = "has no torch.nn.LSTM, GRU or RNN among its modules, so nothing is converted"
        warnings.warn(f"{type(module).__qualname__} {words}", stacklevel=2)
    return module


def restore_rnns(module: torch.nn.Module) -> torch.nn.Module:
    """Undoes :func:`convert_rnns`: gives every RNN of this package in a model PyTorch's class again, in place, and
    returns the model. Then ``torch.save(model)`` loads without this package, and tools that know exact types find their
    modules.

    >>> import torch, dml_cuda.torch
    >>> type(dml_cuda.torch.restore_rnns(dml_cuda.torch.GRU(3, 5)))
    <class 'torch.nn.modules.rnn.GRU'>
    """
    for name, part in module.named_modules():
        if isinstance(part, WithLengths):
            _change_class(name, part, _counterpart(type(part), _THEIRS))
    return module
