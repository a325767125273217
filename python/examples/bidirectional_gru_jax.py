"""A bidirectional GRU over padded sequences in plain JAX. The backward direction reads every sequence reversed, and its
outputs are reversed back. Compares the result with one GRU for each sequence alone."""

import dml_cuda.jax as dj
import jax
import jax.numpy as jnp

BATCH, TIME, FEATURES, STATES = 3, 12, 8, 16


def parameters(key):
    scales = [(FEATURES, 3 * STATES), (STATES, 3 * STATES), (3 * STATES,)]
    return [
        0.3 * jax.random.normal(part, shape)
        for part, shape in zip(jax.random.split(key, 3), scales)
    ]


@jax.jit
def gru(weights, x):
    """The states of [time, batch, states] for x of [time, batch, features]."""
    of_input, of_state, bias = weights

    def step(state, now):
        input_parts, state_parts = (
            jnp.split(now @ of_input + bias, 3, -1),
            jnp.split(state @ of_state, 3, -1),
        )
        reset, update = (
            jax.nn.sigmoid(a + b) for a, b in zip(input_parts[:2], state_parts[:2])
        )
        candidate = jnp.tanh(input_parts[2] + reset * state_parts[2])
        state = update * state + (1 - update) * candidate
        return state, state

    return jax.lax.scan(step, jnp.zeros((x.shape[1], STATES)), x)[1]


@jax.jit
def bidirectional(forward, backward, x, lengths):
    reverse = lambda x: dj.reverse_padded_sequence(
        x, lengths, batch_axis=1, time_axis=0
    )
    both = jnp.concatenate([gru(forward, x), reverse(gru(backward, reverse(x)))], -1)
    return jnp.where(jnp.arange(TIME)[:, None, None] < lengths[:, None], both, 0)


def main():
    forward, backward, x = (jax.random.key(seed) for seed in range(3))
    forward, backward = parameters(forward), parameters(backward)
    x, lengths = jax.random.normal(x, (TIME, BATCH, FEATURES)), jnp.array([12, 5, 1])
    found = bidirectional(forward, backward, x, lengths)
    for n, length in enumerate(lengths.tolist()):
        alone = x[:length, n : n + 1]
        required = jnp.concatenate(
            [gru(forward, alone), gru(backward, alone[::-1])[::-1]], -1
        )
        assert jnp.allclose(found[:length, n], required[:, 0], atol=1e-5), n
    gradient = jax.grad(
        lambda weights: bidirectional(forward, weights, x, lengths).sum()
    )(backward)
    assert all(
        jnp.isfinite(part).all() and jnp.abs(part).max() > 0 for part in gradient
    )
    print(f"equal to one GRU for each of {BATCH} sequences of {lengths.tolist()} steps")


if __name__ == "__main__":
    with jax.default_matmul_precision(
        "highest"
    ):  # by default, products of float32 on a GPU have fewer bits
        main()
