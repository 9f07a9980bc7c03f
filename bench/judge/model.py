"""The judge as a model: a small BERT of our own few lines, so that it exports cleanly, with one linear head per task.

The body is the packaged embedding model (its int8 ONNX multiplied back to floats), read as a cross-encoder
`[CLS] one text [SEP] other text [SEP]`; the heads see CLS and the mean.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

LAYERS, WIDTH, HEADS = 12, 384, 12
READING = 6  # layers after which a joined judge reads conversations and passages
RELATIONS = ("replaces", "same", "refines", "contradicts", "answers", "completes", "unrelated")
KINDS = (
    *("decision", "preference", "gotcha", "fact", "problem", "solution", "pattern"),
    *("question", "todo", "none"),
)
# What is asked of a pair, and how many numbers answer: how a new text relates to an old one; whether a memory applies to a
# prompt; whether a passage answers a question; what a statement is in its place, whether it is worth keeping (at all,
# clearly), and whether what it asks or wants is still open at the end.
OUTPUTS = {
    "relation": len(RELATIONS),
    "applies": 1,
    "fits": 1,
    "kind": len(KINDS),
    "worth": 2,
    "open": 1,
}
READ = ("fits", "kind", "worth", "open")  # what a joined judge tells after READING layers


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.joined = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.after_attention = nn.LayerNorm(WIDTH, eps=1e-12)
        self.after_widening = nn.LayerNorm(WIDTH, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        rows, length, _ = states.shape
        query, key, value = (
            part(states).view(rows, length, HEADS, -1).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        if self.training:  # one kernel; the plain form below exports to plain operators
            mixed = F.scaled_dot_product_attention(query, key, value, mask.to(query.dtype), 0.1)
        else:
            scores = query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + mask
            mixed = scores.softmax(-1) @ value
        mixed = mixed.transpose(1, 2)
        states = self.after_attention(
            states + self.dropout(self.joined(mixed.reshape(rows, length, WIDTH)))
        )
        return self.after_widening(states + self.dropout(self.narrow(F.gelu(self.widen(states)))))


class Judge(nn.Module):
    """A BERT of our own few lines (so that it exports cleanly) with one linear head per task. Every head is told after the last layer,
    unless the judge is `joined`: then it is a reader of six layers, too."""

    def __init__(self, layers: int = LAYERS, *, joined: bool = False) -> None:
        super().__init__()
        self.reading = READING if joined else layers
        self.words = nn.Embedding(30522, WIDTH)
        self.places = nn.Embedding(512, WIDTH)
        self.sides = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.dropout = nn.Dropout(0.1)
        self.heads = nn.ModuleDict(
            {name: nn.Linear(2 * WIDTH, size) for name, size in OUTPUTS.items()}
        )

    def forward(
        self, ids: torch.Tensor, sides: torch.Tensor, present: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """One tensor for each of OUTPUTS, in their order."""
        read = self.read(ids, sides, present)
        deep = self.go_on(read, present)
        seen = {True: self.sum_up(read, present), False: self.sum_up(deep, present)}
        return tuple(head(seen[name in READ]) for name, head in self.heads.items())

    def read(self, ids: torch.Tensor, sides: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        """What the first layers make of the words."""
        return self.pass_through(self.embed(ids, sides), present, self.layers[: self.reading])

    def embed(self, ids: torch.Tensor, sides: torch.Tensor) -> torch.Tensor:
        """The words in their places, before any layer: never taught, so the same for every judge."""
        places = torch.arange(ids.shape[1], device=ids.device)
        states = self.words(ids) + self.places(places) + self.sides(sides)
        return self.dropout(self.norm(states))

    def go_on(self, states: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        """What the other layers make of what the first ones did."""
        return self.pass_through(states, present, self.layers[self.reading :])

    def pass_through(
        self, states: torch.Tensor, present: torch.Tensor, layers: nn.ModuleList
    ) -> torch.Tensor:
        mask = (1 - present.to(states.dtype))[:, None, None, :] * -1e4
        for layer in layers:
            states = layer(states, mask)
        return states

    def sum_up(self, states: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        """What a head sees of a pair."""
        weight = present.to(states.dtype)
        mean = (states * weight[:, :, None]).sum(1) / weight.sum(1, keepdim=True)
        return self.dropout(torch.cat([states[:, 0], mean], 1))


NAMES = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "joined",
    "attention.output.LayerNorm": "after_attention",
    "intermediate.dense": "widen",
    "output.dense": "narrow",
    "output.LayerNorm": "after_widening",
}


def read_body(path: Path) -> dict[str, torch.Tensor]:
    """The weights of the embedding model's int8 ONNX file as floats, under this file's names."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    found: dict[str, np.ndarray] = {}
    for name, value in stored.items():
        ours = re.match(r"(embeddings|encoder)\.", name) and value.dtype == np.float32
        if ours and not name.endswith(("_scale", "_zero_point")):
            found[name] = value
        if match := re.match(r"(embeddings\.\w+\.weight)_quantized$", name):
            base = match.group(1)
            zero = stored[base + "_zero_point"].astype(np.float32)
            found[base] = (value.astype(np.float32) - zero) * stored[base + "_scale"]
    for node in graph.node:
        if node.op_type != "MatMulInteger":
            continue
        weight = stored[node.input[1]].astype(np.float32)
        if len(node.input) > 3 and node.input[3] in stored:
            weight = weight - stored[node.input[3]].astype(np.float32)
        place = re.match(r"/(encoder/layer\.\d+/.*)/MatMul", node.name).group(1).replace("/", ".")
        scale = stored[node.input[1].replace("_quantized", "") + "_scale"]
        found[place + ".weight"] = (weight * scale).T.copy()
    renamed = {}
    for name, value in found.items():
        name = name.replace("embeddings.word_embeddings", "words")
        name = name.replace("embeddings.position_embeddings", "places")
        name = name.replace("embeddings.token_type_embeddings", "sides")
        name = name.replace("embeddings.LayerNorm", "norm")
        if match := re.match(r"encoder\.layer\.(\d+)\.(.*)\.(weight|bias)$", name):
            number, part, kind = match.groups()
            name = f"layers.{number}.{NAMES[part]}.{kind}"
        renamed[name] = torch.tensor(value)
    return renamed


