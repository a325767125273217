"""Every way of calling a reversal under every transform, tracer and mode of PyTorch. A gather and `flip` in plain
PyTorch give the required values. Where the gather fails in this version of PyTorch, a reversal may fail too, but it may
not be wrong. Only torch.func.functionalize
refuses what a gather can do: operators in place that are not PyTorch's own."""

import functools
import unittest
import warnings

from with_torch import (
    CUDA,
    Module,
    Seen,
    dt,
    model,
    torch,
)  # first: without PyTorch it skips this module

from torch import func as F
from torch._subclasses import FakeTensor
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

DEVICE = "cuda" if CUDA else "cpu"


def in_place(write):
    def call(x, lengths):
        y = x * 2
        write(y, lengths)
        return y

    return call


# Each returns twice the reversal, along the last dimension of [..., 3, 4], with lengths [3, 1].
WAYS = {
    "copying": lambda x, lengths: dt.reverse_subsequences(x * 2, lengths, -1),
    "padded": lambda x, lengths: dt.reverse_padded_sequence(
        x * 2, lengths[:, 0], batch_first=True
    ),
    "in place": in_place(lambda y, lengths: dt.reverse_subsequences_(y, lengths, -1)),
    "operator": lambda x, lengths: torch.ops.dml_cuda.reverse_subsequences(
        x * 2, lengths, -1
    ),
    "operator in place": in_place(
        lambda y, lengths: torch.ops.dml_cuda.reverse_subsequences_(y, lengths, -1)
    ),
}
PLAIN = {
    "copying": lambda x, lengths: model(x * 2, lengths, -1),
    "in place": in_place(lambda y, lengths: y.copy_(model(y, lengths, -1))),
}
FLIP = {
    "copying": lambda x, lengths: (x * 2).flip(-1),
    "in place": in_place(lambda y, lengths: y.copy_(y.flip(-1))),
}


def under(mode, call):
    with mode:
        return call()


def backward(f, x, w):
    x = x.clone().requires_grad_()
    (f(x) * w).sum().backward()
    return x.grad


def twice_backward(f, x, w):
    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad((f(x) ** 3 * w).sum(), x, create_graph=True)
    return torch.autograd.grad((first * w).sum(), x)[0]


def batched_backward(f, x, w):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(
        f(x), x, torch.stack([w, 2 * w, x.detach()]), is_grads_batched=True
    )[0]


def dual(f, x, w):
    with forward_ad.dual_level():
        return list(forward_ad.unpack_dual(f(forward_ad.make_dual(x, w))))


def dual_backward(f, x, w):
    """Forward over reverse."""
    x = x.clone().requires_grad_()
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(x, w)) ** 2).tangent
    return torch.autograd.grad(tangent.sum(), x)[0]


def total(f, w):
    return lambda x: (f(x) * w).sum()


