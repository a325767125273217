"""Changes the classes of a model's RNNs to this package's, and back.

Only the class of a module changes, `part.__class__ = LSTM`, so that its parameters, buffers, hooks and names stay as
they are. A subclass of the user's that wraps PyTorch's forward gets a class that is made here, with both bases:

    Encoder(torch.nn.LSTM)   becomes   Encoder(Encoder, dml_cuda.torch.LSTM)

Then its own forward runs, and `super().forward` in it is this package's."""

import types
import warnings
from typing import Any

import torch
from torch.nn.utils import parametrize

from .rnn import OURS, THEIRS, WithLengths, counterpart, pytorchs_class

# What a subclass may define besides names of its own.
_OVERRIDDEN = {"forward", "reset_parameters", "extra_repr"}
_PACKING = {"PackedSequence", "pack_padded_sequence"}


def _is_wrapper(kind: type) -> bool:
    """Whether a subclass of PyTorch's adds only names of its own, and has PyTorch's forward or one that hands packs to
    it."""
    reserved = {*vars(WithLengths), *vars(torch.nn.RNNBase)} - _OVERRIDDEN
    for part in kind.__mro__[: kind.__mro__.index(pytorchs_class(kind))]:
        if any(name in reserved and not name.startswith("__") for name in vars(part)):
            return False
        if "forward" in vars(part):
            code = getattr(vars(part)["forward"], "__code__", None)
            if code is None or "super" not in code.co_names:
                return False
            if not _PACKING.intersection(code.co_names):
                return False
    return True


def _converted(kind: Any) -> Any:
    """The class for a module of a class of PyTorch, or of a subclass that wraps it. None for other subclasses."""
    plain = kind.__bases__[0] if kind.__module__ == parametrize.__name__ else kind
    if plain not in OURS and _is_wrapper(plain):
        names = {
            "__module__": plain.__module__,
            "__qualname__": plain.__qualname__,
            "__reduce_ex__": _reduce,
        }
        OURS[plain] = type(plain.__name__, (plain, OURS[pytorchs_class(plain)]), names)
        THEIRS[OURS[plain]] = plain
    return counterpart(kind, OURS)


def _reduce(rnn: torch.nn.Module, _: Any) -> Any:
    """For pickle, which does not find a class that is made."""
    return _made_again, (THEIRS[type(rnn)],), rnn.__getstate__()  # type: ignore[operator]


def _made_again(kind: Any) -> Any:
    return object.__new__(_converted(kind))


def _kept_forwards(part: Any) -> list[str]:
    """The names under which a module keeps its own forward, bound to it. accelerate keeps one for its hooks to call."""
    forward = types.MethodType(type(part).forward, part)
    names = []
    for name, value in vars(part).items():
        if isinstance(value, types.MethodType) and value == forward:
            names.append(name)
    return names


def _change_class(
    name: str, part: Any, found: Any, reason: str = "has a class of its own"
) -> None:
    """Changes the class of a module. If there is none, or a function hides its forward, it warns who called the
    caller."""
    kind: Any = type(part)
    kept = _kept_forwards(part)
    if found is None:
        reason = f"{reason}, {kind.__module__}.{kind.__qualname__}"
    elif "forward" in vars(part) and not kept:
        reason = "has a forward that was set on the instance"
    else:
        part.__class__ = found
        for name in kept:
            vars(part)[name] = types.MethodType(found.forward, part)
        return
    warnings.warn(f"{name or 'the module'} {reason}, and stays as it is", stacklevel=3)


def _is_quantized(part: torch.nn.Module) -> bool:
    kind = type(part)
    is_rnn = kind.__name__ in ("LSTM", "GRU", "RNN")
    return is_rnn and kind.__module__.startswith("torch.ao.nn.quant")


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
        if _is_quantized(part):
            has_rnns = True
            _change_class(name, part, None, "is quantized")
        elif isinstance(part, (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)):
            has_rnns = True
            if not isinstance(part, WithLengths):
                _change_class(name, part, _converted(type(part)))
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
            _change_class(name, part, counterpart(type(part), THEIRS))
    return module