def make_judge(body: dict[str, torch.Tensor], layers: int) -> Judge:
    """A judge that begins as the embedding model; with fewer layers it begins with a spread of them."""
    judge = Judge(layers)
    chosen = [round(at * (LAYERS - 1) / (layers - 1)) for at in range(layers)]
    state = {}
    for name, value in body.items():
        if match := re.match(r"layers\.(\d+)\.(.*)", name):
            if int(match.group(1)) in chosen:
                state[f"layers.{chosen.index(int(match.group(1)))}.{match.group(2)}"] = value
        else:
            state[name] = value
    missing = judge.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys, missing.unexpected_keys
    assert all(name.startswith("heads.") for name in missing.missing_keys)
    return judge


def save(judge: Judge, path: Path, parts: tuple[str, ...] = ("",)) -> None:
    """Weights, or those of some parts, as int8 with a scale per output row (the form in which they ship), the small rest as floats."""
    packed = {}
    for name, value in judge.state_dict().items():
        if not name.startswith(parts):
            continue
        array = value.float().cpu().numpy()
        if array.ndim == 2 and array.size > 100_000:
            scale = np.maximum(np.abs(array).max(1, keepdims=True), 1e-9) / 127
            packed[name] = np.round(array / scale).astype(np.int8)
            packed[name + ":scale"] = scale.astype(np.float32)
        else:
            packed[name] = array
    np.savez_compressed(path, **packed)


def load(path: Path) -> dict[str, torch.Tensor]:
    packed = np.load(path)
    return {
        name: torch.from_numpy(
            packed[name].astype(np.float32) * packed[name + ":scale"]
            if name + ":scale" in packed
            else packed[name]
        )
        for name in packed.files
        if not name.endswith(":scale")
    }


def count_layers(state: dict[str, torch.Tensor]) -> int:
    return 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))


def read_shipped(folder: Path) -> dict[str, torch.Tensor]:
    """The weights of a joined judge out of the files that ship, as floats: two up to 0.16, three from then on. Of three the reader is
    another model than the judge: all layers are the judge's own, and the heads of what is read do not belong to them."""
    import onnx
    from onnx import numpy_helper

    found: dict[str, torch.Tensor] = {}
    files = [folder / name for name in ("words.onnx", "reader.onnx", "judge.onnx")]
    for file in filter(Path.exists, files):
        graph = onnx.load(str(file)).graph
        stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

        def unpack(name: str, stored: dict = stored) -> np.ndarray:
            zero = stored[f"{name}_zero_point"].astype(np.float32)
            return (stored[f"{name}_quantized"].astype(np.float32) - zero) * stored[f"{name}_scale"]

        for name, value in stored.items():
            if name.startswith("judge.") and value.dtype == np.float32:
                if not name.endswith("_scale"):
                    found[name.removeprefix("judge.")] = torch.tensor(value)
            elif name.startswith("judge.") and name.endswith("_quantized"):
                base = name.removesuffix("_quantized")
                weight = unpack(base)
                if ".heads." in base:
                    weight = weight.T.copy()
                found[base.removeprefix("judge.")] = torch.tensor(weight)
        for node in graph.node:
            if node.op_type == "MatMulInteger" and node.name.startswith("/layers."):
                place = node.name.split("/MatMul")[0].strip("/").replace("/", ".")
                weight = unpack(node.input[1].removesuffix("_quantized"))
                found[f"{place}.weight"] = torch.tensor(weight.T.copy())
    return found
