"""A bidirectional RNN over padded batches, whose lengths stay on the GPU."""

import contextlib
import dataclasses
import os
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self

import torch

from .._arguments import check_batch
from ._private import exists, private
from .operators import VERSION, as_lengths, check_tensor, follows, is_tracing, reverse_batch

_PASSES = {"LSTM": torch.lstm, "GRU": torch.gru, "RNN_TANH": torch.rnn_tanh, "RNN_RELU": torch.rnn_relu}
_KINDS = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)

_UNCOMPILED = (
    "Compiled, a BidirectionalRNN would be a loop over all steps: leave fullgraph=True out, and export with strict=False"
)


def _check_kind(rnn: Any) -> None:
    if not isinstance(rnn, _KINDS):
        kind = f"{type(rnn).__module__}.{type(rnn).__qualname__}"
        raise TypeError(f"rnn is a {kind}, must be a torch.nn.LSTM, torch.nn.GRU or torch.nn.RNN")
    if type(rnn).forward not in [kind.forward for kind in _KINDS]:
        raise TypeError(f"rnn is a {type(rnn).__qualname__} with a forward of its own, must have PyTorch's, which runs instead")


def _is_one_pass(rnn: torch.nn.RNNBase, layer: int, x: torch.Tensor, size: int) -> bool:
    """Whether both directions of a layer run in one pass. cuDNN then runs them at the same time, but multiplies twice
    as many inputs, half of the weights being zeros. On an H100 (benches/record) that is faster in captured calls, with
    and without gradients, where two passes would have cuDNN's standard algorithm: PyTorch asks for a persistent one if
    the states are few, and for an LSTM or RNN in float16 if sizes are multiples. Of the latter only batches below 64,
    and of 128 with 256 states, are faster in two passes. The multiplications must be few, fewer where tensor cores do
    not take the dtype, and so must the states in half precision. Short sequences do not pay for the weights that each
    call puts together. Eager calls wait for the host, and gain nothing."""
    if is_tracing() or torch.compiler.is_exporting():
        return False  # programs without Python have reversals
    chosen = os.environ.get("DML_CUDA_RNN")
    if chosen is not None:
        if chosen not in ("one_pass", "two_passes"):
            raise ValueError(f"the environment variable DML_CUDA_RNN is `{chosen}`, must be `one_pass` or `two_passes`")
        return chosen == "one_pass"
    is_captured = x.is_cuda and torch.cuda.is_current_stream_capturing() and torch.backends.cudnn.enabled
    if not is_captured or torch.cuda.get_device_capability(x.device) != (9, 0):
        return False  # other GPUs are not measured
    steps, batch, features = x.shape
    features, hidden = 2 * size if layer else features, rnn.hidden_size
    is_double = x.dtype == torch.float64
    is_float16 = x.dtype == torch.float16 or (torch.is_autocast_enabled("cuda") and not is_double)
    if not is_double and not rnn.proj_size:
        is_multiple = hidden % 128 == features % 128 == batch % 8 == 0
        is_persistent = is_float16 and rnn.mode != "GRU" and hidden <= 1024 and is_multiple
        if is_persistent and (batch < 64 or (batch, hidden) == (128, 256)):
            return False
        if hidden <= (384 if rnn.mode.startswith("RNN") else 192):
            return False
    is_half = is_float16 or x.dtype == torch.bfloat16
    is_exact = not is_half and (is_double or not _has_tf32())
    most, most_states = 1 << (23 if is_exact else 26), 1024 if is_half else 2048
    is_little = batch * hidden * max(features, hidden) <= most and hidden <= most_states
    return is_little and steps >= max(16, hidden * (2 * features + hidden) >> 16)


def _has_tf32() -> bool:
    # From 2.9 on allow_tf32 is an error for programs that set the precision by its newer name.
    precision = getattr(torch.backends.cudnn.rnn, "fp32_precision", None)
    return torch.backends.cudnn.allow_tf32 if precision is None else precision == "tf32"


