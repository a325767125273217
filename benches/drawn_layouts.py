"""Draws random layouts of reversals, for benches/random_layouts.py. A seed always draws the same ones."""

import math

# Bytes of a tensor as powers of two: the least and the most.
USUAL, LARGE, SMALL = (9, 27), (27, 32), (9, 13)
# How often each kind is drawn.
KINDS = {
    "block": 5,
    "block time first": 2,
    "lanes": 4,
    "side": 3,
    "side alone": 2,
    "between": 2,
    "transposed in": 2,
    "transposed out": 1,
    "padded block": 2,
    "padded lanes": 1,
    "padded side": 1,
    "sliced": 1,
    "any": 2,
}


def packed(sizes, order=None):
    """The strides of a tensor whose memory has the dimensions in that order, outermost first."""
    strides, elements = [0] * len(sizes), 1
    for d in reversed(list(order or range(len(sizes)))):
        strides[d], elements = elements, elements * sizes[d]
    return strides


class Draw:
    """Draws the sizes, the lengths and the strides of one layout. Every random number comes from `r`, in order."""

    def __init__(self, r, powers):
        self.r = r
        self.kind = r.choices(list(KINDS), KINDS.values())[0]
        self.width = r.choice([1, 2, 2, 4, 4, 8])
        self.elements = max(64, int(2 ** r.uniform(*powers)) // self.width)
        self.longest = 40 if r.random() < 0.2 else 65536

    def size(self, lowest, largest):
        """Evenly by its logarithm, often a power of two, a multiple of 8 or one of 100."""
        value = 2 ** self.r.uniform(math.log2(lowest), math.log2(largest + 0.99))
        how = self.r.random()
        if how < 0.3:
            value = 2 ** round(math.log2(value))
        elif how < 0.5:
            value = 8 * max(1, round(value / 8))
        elif how < 0.6 and value >= 60:
            value = 100 * round(value / 100)
        return max(lowest, min(largest, int(value)))

    def time(self, largest):
        return self.size(2, max(2, min(largest, self.longest)))

    def features(self, largest):
        most = 16 if self.r.random() < 0.25 else 4096
        return self.size(1, max(1, min(largest, most)))

    def shape(self):
        """The axis, the sizes, and the sizes of the lengths."""
        n, r = self.elements, self.r
        if self.kind in ("lanes", "padded lanes"):
            most = self.longest if self.longest == 40 else 1 << 22
            t = self.size(2, min(n, most))
            sizes = [max(1, n // t), t]
            return 1, sizes, [sizes[0], 1]
        if self.kind == "side alone":
            t = self.time(n // 2)
            sizes = [t, max(1, n // t)]
            return 0, sizes, [1, sizes[1]]
        if self.kind == "between":
            d = self.features(n // 8)
            h = self.size(2, 64)
            t = self.time(max(2, n // d // h))
            sizes = [max(1, n // (t * d * h)), t, h, d]
            return 1, sizes, [sizes[0], 1, r.choice([1, h]), 1]
        if self.kind == "any":
            return self.any_shape()
        is_transposed = self.kind.startswith("transposed")
        if is_transposed:
            d = self.size(8, max(8, min(4096, n // 8)))
        else:
            d = self.features(n // 2)
        t = self.time(max(2, n // d))
        sizes = [max(1, n // (t * d)), t, d]
        lengths = [sizes[0], 1, 1]
        is_side = self.kind in ("side", "padded side")
        if is_side or (is_transposed and r.random() < 0.5):
            lengths[2] = d
        if self.kind == "block time first":
            return 0, [t, sizes[0], d], [1, sizes[0], 1]
        return 1, sizes, lengths

    def any_shape(self):
        r, left = self.r, self.elements
        rank = r.randint(2, 5)
        sizes = [1] * rank
        for d in range(rank):
            sizes[d] = self.size(1, max(1, int(3 * left ** (1 / (rank - d)))))
            left = max(1, left // sizes[d])
        axis = r.randrange(rank)
        sizes[axis] = max(2, sizes[axis])
        lengths = []
        for d, value in enumerate(sizes):
            lengths.append(1 if d == axis or r.random() < 0.4 else value)
        return axis, sizes, lengths

    def strides(self, sizes):
        """The strides of the input and of the output."""
        r, plain = self.r, packed(sizes)
        if self.kind.startswith("transposed"):
            orders = [[0, 2, 1], [2, 0, 1], [1, 2, 0], [2, 1, 0]]
            order = packed(sizes, r.choice(orders))
            return (order, plain) if self.kind == "transposed in" else (plain, order)
        if self.kind.startswith("padded"):
            multiple = r.choice([1, 1, 8, 32])
            pitch = -(-(sizes[-1] + r.choice([1, 3, 8, 16, 64])) // multiple) * multiple
            which = r.choice(["in", "out", "both"])
            rows = packed([*sizes[:-1], pitch])
            return (
                plain if which == "out" else rows,
                plain if which == "in" else rows,
            )
        if self.kind == "sliced":
            if r.random() < 0.5:
                return [2 * stride for stride in plain], plain
            return packed([*sizes[:-1], sizes[-1] * r.choice([2, 3])]), plain
        if self.kind == "any":
            orders = [list(range(len(sizes))) for _ in range(2)]
            for order, often in zip(orders, (0.5, 0.3)):
                if r.random() < often:
                    r.shuffle(order)
            return packed(sizes, orders[0]), packed(sizes, orders[1])
        return plain, plain


def draw(r, powers):
    """A layout of a random kind, whose bytes are between two powers of two: its columns of `LAYOUT` but the seed."""
    while True:
        layout = Draw(r, powers)
        axis, sizes, lengths = layout.shape()
        in_strides, out_strides = layout.strides(sizes)
        # A tensor with gaps may have more elements than DirectML counts.
        fits = max(span(sizes, in_strides), span(sizes, out_strides)) <= 2**32 - 1
        size = math.prod(sizes) * layout.width
        if fits and 0.7 * 2 ** powers[0] <= size <= 1.3 * 2 ** powers[1]:
            return [
                layout.kind,
                layout.width,
                sizes,
                axis,
                in_strides,
                out_strides,
                lengths,
            ]


def span(sizes, strides):
    """Elements from the first to the last."""
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))