# Transforms of f at x, with the weights or tangents w. The same for eager, traced, exported and compiled functions.
TRANSFORMS = {
    "value": lambda f, x, w: f(x),
    "backward": backward,
    "twice backward": twice_backward,
    "batched backward": batched_backward,
    "grad": lambda f, x, w: F.grad(total(f, w))(x),
    "vjp": lambda f, x, w: F.vjp(f, x)[1](w)[0],
    "jvp": lambda f, x, w: list(F.jvp(f, (x,), (w,))),
    "jacrev": lambda f, x, w: F.jacrev(f)(x),
    "jacfwd": lambda f, x, w: F.jacfwd(f)(x),
    "hessian": lambda f, x, w: F.hessian(lambda x: (f(x) ** 3 * w).sum())(x),
    "linearize": lambda f, x, w: F.linearize(f, x)[1](w),
    "linearize a product": lambda f, x, w: F.linearize(lambda x: f(x) * x, x)[1](w),
    "jvp of grad": lambda f, x, w: list(
        F.jvp(F.grad(lambda x: (f(x) ** 2).sum()), (x,), (w,))
    ),
    "grad of jvp": lambda f, x, w: F.grad(
        lambda x: (F.jvp(f, (x,), (w,))[1] * x).sum()
    )(x),
    "jvp of jvp": lambda f, x, w: list(
        F.jvp(lambda x: F.jvp(lambda x: f(x) ** 2, (x,), (w,))[1], (x,), (w,))
    ),
    "vmap": lambda f, x, w: F.vmap(f)(torch.stack([x, w])),
    "vmap in chunks": lambda f, x, w: F.vmap(f, chunk_size=1)(torch.stack([x, w])),
    "vmap of vmap": lambda f, x, w: F.vmap(F.vmap(f))(torch.stack([x, w])[None]),
    "vmap of grad": lambda f, x, w: F.vmap(F.grad(total(f, w)))(torch.stack([x, w])),
    "vmap of jvp": lambda f, x, w: F.vmap(lambda x, w: F.jvp(f, (x,), (w,))[1])(
        torch.stack([x, w]), torch.stack([w, x])
    ),
    "grad of vmap": lambda f, x, w: F.grad(lambda xs: (F.vmap(f)(xs) * w).sum())(
        torch.stack([x, w])
    ),
    "functionalize": lambda f, x, w: F.functionalize(f)(x),
    "functionalize of grad": lambda f, x, w: F.functionalize(F.grad(total(f, w)))(x),
    "dual": dual,
    "dual backward": dual_backward,
    "autograd.functional.jvp": lambda f, x, w: list(
        torch.autograd.functional.jvp(f, x, w)
    ),
    "autograd.functional.jacobian": lambda f, x, w: torch.autograd.functional.jacobian(
        f, x, strategy="forward-mode", vectorize=True
    ),
    "checkpoint": lambda f, x, w: backward(
        lambda x: checkpoint(f, x, use_reentrant=False), x, w
    ),
    "saved tensors hooks": lambda f, x, w: under(
        torch.autograd.graph.saved_tensors_hooks(
            lambda t: t.cpu(), lambda t: t.to(DEVICE)
        ),
        lambda: backward(f, x, w),
    ),
    "no_grad": lambda f, x, w: under(
        torch.no_grad(), lambda: f(x.clone().requires_grad_())
    ),
    "inference_mode": lambda f, x, w: under(
        torch.inference_mode(), lambda: f(x)
    ).clone(),
    "autocast": lambda f, x, w: under(
        torch.autocast(DEVICE, torch.bfloat16), lambda: backward(f, x, w)
    ),
}
MODES = {
    "FlopCounterMode": lambda call: under(FlopCounterMode(display=False), call),
    "a dispatch mode": lambda call: under(Seen(), call),
    "torch.device": lambda call: under(torch.device(DEVICE), call),
}


def module(f):
    class OfX(torch.nn.Module):
        def forward(self, x):
            return f(x)

    return OfX()


def decomposed(f, x):
    return torch.export.export(module(f), (x,)).run_decompositions().module()


# Programs made of f.
PROGRAMS = {
    "jit.trace": lambda f, x: torch.jit.trace(f, (x,)),
    "make_fx": lambda f, x: make_fx(f)(x),
    "make_fx, symbolic": lambda f, x: make_fx(
        f, tracing_mode="symbolic", _allow_non_fake_inputs=True
    )(x),
    "make_fx, before dispatch": lambda f, x: make_fx(f, pre_dispatch=True)(x),
    "fx.symbolic_trace": lambda f, x: torch.fx.symbolic_trace(module(f)),
    "export": lambda f, x: torch.export.export(module(f), (x,), strict=False).module(),
    "export, strict": lambda f, x: torch.export.export(
        module(f), (x,), strict=True
    ).module(),
    "export, decomposed": decomposed,
}
# The transforms of a program that see another path of PyTorch.
OF_PROGRAMS = [
    "value",
    "backward",
    "twice backward",
    "grad",
    "jvp",
    "jacfwd",
    "linearize",
    "vmap",
    "vmap of grad",
    "dual",
    "functionalize",
]
# What is traced, exported or compiled with its transform.
INSIDE = [
    "value",
    "backward",
    "grad",
    "vjp",
    "jvp",
    "jacrev",
    "jacfwd",
    "hessian",
    "linearize",
    "jvp of grad",
    "vmap",
    "vmap of grad",
    "vmap of jvp",
    "dual",
    "functionalize",
]


def compiled(backend, **options):
    def transform(of):
        def run(f, x, w):
            torch._dynamo.reset()
            return torch.compile(lambda x, w: of(f, x, w), backend=backend, **options)(
                x, w
            )

        return run

    return transform


def traced(of, **options):
    return lambda f, x, w: make_fx(lambda x, w: of(f, x, w), **options)(x, w)(x, w)


