"""What decides the figures of a record, as short hashes. A comment, a message or a formatter changes none of them.

`kernels` covers the machine code, the choices for recorded layouts, and the coefficients they come from. `rnn` covers
what runs an RNN with lengths. benches/record.py writes both into records, and scripts/tables.py compares them with those
of the working tree, so that a table names what was measured with other kernels."""

import hashlib
import io
import pathlib
import re
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
RNN = ("rnn", "rnn_choice", "rnn_one_pass", "rnn_pass", "rnn_passes")
PACKS = ("packed_rows", "packing", "packs", "padded_reversal")
LENGTH = 12


def hashes():
    """The hashes of the working tree, by name."""
    kernels = hashlib.sha256()
    for path in sorted((ROOT / "kernels/prebuilt").glob("*.ptx")):
        kernels.update(path.name.encode() + path.read_bytes())
    kernels.update((ROOT / "tests/golden/choices.txt").read_bytes())
    costs = (ROOT / "src/cuda/costs.rs").read_text(encoding="utf-8")
    kernels.update(re.sub(r"//.*|\s", "", costs).encode())
    rnn = hashlib.sha256()
    for name in RNN + PACKS:
        path = ROOT / f"python/src/dml_cuda/torch/{name}.py"
        rnn.update(plain_code(path.read_text(encoding="utf-8")).encode())
    return {
        "kernels": kernels.hexdigest()[:LENGTH],
        "rnn": rnn.hexdigest()[:LENGTH],
    }


def plain_code(text):
    """Python without comments and docstrings, and without what a formatter may add: white space, commas, brackets."""
    words = []
    is_statement = (
        True  # whether the next word begins one, so that a string is a docstring
    )
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL):
            continue
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            is_statement = True
            continue
        if not (is_statement and token.type == tokenize.STRING):
            words.append(token.string)
        is_statement = False
    return re.sub(r"[\s,()]", "", "".join(words))


def hashes_in(text):
    """The hashes that a record names."""
    return dict(re.findall(rf"\b(kernels|rnn) ([0-9a-f]{{{LENGTH}}})\b", text))
