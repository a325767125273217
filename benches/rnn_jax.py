#!/usr/bin/env python3
"""Times LSTMs over sequences of random lengths next to `jax.experimental.rnn.lstm`, which is cuDNN's own call with
padded input and lengths. Both are float32 with TF32. Prints milliseconds in Markdown. `small` runs one small size, also
without a GPU, where JAX has a plain implementation.

Usage: PYTHONPATH=python/src python3 benches/rnn_jax.py [small]"""

import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time

if not set(sys.argv[1:]) <= {"small", "in_jax"}:
    sys.exit(__doc__)
SMALL = "small" in sys.argv
# JAX runs in a process of its own, so that neither library takes the other's memory.
IN_JAX = "in_jax" in sys.argv
# T, B, and the features, which are as many as the hidden units.
SIZES = [(8, 4, 3)] if SMALL else [(64, 16, 128), (256, 64, 512), (1000, 128, 256), (4000, 32, 64)]  # fmt: skip
DIRECTIONS = (2, 1)
ROUNDS = 1 if SMALL else 7


def lengths_of(steps, batch):
    """Lengths with a mean of half of the steps. The first has all steps."""
    draw = random.Random(1)
    lengths = [max(1, round(steps * draw.random())) for _ in range(batch)]
    lengths[0] = steps
    return lengths


def time_of(call, wait):
    """The median of the milliseconds of a call, with its work on the GPU."""
    times = []
    for _ in range(ROUNDS + 2):
        start = time.perf_counter()
        wait(call())
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[2:])


def of_jax(steps, batch, features, directions):
    """The times of inference and of a training step."""
    import jax
    from jax.experimental import rnn
    from jax import numpy as jnp

    key = jax.random.PRNGKey(0)
    x = jax.random.normal(key, (batch, steps, features))
    is_both = directions == 2
    weights = rnn.init_lstm_weight(key, features, features, 1, is_both)
    state = jnp.zeros((directions, batch, features))
    lengths = jnp.array(lengths_of(steps, batch), jnp.int32)
    sizes = (features, features, 1, 0.0, is_both)  # 1 layer, no dropout
    if jax.default_backend() == "gpu":
        precision = jax.lax.Precision.HIGH

        def output(x, weights):
            return rnn.lstm(x, state, state, weights, lengths, *sizes, precision)[0]
    else:

        def output(x, weights):
            parts = rnn.unpack_lstm_weights(weights, features, features, 1, is_both)
            return rnn.lstm_ref(x, state, state, *parts, lengths, *sizes)[0]

    infer = jax.jit(output)
    train = jax.jit(jax.grad(lambda x, w: output(x, w).sum(), argnums=(0, 1)))
    return [
        time_of(lambda call=call: call(x, weights), jax.block_until_ready)
        for call in (infer, train)
    ]


def of_this_library(steps, batch, features, directions):
    """The times of this library's LSTM, with a pack of its own."""
    import dml_cuda.torch as dt
    import torch
    from torch_times import DEVICE, synchronize

    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    lstm = dt.LSTM(features, features, bidirectional=directions == 2).to(DEVICE)
    x = torch.randn(steps, batch, features, device=DEVICE, requires_grad=True)
    lengths = torch.tensor(lengths_of(steps, batch))

    def output():
        pack = dt.pack_padded_sequence(x, lengths, enforce_sorted=False)
        return dt.pad_packed_sequence(lstm(pack)[0])[0]

    def train():
        for part in (x, *lstm.parameters()):
            part.grad = None
        output().sum().backward()

    return [
        time_of(call, lambda _: synchronize())
        for call in (torch.no_grad()(output), train)
    ]


def main():
    cases = list(itertools.product(SIZES, DIRECTIONS))
    if IN_JAX:
        print(json.dumps([of_jax(*size, directions) for size, directions in cases]))
        return
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], "in_jax"],
        stdout=subprocess.PIPE,
        env=environment,
    )
    if done.returncode:
        sys.exit("JAX's LSTM was not timed")
    theirs = json.loads(done.stdout)
    print(
        "| LSTM, [T, B, F], directions, mode | JAX's lstm, ms | this library | speedup |"
    )
    print("| --- | --- | --- | --- |")
    for (size, directions), times in zip(cases, theirs):
        ours = of_this_library(*size, directions)
        for mode, jax_ms, our_ms in zip(("inference", "training"), times, ours):
            name = f"{list(size)}, {directions}, {mode}"
            print(f"| {name} | {jax_ms:.3f} | {our_ms:.3f} | {jax_ms / our_ms:.2f} |")


main()