def exported(of):
    return lambda f, x, w: torch.export.export(
        Module(lambda x, w: of(f, x, w)), (x, w), strict=False
    ).module()(x, w)


def eager():
    """What a case is, its transform, and a function of f, x and w."""
    for name, of in TRANSFORMS.items():
        yield name, name, of
    for mode, enter in MODES.items():
        for name in OF_PROGRAMS:
            yield (
                f"{mode}: {name}",
                name,
                lambda f, x, w, of=TRANSFORMS[name], enter=enter: enter(
                    lambda: of(f, x, w)
                ),
            )


def programs():
    for kind, make in PROGRAMS.items():
        # All transforms share a program.
        program = functools.cache(
            lambda f, make=make: make(f, torch.ones(3, 4, device=DEVICE))
        )
        for name in OF_PROGRAMS:
            if CUDA and (name, kind) == ("functionalize", "jit.trace"):
                continue  # on a GPU, the gather's fused kernel reads memory that functional tensors do not have
            yield (
                f"{name} of {kind}",
                name,
                lambda f, x, w, of=TRANSFORMS[name], program=program: of(
                    program(f), x, w
                ),
            )
    for name in INSIDE:
        of = TRANSFORMS[name]
        yield f"compiled: {name}", name, compiled("aot_eager")(of)
        if name not in ("backward", "dual"):
            yield f"make_fx: {name}", name, traced(of)
            yield f"exported: {name}", name, exported(of)
    for name in ("grad", "vjp", "jvp", "vmap of grad"):
        yield (
            f"compiled as one graph: {name}",
            name,
            compiled("aot_eager", fullgraph=True)(TRANSFORMS[name]),
        )
    for name in ("value", "backward", "jvp", "dual"):
        yield f"compiled by eager: {name}", name, compiled("eager")(TRANSFORMS[name])
        yield (
            f"compiled by inductor: {name}",
            name,
            compiled("inductor")(TRANSFORMS[name]),
        )
        yield (
            f"compiled with dynamic shapes: {name}",
            name,
            compiled("aot_eager", dynamic=True)(TRANSFORMS[name]),
        )


def outcome(of, f, x, w):
    """What a transform gives, or the exception."""
    try:
        return of(f, x.clone(), w.clone())
    except Exception as error:  # whatever PyTorch raises
        return error
    finally:
        # A failure may leave levels.
        torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(0)
        while forward_ad._current_level >= 0:
            forward_ad.exit_dual_level()


def is_fake(found):
    """Whether an outcome is a fake tensor. Some versions of PyTorch return one from an exported program."""
    return any(
        isinstance(part, FakeTensor)
        for part in (found if isinstance(found, list) else [found])
    )


def same(found, required):
    if isinstance(required, list):
        return isinstance(found, list) and all(map(same, found, required))
    return type(found) is torch.Tensor and torch.equal(found, required)


class Transforms(unittest.TestCase):
    def check(self, cases, reference, of_lanes, least):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        x, w = (torch.randint(-4, 5, (3, 4), device=DEVICE).float() for _ in range(2))
        lengths = torch.tensor(of_lanes, device=DEVICE)
        bind = functools.cache(lambda f: lambda x: f(x, lengths))
        right = 0
        for case, transform, of in cases:
            for way, f in WAYS.items():
                plain = reference["in place" if "in place" in way else "copying"]
                found = outcome(of, bind(f), x, w)
                with self.subTest(way, case=case):
                    if isinstance(found, Exception):
                        refused = isinstance(outcome(of, bind(plain), x, w), Exception)
                        if not (
                            refused or ("in place" in way and "functionalize" in case)
                        ):
                            raise AssertionError("a gather does not fail") from found
                        continue
                    right += 1
                    required = TRANSFORMS[transform](bind(reference["copying"]), x, w)
                    self.assertTrue(
                        same(found, required)
                        or is_fake(outcome(of, bind(plain), x, w)),
                        f"{found} is not {required}",
                    )
        print(f"{right} right", flush=True)
        self.assertGreaterEqual(right, least)

    def test_eager_calls_as_a_gather(self):
        self.check(eager(), PLAIN, [[1], [3], [4]], 300)

    def test_eager_calls_as_flip(self):
        self.check(eager(), FLIP, [[4], [4], [4]], 300)

    def test_programs_as_a_gather(self):
        self.check(programs(), PLAIN, [[1], [3], [4]], 500)