def _alignments(step: torch.Tensor, ends: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of x, [T, B, 2], that make [x aligned left, x aligned right], and the rows of a bidirectional output
    that align its backward half left, too. Aligning rotates a sequence by its length."""
    steps, batch = len(step), ends.shape[1]
    lane, lanes = (torch.arange(size, device=step.device) for size in (batch, 2 * batch))
    shift = ends * torch.arange(2, device=step.device)
    right = torch.add(lane[:, None], (step + shift) % steps, alpha=batch)
    return right, torch.add(lanes.view(batch, 2), (step - shift) % steps, alpha=2 * batch)


def _aligned(x: torch.Tensor, size: int, rows: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1, size).index_select(0, rows.flatten()).view(*rows.shape[:2], 2 * size)


def _weights_of_both(forward: list[torch.Tensor], backward: list[torch.Tensor]) -> list[torch.Tensor]:
    """The weights of a bidirectional pass over [x aligned left, x aligned right]: [W 0] and [0 W] for the input. They
    are one block in cuDNN's order, the matrices before the biases, which it also has for ``bias=False``."""
    given, size = [*forward, *backward], forward[0].shape[1]
    is_followed = torch.is_grad_enabled() or any(map(follows, given))
    # A captured graph does this in each replay, so that it has the weights of an optimizer's step.
    pads = {0: (0, size), len(forward): (size, 0)}
    order = sorted(range(len(given)), key=lambda i: -given[i].dim())
    unused = 0 if given[order[-1]].dim() == 1 else 4 * len(given[0])
    sizes = [given[i].numel() * (2 if i in pads else 1) for i in order]
    zeros = given[0].new_zeros(unused if is_followed else sum(sizes) + unused)
    if is_followed:
        wide = {i: torch.nn.functional.pad(given[i], pad) for i, pad in pads.items()}
        block = torch.cat([*(wide.get(i, given[i]).flatten() for i in order), zeros])
    else:
        block = zeros
    parts = dict(zip(order, block.split([*sizes, unused]), strict=False))
    found = [parts[i].view(*weight.shape[:-1], -1) for i, weight in enumerate(given)]
    if not is_followed:
        rest = [i for i in order if i not in pads]
        torch._foreach_copy_([found[i] for i in rest], [given[i] for i in rest])
        inputs = [found[i].narrow(1, left, size) for i, (left, _) in pads.items()]
        torch._foreach_copy_(inputs, [forward[0], backward[0]])
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class LSTMStates:
    """The states of an LSTM at the ends of the sequences, without c_n. It is no tuple, so that code for
    ``output, (h_n, c_n)`` fails, and cannot take the two directions of h_n for two states."""

    h_n: torch.Tensor

    def __post_init__(self) -> None:
        if isinstance(self.h_n, map):  # the gather of nn.DataParallel, which takes the states of its GPUs apart
            object.__setattr__(self, "h_n", next(self.h_n))

    def __iter__(self) -> Iterator[torch.Tensor]:
        if sys._getframe(1).f_globals.get("__name__") == "torch.nn.parallel.scatter_gather":
            return iter((self.h_n,))
        raise TypeError(
            "the states of a BidirectionalRNN with an LSTM are an object without c_n, must be used by name: states.h_n. On padded input "
            "nn.LSTM gives the cell states of the last step only. For c_n, as a decoder needs it, use pack_padded_sequence"
        )

    def __getitem__(self, index: Any) -> torch.Tensor:
        return next(iter(self))


torch.export.register_dataclass(LSTMStates, serialized_type_name="dml_cuda.torch.LSTMStates")


class BidirectionalRNN(torch.nn.Module):  # type: ignore[misc]
    """Runs a bidirectional ``torch.nn.LSTM``, ``GRU`` or ``RNN`` over padded sequences, in place of
    ``pack_padded_sequence``.

    Each layer is two plain passes. The second reads its sequences reversed. In a CUDA graph both can be one pass, where
    that is faster. The lengths stay on x's device, and nothing waits for them.

    rnn: shares its weights, which keep their names in ``rnn.state_dict()``. On a GPU this module lays them out for
    single passes: a direct call of rnn still works, but PyTorch then copies its weights in every call and warns.

    Calls are ``module(x, lengths, hx=None)``. They return ``(output, h_n)``, for an LSTM ``(output, states)`` with
    ``states.h_n``. ``load_state_dict`` takes rnn's names with and without ``rnn.`` before them. rnn's attributes, such
    as ``hidden_size``, can be read here.

    x: [T, B, F], or [B, T, F] if rnn is ``batch_first``. Padding may have any values, also NaN.
    lengths: [B], integers in any order. Those on the host are copied to x's device in every call. A length above T
    acts as T. A row of length 0 is all padding. A negative length is an error on the CPU and acts as 0 on a GPU.
    hx: the initial states as rnn takes them: h_0, for an LSTM (h_0, c_0). None is zeros.
    output: as ``pad_packed_sequence`` returns it with ``total_length=T``; zeros in the padding.
    h_n: the states at the ends of the sequences, as rnn returns them; h_0 for a length of 0. There is no c_n.

    >>> import torch, dml_cuda.torch
    >>> rnn = dml_cuda.torch.BidirectionalRNN(torch.nn.GRU(3, 5, bidirectional=True))
    >>> output, h_n = rnn(torch.randn(7, 2, 3), torch.tensor([7, 4]))
    >>> output.shape, h_n.shape, output[4:, 1].any()
    (torch.Size([7, 2, 10]), torch.Size([2, 2, 5]), tensor(False))
    """

    if TYPE_CHECKING:

        def __call__(self, x: torch.Tensor, lengths: Any, hx: Any = None) -> tuple[torch.Tensor, Any]: ...

    def __init__(self, rnn: torch.nn.RNNBase) -> None:
        super().__init__()
        _check_kind(rnn)
        if not rnn.bidirectional:
            raise ValueError("rnn.bidirectional is False, must be True")
        self.rnn = rnn
        self.flatten_parameters()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in self._modules:
            return super().__getattr__(name)
        return getattr(self.rnn, name)

    def __prepare_scriptable__(self) -> NoReturn:
        raise TypeError("torch.jit.script cannot compile a BidirectionalRNN: use torch.jit.trace, or torch.export")

    def flatten_parameters(self) -> None:
        """Lays out the weights of each pass as one block, as cuDNN needs them. Does nothing for weights that cuDNN does
        not run.

        Moving and copying this module does it too. Call it after rnn itself was moved, or after its own
        ``flatten_parameters``.
        """
        rnn, weights = self.rnn, [weight for of_pass in self.rnn.all_weights for weight in of_pass]
        first = weights[0]
        if (
            not all(weight.is_cuda and weight.dtype == first.dtype for weight in weights)
            or not torch.backends.cudnn.is_acceptable(first)
            or not torch._use_cudnn_rnn_flatten_weight()
            or len({weight.data_ptr() for weight in weights}) < len(weights)
        ):
            return
        mode = torch.backends.cudnn.rnn.get_cudnn_mode(rnn.mode)
        with torch.no_grad(), torch.cuda.device_of(first):
            for of_pass in rnn.all_weights:
                # One layer and one direction. The Parameters stay the same objects, with other memory.
                torch._cudnn_rnn_flatten_weight(
                    of_pass, len(of_pass), of_pass[0].shape[1], mode, rnn.hidden_size, rnn.proj_size, 1, False, False
                )

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self.flatten_parameters()
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.flatten_parameters()

    def forward(self, x: torch.Tensor, lengths: Any, hx: Any = None) -> tuple[torch.Tensor, Any]:
        # torch.compiler.disable itself loads the compiler, which takes seconds, and needs a user's name and a folder.
        is_loaded = "torch._dynamo" in sys.modules
        return (self._run_uncompiled if is_loaded else self._run)(x, lengths, hx)  # type: ignore[no-any-return]

    # Compiled, a pass would become a loop over all steps. PyTorch excludes its own RNNs for this reason.
    forward._torchdynamo_disable = True  # type: ignore[attr-defined]
    forward._torchdynamo_disable_msg = _UNCOMPILED  # type: ignore[attr-defined]

    def _run(self, x: torch.Tensor, lengths: Any, hx: Any) -> tuple[torch.Tensor, Any]:
        if isinstance(x, torch.fx.Proxy):  # one node in a graph, as PyTorch's own RNNs
            path = x.tracer.path_of_module(self)
            return x.tracer.create_proxy("call_module", path, (x, lengths, hx), {})  # type: ignore[return-value]
        rnn = self.rnn
        _check_kind(rnn)  # quantize_dynamic replaces it
        for key, hook in rnn._forward_pre_hooks.items():
            # Pruning and weight_norm compute weights so. A hook may not change x.
            changed = hook(rnn, (x,), {}) if key in rnn._forward_pre_hooks_with_kwargs else hook(rnn, (x,))
            if changed is not None:
                raise ValueError(f"{hook} of rnn changes its arguments: give it to the BidirectionalRNN")
        check_tensor(x, "x")
        lengths = as_lengths(x, lengths)
        states = self._checked(x, lengths, hx)
        weights, lengths = rnn.all_weights, lengths.to(x.device, torch.int64)
        of_lanes = lengths[None, :, None]
        x = (x.transpose(0, 1) if rnn.batch_first else x).contiguous()
        steps, batch, _ = x.shape
        size = rnn.proj_size or rnn.hidden_size
        if isinstance(steps, torch.SymInt) and (VERSION < (2, 15) or rnn.mode.startswith("RNN")):
            words = "the exported program has a fixed T: this PyTorch writes out the loop of the RNN"
            warnings.warn(f"{words}. PyTorch 2.15 does so for an nn.RNN only", stacklevel=2)
        step = torch.arange(steps, device=x.device)[:, None, None]
        padding, ends_at = step >= of_lanes, of_lanes.clamp(1, steps)
        once = [_is_one_pass(rnn, layer, x, size) for layer in range(rnn.num_layers)]
        if torch.is_grad_enabled() or is_tracing() or any(once):
            # In both directions padding comes last and cannot change an output. But a NaN there would reach the
            # gradients of the weights. A trace must not depend on whether gradients are on: PyTorch checks it without.
            x = torch.where(padding, x.new_zeros(()), x)
        if hx is None:
            sizes = [size, rnn.hidden_size] if rnn.mode == "LSTM" else [size]
            states = [x.new_zeros(1, batch, of_state).expand(len(weights), -1, -1) for of_state in sizes]

        def run(k: int, x: torch.Tensor, weights: list[torch.Tensor], is_both: bool = False) -> torch.Tensor:
            """Pass k, over one layer in one direction, or in both."""
            initial = [state[k : k + 2].contiguous() if is_both else state[k : k + 1] for state in states]
            hx = initial if rnn.mode == "LSTM" else initial[0]
            # CPU autocast gives a packed LSTM float32, a padded one the lower precision, or an error of the processor.
            is_exact = rnn.mode == "LSTM" and not rnn.proj_size and x.is_cpu
            is_exact = is_exact and x.dtype == weights[0].dtype == torch.float32
            with torch.autocast("cpu", enabled=False) if is_exact else contextlib.nullcontext():
                return _PASSES[rnn.mode](x, hx, weights, rnn.bias, 1, 0.0, rnn.training, is_both, False)[0]

        last = (ends_at - 1).expand(1, batch, size)
        if any(once):
            if x.is_cpu:
                reverse_batch(padding, lengths, of_lanes, 0)  # refuses negative lengths
            right, left = _alignments(step, ends_at)
        ends = []
        for layer in range(rnn.num_layers):
            if layer and rnn.dropout:
                x = torch.nn.functional.dropout(x, rnn.dropout, rnn.training)
            k = 2 * layer
            if once[layer]:
                both = run(k, _aligned(x, x.shape[2], right), _weights_of_both(*weights[k : k + 2]), True)
                x = _aligned(both, size, left)
            else:
                backward = run(k + 1, reverse_batch(x, lengths, of_lanes, 0), weights[k + 1])
                x = torch.cat((run(k, x, weights[k]), reverse_batch(backward, lengths, of_lanes, 0)), 2)
            x = x.masked_fill_(padding, 0)
            ends += [x[:, :, :size].gather(0, last), x[:1, :, size:]]
        h_n = torch.cat(ends)
        if hx is not None:
            h_n = torch.where(of_lanes < 1, states[0].to(h_n.dtype), h_n)
        return (x.transpose(0, 1) if rnn.batch_first else x), LSTMStates(h_n) if rnn.mode == "LSTM" else h_n

    _run_uncompiled = private("torch._compile._disable_dynamo")(_run) if exists("torch._compile._disable_dynamo") else _run

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in list(state_dict):  # of a checkpoint from before rnn was wrapped
            if name.startswith(prefix) and name[len(prefix) :].partition(".")[0] not in {*self._modules, *self._buffers}:
                state_dict[f"{prefix}rnn.{name[len(prefix) :]}"] = state_dict.pop(name)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _checked(self, x: Any, lengths: Any, hx: Any) -> list[torch.Tensor]:
        """Checks the arguments, and returns the initial states: [h_0], for an LSTM [h_0, c_0]."""
        rnn = self.rnn
        if x.dim() != 3 or x.shape[1 if rnn.batch_first else 0] == 0:
            layout = "[B, T, F]" if rnn.batch_first else "[T, B, F]"
            raise ValueError(f"x has shape {list(x.shape)}, must have three dimensions, {layout}, with T of at least 1")
        check_batch([*lengths.shape], [x.shape[0 if rnn.batch_first else 1]])
        if lengths.device not in (x.device, torch.device("cpu")):
            raise ValueError(f"lengths is on {lengths.device}, must be on {x.device}, as x is, or on the CPU")
        if hx is None:
            rnn.check_input(x, None)
            return []
        lstm = rnn.mode == "LSTM"
        if not (isinstance(hx, (tuple, list)) and len(hx) == 2 if lstm else isinstance(hx, torch.Tensor)):
            raise TypeError(f"hx is a {type(hx).__qualname__}, must be {'(h_0, c_0), as rnn is an LSTM' if lstm else 'the tensor h_0'}")
        rnn.check_forward_args(x, hx, None)
        return list(hx) if lstm else [hx]
