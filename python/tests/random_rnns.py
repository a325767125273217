#!/usr/bin/env python3
"""Random RNNs with lengths, compared with PyTorch's packing: outputs, states and all gradients. A configuration is a
kind, layers, bias, projections, directions, layout, initial states, lengths, padding, how the lengths are given, and
the form that runs.

Usage: python3 random_rnns.py [SEED [COUNT [DEVICE [precision]]]]"""

import contextlib
import copy
import random
import sys
import unittest.mock
import warnings

import dml_cuda.torch as dt
import torch
from dml_cuda.torch import packing, rnn_choice
from torch.nn.utils import rnn as pytorch

KINDS = [
    ("LSTM", {}),
    ("LSTM", {"proj_size": 3}),
    ("GRU", {}),
    ("RNN", {}),
    ("RNN", {"nonlinearity": "relu"}),
]


def pick(draw, device):
    kind, options = draw.choice(KINDS)
    options = {
        **options,
        "num_layers": draw.choice((1, 1, 2, 3)),
        "bias": draw.random() < 0.8,
        "bidirectional": draw.random() < 0.5,
        "batch_first": draw.random() < 0.5,
    }
    steps, batch, features, hidden = (
        draw.randint(1, 24),
        draw.randint(1, 9),
        draw.randint(1, 10),
        draw.randint(4, 12),
    )
    way = draw.choice(("theirs", "ours", "lengths", "lengths"))
    lengths = [draw.randint(1, steps) for _ in range(batch)]
    if draw.random() < 0.1:
        lengths = [steps] * batch
    elif draw.random() < 0.5:
        lengths[draw.randrange(batch)] = steps
    if way == "lengths" and batch > 1 and draw.random() < 0.3:
        lengths[draw.randrange(batch)] = 0
    on_device = device != "cpu" and way != "theirs" and draw.random() < 0.5
    is_sorted = way != "lengths" and draw.random() < 0.3
    return dict(
        kind=kind,
        options=options,
        size=(steps, batch, features, hidden),
        way=way,
        on_device=on_device,
        lengths=sorted(lengths, reverse=True) if is_sorted else lengths,
        is_sorted=is_sorted,
        hx=draw.random() < 0.5,
        padding=draw.choice((0.0, float("nan"), float("inf"), 1e30)),
        form=draw.choice((None, "padded", "padded", 2, 3, 5, "packed")),
        grad=draw.random() < 0.8,
    )


@contextlib.contextmanager
def running(form):
    """Every call with lengths on the host takes a form, and every pack keeps its padded batch. A number is that of the
    segments of time."""
    is_cut = isinstance(form, int)

    def chosen(rnn, x, batch, is_kept):
        cannot = (
            batch is None or not batch.rows or (form == "packed" and batch.has_empty)
        )
        return "padded" if cannot else "segments" if is_cut else form

    with contextlib.ExitStack() as stack:
        stack.enter_context(unittest.mock.patch.object(rnn_choice, "form", chosen))
        stack.enter_context(
            unittest.mock.patch.object(rnn_choice, "SEGMENTS", form if is_cut else 4)
        )
        stack.enter_context(
            unittest.mock.patch.object(packing, "keeps", lambda *_: True)
        )
        yield


def leaves(value):
    return (
        [value]
        if isinstance(value, torch.Tensor)
        else [leaf for part in value or () for leaf in leaves(part)]
    )


def some(states, rows):
    return (
        states
        if states is None
        else tuple(s[:, rows] for s in states)
        if isinstance(states, tuple)
        else states[:, rows]
    )


def packed(rnn, x, lengths, hx, steps):
    """PyTorch's way, for the rows with a length. The other rows have zeros, and keep their states."""
    first, rows = rnn.batch_first, (lengths > 0).nonzero().flatten().to(x.device)
    pack = pytorch.pack_padded_sequence(
        x.index_select(1 - first, rows),
        lengths[rows.cpu()],
        first,
        enforce_sorted=False,
    )
    found, states = torch.nn.modules.rnn.__dict__[rnn.mode.partition("_")[0]].forward(
        rnn, pack, some(hx, rows)
    )
    found = pytorch.pad_packed_sequence(found, first, total_length=steps)[0]
    shape = list(found.shape)
    shape[1 - first] = len(lengths)
    output = found.new_zeros(shape).index_copy(1 - first, rows, found)
    ends = []
    for n, state in enumerate(leaves(states)):
        given = (
            leaves(hx)[n]
            if hx is not None
            else state.new_zeros(len(state), len(lengths), state.shape[2])
        )
        ends.append(given.index_copy(1, rows, state))
    return output, *ends


def run(rnn, x, lengths, hx, c, steps):
    first = rnn.batch_first
    given = lengths.to(x.device) if c["on_device"] else lengths
    if c["way"] == "lengths":
        output, states = rnn(x, hx, lengths=given)
    else:
        pack, unpack = (
            (dt.pack_padded_sequence, dt.pad_packed_sequence)
            if c["way"] == "ours"
            else (pytorch.pack_padded_sequence, pytorch.pad_packed_sequence)
        )
        output, states = rnn(pack(x, given, first, enforce_sorted=c["is_sorted"]), hx)
        output, counts = unpack(output, first, total_length=steps)
        assert torch.equal(counts.cpu(), lengths), (counts, lengths)
    return output, *leaves(states)


