"""Makes the file that ships: int8 ONNX of a trained judge, compared with the floats it came from.

python bench/judge/export.py WEIGHTS.npz OUT.onnx --body MODEL_DIR [--dev PAIRS.jsonl]
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
from model import OUTPUTS, Judge, count_layers, load
from onnxruntime.quantization import QuantType, quantize_dynamic


def export(judge: Judge, path: Path) -> None:
    """Dynamic int8: weights per output channel, activations measured at run time."""
    judge.eval()
    example = torch.ones(2, 8, dtype=torch.long)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        torch.onnx.export(
            judge,
            (example, torch.zeros_like(example), example),
            str(plain),
            input_names=["ids", "sides", "present"],
            output_names=list(OUTPUTS),
            dynamic_axes={name: {0: "rows", 1: "tokens"} for name in ("ids", "sides", "present")}
            | {name: {0: "rows"} for name in OUTPUTS},
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


def run(path: Path, data: train.Data, pairs: list[tuple[str, str]]) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    found = []
    started = time.process_time()
    for start in range(0, len(pairs), 12):
        ids, sides, present = (part.numpy() for part in data.batch(pairs[start : start + 12]))
        found.append(session.run(["relation"], {"ids": ids, "sides": sides, "present": present})[0])
    spent = (time.process_time() - started) / len(pairs) * 1000
    print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {spent:.1f} ms a pair in twelves")
    return np.concatenate(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--body", type=Path, required=True)
    parser.add_argument("--dev", type=Path)
    args = parser.parse_args()
    state = load(args.weights)
    judge = Judge(count_layers(state))
    judge.load_state_dict(state)
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
