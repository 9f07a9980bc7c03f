"""Makes the three files that ship, int8 ONNX: `words.onnx`, the words in their places; `reader.onnx`, the six layers over them that read
conversations and passages; `judge.onnx`, the twelve that tell what relates and what applies; compared with the floats they came from.

    python bench/judge/export.py WEIGHTS.npz FOLDER --body MODEL_DIR [--dev PAIRS.jsonl]

All come from one joined judge, or the reader from another one: what reads conversations need not move with what compares.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch
import train
from model import LAYERS, OUTPUTS, READ, READING, WIDTH, Judge, load
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import nn

DEEP = tuple(name for name in OUTPUTS if name not in READ)


class Words(nn.Module):
    def __init__(self, judge: Judge) -> None:
        super().__init__()
        self.judge = judge

    def forward(self, ids: torch.Tensor, sides: torch.Tensor) -> torch.Tensor:
        return self.judge.embed(ids, sides)


class Layers(nn.Module):
    """Some first layers over the words, and heads that need no more."""

    def __init__(self, judge: Judge, layers: int, heads: tuple[str, ...]) -> None:
        super().__init__()
        self.judge, self.count, self.names = judge, layers, heads

    def forward(self, words: torch.Tensor, present: torch.Tensor) -> tuple[torch.Tensor, ...]:
        states = self.judge.pass_through(words, present, self.judge.layers[: self.count])
        seen = self.judge.sum_up(states, present)
        return tuple(self.judge.heads[name](seen) for name in self.names)


def export(judge: Judge, folder: Path, reader: Judge | None = None) -> None:
    """Writes the files. Where a reader is given, its first layers and heads are those of `reader.onnx`."""
    judge.eval()
    reader = (reader or judge).eval()
    ids = torch.ones(2, 8, dtype=torch.long)
    given = {"ids": ids, "sides": torch.zeros_like(ids)}
    write_model(Words(judge), given, ("words",), folder / "words.onnx")
    given = {"words": torch.zeros(2, 8, WIDTH), "present": ids}
    write_model(Layers(reader, READING, READ), given, READ, folder / "reader.onnx")
    write_model(Layers(judge, LAYERS, DEEP), given, DEEP, folder / "judge.onnx")


def write_model(
    model: nn.Module, given: dict[str, torch.Tensor], outputs: tuple[str, ...], path: Path
) -> None:
    """Dynamic int8: weights per output channel, activations measured at run time."""
    long = {name: {0: "rows", 1: "tokens"} for name in ("ids", "sides", "present", "words")}
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        torch.onnx.export(
            model,
            tuple(given.values()),
            str(plain),
            input_names=list(given),
            output_names=list(outputs),
            dynamic_axes={name: long.get(name, {0: "rows"}) for name in (*given, *outputs)},
            opset_version=17,
            dynamo=False,
        )
        quantize_dynamic(
            plain,
            path,
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul", "Gather"],
            extra_options={"MatMulConstBOnly": True},
        )


def run(folder: Path, data: train.Data, pairs: list[tuple[str, str]]) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    embed, layers = (
        onnxruntime.InferenceSession(str(folder / name), options, ["CPUExecutionProvider"])
        for name in ("words.onnx", "judge.onnx")
    )
    found = []
    started = time.process_time()
    for start in range(0, len(pairs), 12):
        ids, sides, present = (part.numpy() for part in data.batch(pairs[start : start + 12]))
        (words,) = embed.run(["words"], {"ids": ids, "sides": sides})
        found.append(layers.run(["relation"], {"words": words, "present": present})[0])
    spent = (time.process_time() - started) / len(pairs) * 1000
    size = sum(path.stat().st_size for path in folder.glob("*.onnx")) / 1e6
    print(f"{size:.1f} MB, {spent:.1f} ms a pair in twelves")
    return np.concatenate(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--body", type=Path, required=True)
    parser.add_argument("--dev", type=Path)
    args = parser.parse_args()
    judge = Judge(joined=True)
    judge.load_state_dict(load(args.weights))
    export(judge, args.out)
    data = train.Data(args.body / "tokenizer.json", "cpu")
    files = sorted((train.HERE / "pairs").glob("*.jsonl"))
    held = [row for file in files for row in train.read_rows(file)]
    sets = {"held": held[::10]}
    if args.dev:
        sets["dev"] = train.read_rows(args.dev)
        told = {(row["old"], row["new"]) for row in sets["dev"]}
        sets["held"] = [row for row in held if (row["old"], row["new"]) not in told][::10]
    for name, rows in sets.items():
        pairs = [(row["old"], row["new"]) for row in rows]
        train.report(f"int8 {name}", train.softmax(run(args.out, data, pairs)), rows)


if __name__ == "__main__":
    main()