def compare(c, seed, device, dtype=torch.float64):
    """The largest difference, over the larger of 1 and the largest required value."""
    torch.manual_seed(seed)
    steps, batch, features, hidden = c["size"]
    like = {"device": device, "dtype": dtype}
    rnn = getattr(dt, c["kind"])(features, hidden, **c["options"], **like)
    lengths = torch.tensor(c["lengths"])
    x = torch.randn(steps, batch, features, **like)
    x[(torch.arange(steps)[:, None] >= lengths).to(device)] = c["padding"]
    x = (x.transpose(0, 1).contiguous() if rnn.batch_first else x).requires_grad_(
        c["grad"]
    )
    rows, size = rnn.num_layers * (1 + rnn.bidirectional), rnn.proj_size or hidden
    hx = None
    if c["hx"]:
        hx = tuple(
            torch.randn(rows, batch, s, **like).requires_grad_(c["grad"])
            for s in (size, hidden)[: 1 + (c["kind"] == "LSTM")]
        )
        hx = hx if c["kind"] == "LSTM" else hx[0]
    results = []
    for ours in (True, False):
        forced = contextlib.nullcontext() if c["form"] is None else running(c["form"])
        with forced, torch.set_grad_enabled(c["grad"]):
            found = (
                run(rnn, x, lengths, hx, c, steps)
                if ours
                else packed(rnn, x, lengths, hx, steps)
            )
        of = []
        if c["grad"]:
            weights = [
                torch.arange(1.0, 1 + part.numel(), **like).sin().view(part.shape)
                for part in found
            ]
            total = sum((part * weight).sum() for part, weight in zip(found, weights))
            of = torch.autograd.grad(
                total, [x, *leaves(hx), *rnn.parameters()], allow_unused=True
            )
            of = [part if part is not None else torch.zeros(()) for part in of]
        results.append([*found, *of])
    worst = 0.0
    for a, b in zip(*results, strict=True):
        assert a.shape == b.shape, (a.shape, b.shape)
        assert bool(a.isfinite().all() == b.isfinite().all()), "not finite"
        scale = max(1.0, b.abs().max().item()) if b.numel() else 1.0
        worst = max(worst, (a - b).abs().max().item() / scale if a.numel() else 0.0)
    return worst


def precision(c, seed, device, dtype, autocast=None):
    """The error of this library and that of packing, against packing in float64: relative, the worst of all results."""
    steps, batch, features, hidden = c["size"]
    torch.manual_seed(seed)
    exact = getattr(dt, c["kind"])(
        features, hidden, **c["options"], device=device, dtype=torch.float64
    )
    lengths, x = (
        torch.tensor(c["lengths"]),
        torch.randn(steps, batch, features, device=device, dtype=torch.float64),
    )
    x = x.transpose(0, 1).contiguous() if exact.batch_first else x
    results = []
    for way, kind in ((None, torch.float64), (None, dtype), ("ours", dtype)):
        rnn = copy.deepcopy(exact).to(kind)
        one = x.to(kind).requires_grad_()
        with (
            running("padded"),
            torch.autocast(
                "cuda", autocast, enabled=bool(autocast and kind != torch.float64)
            ),
        ):
            found = (
                packed(rnn, one, lengths, None, steps)
                if way is None
                else run(rnn, one, lengths, None, {**c, "way": way}, steps)
            )
        total = sum(
            (
                part.double()
                * torch.arange(1.0, 1 + part.numel(), device=device)
                .sin()
                .view(part.shape)
            ).sum()
            for part in found
        )
        results.append(
            [
                part.double()
                for part in (
                    *found,
                    *torch.autograd.grad(total, [one, *rnn.parameters()]),
                )
            ]
        )
    error = lambda found: max(
        ((a - b).norm() / (b.norm() + 1e-30)).item() for a, b in zip(found, results[0])
    )
    return error(results[2]), error(results[1])


def precisions(seed, count, device):
    warnings.simplefilter("ignore")
    draw, ratios = random.Random(seed), []
    for n in range(count):
        c = pick(draw, device)
        c["lengths"], c["on_device"], c["is_sorted"] = (
            [max(1, length) for length in c["lengths"]],
            False,
            False,
        )
        if draw.random() < 0.3:
            c["size"] = (
                *c["size"][:2],
                128,
                128 if "proj_size" in c["options"] else draw.choice((128, 256)),
            )
        dtype, autocast = draw.choice(
            (
                (torch.float32, None),
                (torch.float16, None),
                (torch.bfloat16, None),
                (torch.float32, torch.float16),
            )
        )
        ours, theirs = precision(c, seed + n, device, dtype, autocast)
        ratios.append(ours / theirs if theirs else 1.0 if not ours else float("inf"))
        if ratios[-1] > 2:
            print(n, ours, theirs, dtype, autocast, c, flush=True)
    ratios.sort()
    print(
        f"{count} configurations of seed {seed}: error over packing's: median {ratios[count // 2]:.2f}, largest {ratios[-1]:.2f}, {sum(r > 2 for r in ratios)} over 2"
    )


def main(seed, count, device):
    warnings.simplefilter("ignore")
    draw, differ = random.Random(seed), 0
    for n in range(count):
        c = pick(draw, device)
        try:
            error = compare(c, seed + n, device)
        except Exception as problem:
            error = repr(problem)
        if not (isinstance(error, float) and error < 1e-9):
            differ += 1
            print(n, error, c, flush=True)
    print(
        f"{count} configurations of seed {seed} on {device}: {differ} differ from packing"
    )
    return differ


if __name__ == "__main__":
    torch.set_num_threads(1)
    given = sys.argv[1:]
    if given[3:] == ["precision"]:
        sys.exit(precisions(int(given[0]), int(given[1]), given[2]))
    sys.exit(
        bool(
            main(
                int(given[0]) if given else 1,
                int(given[1]) if given[1:] else 500,
                given[2] if given[2:] else "cpu",
            )
        )
    )
