"""Trains the judge: how a new statement relates to an old one, and whether a memory applies to a prompt.

    python bench/judge/expand.py                                      # plain pairs out of subjects
    python bench/judge/train.py --body MODEL_DIR --out DIR --name T0 --rate 1e-4 --seed 0
    python bench/judge/train.py … --name S12 --teach DIR/T0-logits.npz DIR/T1-logits.npz DIR/T2-logits.npz
    python bench/judge/export.py DIR/S12-weights.npz judge.onnx --body MODEL_DIR

The body is the packaged embedding model (its int8 ONNX multiplied back to floats), read as a cross-encoder
`[CLS] old [SEP] new [SEP]`; the heads see CLS and the mean. Several models with different seeds teach one
student, which also reads unlabelled pairs (statements that stand near each other and belong to different
pairs), so that it learns what almost every neighbour in a real memory is: something else.

Needs torch, onnx and tokenizers (extra `bench`); nothing of it is needed at run time. On a GPU a few
minutes, on two cores some hours; `--start WEIGHTS --sample N` goes on from trained weights with the upper
half alone, which two cores do in minutes. The result is written as int8 weights (`NAME-weights.npz`), from
which `export.py` makes the ONNX file that ships.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import random
import re
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import nn

RELATIONS = ("replaces", "same", "refines", "contradicts", "answers", "completes", "unrelated")
INDEX = {name: number for number, name in enumerate(RELATIONS)}
SYMMETRIC = ("same", "contradicts", "unrelated")
STAYING = [INDEX[name] for name in ("refines", "unrelated", "contradicts", "same")]
LAYERS, WIDTH, HEADS = 12, 384, 12
TOKENS = 128  # of each text
HERE = Path(__file__).parent


# The model


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
    """A BERT of our own few lines (so that it exports cleanly) with one linear head per task."""

    def __init__(self, layers: int = LAYERS) -> None:
        super().__init__()
        self.words = nn.Embedding(30522, WIDTH)
        self.places = nn.Embedding(512, WIDTH)
        self.sides = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.dropout = nn.Dropout(0.1)
        self.relation = nn.Linear(2 * WIDTH, len(RELATIONS))
        self.applies = nn.Linear(2 * WIDTH, 1)
        self.fits = nn.Linear(2 * WIDTH, 1)

    def forward(
        self, ids: torch.Tensor, sides: torch.Tensor, present: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        places = torch.arange(ids.shape[1], device=ids.device)
        states = self.words(ids) + self.places(places) + self.sides(sides)
        states = self.dropout(self.norm(states))
        weight = present.to(states.dtype)
        mask = (1 - weight)[:, None, None, :] * -1e4
        for layer in self.layers:
            states = layer(states, mask)
        mean = (states * weight[:, :, None]).sum(1) / weight.sum(1, keepdim=True)
        seen = self.dropout(torch.cat([states[:, 0], mean], 1))
        return self.relation(seen), self.applies(seen)[:, 0], self.fits(seen)[:, 0]


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
    assert all(
        name.split(".")[0] in ("relation", "applies", "fits") for name in missing.missing_keys
    )
    return judge


# The data


class Data:
    """All texts once, tokenised once."""

    def __init__(self, tokenizer: Path, device: str) -> None:
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.device = device
        self.known: dict[str, list[int]] = {}

    def tokens(self, text: str) -> list[int]:
        if text not in self.known:
            self.known[text] = self.tokenizer.encode(text[:2000]).ids[1:-1][:TOKENS]
        return self.known[text]

    def batch(
        self, pairs: list[tuple[str, str]]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rows = []
        for one, other in pairs:
            first, second = [101, *self.tokens(one), 102], [*self.tokens(other), 102]
            rows.append((first + second, [0] * len(first) + [1] * len(second)))
        length = max(len(ids) for ids, _ in rows)
        ids, sides, present = (np.zeros((len(rows), length), np.int64) for _ in range(3))
        for at, (row, side) in enumerate(rows):
            ids[at, : len(row)], sides[at, : len(row)], present[at, : len(row)] = row, side, 1
        return tuple(torch.from_numpy(part).to(self.device) for part in (ids, sides, present))


def read_rows(path: Path, name: str = "") -> list[dict]:
    lines = path.read_text("utf-8").splitlines()
    return [{**json.loads(line), "file": name} for line in lines if line.strip()]


def read_prompts(path: Path) -> list[tuple[str, list[str], list[str]]]:
    """(prompt, the memories that apply to it, the other memories of its project)."""
    memories: dict[str, dict[str, str]] = collections.defaultdict(dict)
    prompts = []
    for row in read_rows(path):
        if row["type"] == "memory":
            memories[row.get("project", "")][row["id"]] = row["text"]
        else:
            prompts.append(row)
    found = []
    for row in prompts:
        known = memories[row.get("project", "")]
        wanted = row["fits"]
        found.append(
            (
                row["text"],
                [known[id] for id in wanted],
                [t for id, t in known.items() if id not in wanted],
            )
        )
    return found


@torch.no_grad()
def embed(judge: Judge, data: Data, texts: list[str]) -> torch.Tensor:
    """What the untrained body, an embedding model, says of each text."""
    judge.eval()
    found = []
    order = sorted(range(len(texts)), key=lambda at: len(data.tokens(texts[at])))
    for start in range(0, len(texts), 64):
        chosen = order[start : start + 64]
        rows = [[101, *data.tokens(texts[at])[:126], 102] for at in chosen]
        length = max(map(len, rows))
        ids, present = (
            np.zeros((len(rows), length), np.int64),
            np.zeros((len(rows), length), np.int64),
        )
        for at, row in enumerate(rows):
            ids[at, : len(row)], present[at, : len(row)] = row, 1
        tensor = torch.from_numpy(ids).to(data.device)
        mask = (1 - torch.from_numpy(present).to(data.device).float())[:, None, None, :] * -1e4
        states = (
            judge.words(tensor)
            + judge.places(torch.arange(length, device=data.device))
            + judge.sides(tensor * 0)
        )
        states = judge.norm(states)
        for layer in judge.layers:
            states = layer(states, mask)
        found.append(F.normalize(states[:, 0].float(), dim=-1))
    return torch.cat(found)[torch.tensor(order, device=data.device).argsort()]


def neighbour_pairs(
    vectors: torch.Tensor,
    texts: list[str],
    groups: list[int],
    most: int,
    nearest: int,
    apart: float,
) -> list[tuple[str, str]]:
    """Pairs of texts of different groups that stand near each other, none nearer than `apart`."""
    group = torch.tensor(groups, device=vectors.device)
    found = []
    for start in range(0, len(texts), 1024):
        close = vectors[start : start + 1024] @ vectors.T
        close[group[start : start + 1024, None] == group[None, :]] = -1
        close[close > apart] = -1
        values, places = close.topk(nearest, 1)
        for row in range(close.shape[0]):
            for value, place in zip(values[row].tolist(), places[row].tolist(), strict=True):
                if value > 0:
                    found.append((texts[place], texts[start + row]))
    random.shuffle(found)
    return found[:most]


def far_pairs(rows: list[dict], most: int) -> list[dict]:
    """Statements of different projects that share words: side by side in a real memory, they are unrelated."""
    words = {
        text: set(re.findall(r"\w{4,}", text.lower()))
        for row in rows
        for text in (row["old"], row["new"])
    }
    texts = sorted(words)
    found = []
    for row in random.sample(rows, min(most, len(rows))):
        others = [
            text for text in random.sample(texts, 300) if text not in (row["old"], row["new"])
        ]
        near = max(others, key=lambda text: len(words[text] & words[row["new"]]))
        found.append(
            {"old": near, "new": row["new"], "relation": "unrelated", "question": row["question"]}
        )
    return found


# Training


def shuffle_by_length(rows: list[dict], data: Data, size: int) -> list[dict]:
    """The rows in a new order in which those of one step are of like length: padding would be most of the work."""
    order = random.sample(rows, len(rows))
    order.sort(key=lambda row: len(data.tokens(row["old"])) + len(data.tokens(row["new"])))
    steps = [order[start : start + size] for start in range(0, len(order), size)]
    random.shuffle(steps)
    return [row for step in steps if len(step) == size for row in step]


def relation_lesson(
    rows: list[dict], weights: list[float]
) -> tuple[list[tuple[str, str]], list[np.ndarray]]:
    """Pairs and what is to be said of them; those without a direction are turned round half of the time."""
    pairs, targets = [], []
    for row in rows:
        old, new, number = row["old"], row["new"], INDEX[row["relation"]]
        if row["relation"] in SYMMETRIC and random.random() < 0.5:
            old, new = new, old
        target = row.get("soft")
        if target is None:
            target = np.full(len(RELATIONS), 0.05 / len(RELATIONS), np.float32)
            target[number] += 0.95
        pairs.append((old, new))
        targets.append(target * np.float32(weights[number]))
    return pairs, targets


def train(
    judge: Judge,
    data: Data,
    rows: list[dict],
    prompts: list[tuple[str, list[str], list[str]]],
    strangers: list[tuple[str, str]],
    taught: list[tuple[str, str, np.ndarray]],
    *,
    epochs: int,
    rate: float,
    seed: int,
    size: int = 48,
    fits_too: bool = True,
    verbose: bool = False,
) -> Judge:
    """Labelled pairs; prompts; real neighbours that are surely not replaced and not the same; pairs that teachers judged."""
    random.seed(seed)
    torch.manual_seed(seed)
    judge.to(data.device)
    heads = [*judge.relation.parameters(), *judge.applies.parameters(), *judge.fits.parameters()]
    known = {id(one) for one in heads}
    body = [one for one in judge.parameters() if id(one) not in known and one.requires_grad]
    optimizer = torch.optim.AdamW(
        [{"params": body, "lr": rate}, {"params": heads, "lr": 10 * rate}],
        weight_decay=0.01,
        fused=data.device == "cuda",
    )
    steps = epochs * (len(rows) // size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, [rate, 10 * rate], total_steps=steps + 1, pct_start=0.1
    )
    count = collections.Counter(row["relation"] for row in rows)
    weights = [(len(rows) / len(RELATIONS) / count[name]) ** 0.5 for name in RELATIONS]
    gone = torch.tensor([INDEX["replaces"], INDEX["same"]], device=data.device)
    cast = torch.autocast(data.device, dtype=torch.bfloat16, enabled=data.device == "cuda")
    for _ in range(epochs):
        order = shuffle_by_length(rows, data, size)
        judge.train()
        for start in range(0, len(order) - size + 1, size):
            if verbose and not start // size % 50:
                print(start, len(order), round(time.process_time()), flush=True)
            pairs, targets = relation_lesson(order[start : start + size], weights)
            lesson = random.sample(taught, size) if taught else []
            pairs += [(old, new) for old, new, _ in lesson]
            targets += [target for *_, target in lesson]
            ends = [len(pairs)]
            pairs += random.sample(strangers, size // 2) if strangers else []
            ends.append(len(pairs))
            asked = [
                (row["question"], row["new"])
                for row in order[start : start + size // 2]
                if fits_too
            ]
            pairs += asked + [(question, random.choice(order)["new"]) for question, _ in asked]
            ends.append(len(pairs))
            wanted: list[float] = []
            for prompt, right, wrong in random.sample(prompts, size // 2) if prompts else ():
                told = [*right[:2], *random.sample(wrong[:24], 3)]
                pairs += [(prompt, text) for text in told]
                wanted += [float(text in right) for text in told]
            with cast:
                relation, applies, fits = judge(*data.batch(pairs))
            relation, applies, fits = relation.float(), applies.float(), fits.float()
            target = torch.from_numpy(np.stack(targets)).to(data.device)
            loss = -(target * relation[: ends[0]].log_softmax(-1)).sum(-1).mean()
            if strangers:
                lost = relation[ends[0] : ends[1]].softmax(-1)[:, gone].sum(-1)
                loss = loss - 0.5 * torch.log1p(-lost.clamp(max=0.999)).mean()
            if asked:
                right = torch.tensor([1.0] * len(asked) + [0.0] * len(asked), device=data.device)
                loss = loss + 0.2 * F.binary_cross_entropy_with_logits(
                    fits[ends[1] : ends[2]], right
                )
            if wanted:
                loss = loss + 0.5 * F.binary_cross_entropy_with_logits(
                    applies[ends[2] :], torch.tensor(wanted, device=data.device)
                )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return judge


@torch.no_grad()
def judge_pairs(judge: Judge, data: Data, pairs: list[tuple[str, str]]) -> np.ndarray:
    judge.eval()
    found = []
    for start in range(0, len(pairs), 128):
        relation, _, _ = judge(*data.batch(pairs[start : start + 128]))
        found.append(relation.float().cpu().numpy())
    return np.concatenate(found)


def softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def report(name: str, probabilities: np.ndarray, rows: list[dict]) -> dict:
    """How many are right, and at each bar how many replacements are found and how many of what must stay would be lost."""
    truth = np.array([INDEX[row["relation"]] for row in rows])
    said = probabilities.argmax(1)
    recall = {
        name: round(float((said[truth == number] == number).mean()), 2)
        for name, number in INDEX.items()
        if (truth == number).any()
    }
    stays = np.isin(truth, STAYING)
    bars = {}
    for bar in (0.5, 0.6, 0.7, 0.8, 0.9):
        sure = probabilities[:, 0] >= bar
        bars[bar] = (round(float(sure[truth == 0].mean()), 3), round(float(sure[stays].mean()), 3))
    loss = -np.log(np.maximum(probabilities[np.arange(len(truth)), truth], 1e-9)).mean()
    print(
        f"{name}: right {(said == truth).mean():.3f}, mean recall {np.mean(list(recall.values())):.3f},"
        f" loss {loss:.3f}, {recall}, replaces found/false {bars}",
        flush=True,
    )
    return {"right": float((said == truth).mean()), "bars": bars}


@torch.no_grad()
def report_prompts(name: str, judge: Judge, data: Data, path: Path, body: Judge) -> None:
    """Told rightly among the prompts that want a memory, silent rightly among the others, for several bars."""
    prompts = read_prompts(path)
    texts = sorted({text for _, right, wrong in prompts for text in right + wrong})
    vectors = embed(body, data, texts)
    prefix = "Represent this sentence for searching relevant passages: "
    asked = embed(body, data, [prefix + prompt for prompt, _, _ in prompts])
    judge.eval()
    results = []
    for (prompt, right, _), vector in zip(prompts, asked, strict=True):
        near = (vectors @ vector).topk(min(20, len(texts))).indices.tolist()
        _, applies, _ = judge(*data.batch([(prompt, texts[at]) for at in near]))
        scored = sorted(
            zip(applies.float().sigmoid().tolist(), (texts[at] for at in near), strict=True),
            reverse=True,
        )
        results.append((scored[:2], set(right)))
    for bar in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
        told = [
            any(p >= bar and text in right for p, text in best) for best, right in results if right
        ]
        silent = [not any(p >= bar for p, _ in best) for best, right in results if not right]
        noise = np.mean(
            [sum(p >= bar and text not in right for p, text in best) for best, right in results]
        )
        print(
            f"{name} prompts at {bar}: told {np.mean(told):.3f} silent {np.mean(silent):.3f} noise {noise:.2f}",
            flush=True,
        )


def save(judge: Judge, path: Path) -> None:
    """Weights as int8 with a scale per output row (the form in which they ship), the small rest as floats."""
    packed = {}
    for name, value in judge.state_dict().items():
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


def average(states: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {name: sum(state[name] for state in states) / len(states) for name in states[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--body", type=Path, required=True, help="folder with model.onnx and tokenizer.json"
    )
    parser.add_argument("--pairs", type=Path, default=HERE / "pairs")
    parser.add_argument(
        "--dev", type=Path, help="pairs that are only measured (or learned too, with --all)"
    )
    parser.add_argument("--all", action="store_true", help="learn the measured pairs, too")
    parser.add_argument("--prompts", type=Path, nargs="*", default=[])
    parser.add_argument("--prompts-dev", type=Path)
    parser.add_argument(
        "--real", type=Path, help="JSON lines {group, text}: real statements without labels"
    )
    parser.add_argument("--only", help="files of --pairs, comma list")
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--rate", type=float, default=6e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--teach", type=Path, nargs="*", default=[], help="logits of teachers (.npz)"
    )
    parser.add_argument("--start", type=Path, help="weights to go on from")
    parser.add_argument(
        "--sample", type=int, default=0, help="with --start: pairs beside plain.jsonl"
    )
    parser.add_argument(
        "--far", type=int, default=3000, help="pairs of strangers, labelled unrelated"
    )
    parser.add_argument("--size", type=int, default=48, help="labelled pairs in a step")
    parser.add_argument(
        "--average",
        type=Path,
        nargs="*",
        default=[],
        help="weights to average, instead of training",
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="judge")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    started = time.time()
    data = Data(args.body / "tokenizer.json", args.device)
    body = read_body(args.body / "model.onnx")
    files = sorted(args.pairs.glob("*.jsonl"))
    rows = [
        row
        for file in files
        if not args.only or file.stem in args.only.split(",")
        for row in read_rows(file, file.stem)
    ]
    dev = read_rows(args.dev) if args.dev else []
    plain = [row for row in rows if row["file"] == "plain"]
    rows = [row for row in rows if row["file"] != "plain"]
    held = rows[::10]  # every tenth is only measured
    rows = plain + [row for number, row in enumerate(rows) if number % 10]
    told = {(row["old"], row["new"]) for row in dev}
    rows = [row for row in rows if (row["old"], row["new"]) not in told]
    if args.all:
        rows += dev
    random.seed(7)  # the same unlabelled pairs for teachers and students
    start = make_judge(body, LAYERS).to(args.device).eval()
    texts, groups = [], []
    for number, row in enumerate(() if args.start else rows):
        texts += [row["old"], row["new"]]
        groups += [number, number]
    mixed = []
    if texts:
        mixed = neighbour_pairs(embed(start, data, texts), texts, groups, 12000, 2, 0.97)
    far = far_pairs(rows, args.far)
    strangers: list[tuple[str, str]] = []
    if args.real:
        real = read_rows(args.real)
        for group in sorted({row["group"] for row in real}):
            own = [row["text"] for row in real if row["group"] == group]
            if len(own) > 3:
                vectors = embed(start, data, own)
                strangers += neighbour_pairs(vectors, own, list(range(len(own))), 1500, 1, 0.93)
        random.shuffle(strangers)
    prompts = [prompt for path in args.prompts for prompt in read_prompts(path)]
    if prompts:
        known = sorted({text for _, right, wrong in prompts for text in right + wrong})
        place = {text: at for at, text in enumerate(known)}
        vectors = embed(start, data, known).cpu()
        asked = embed(start, data, [prompt for prompt, _, _ in prompts]).cpu()
        prompts = [
            (prompt, right, sorted(wrong, key=lambda text: -float(vectors[place[text]] @ vector)))
            for (prompt, right, wrong), vector in zip(prompts, asked, strict=True)
        ]
    taught = []
    if args.teach:
        logits = [np.load(path) for path in args.teach]
        judged = np.mean([softmax(one["mixed"]) for one in logits], 0)
        labelled = np.mean([softmax(one["rows"]) for one in logits], 0)
        taught = [
            (old, new, soft.astype(np.float32))
            for (old, new), soft in zip(mixed, judged, strict=True)
        ]
        for row, soft in zip(rows, labelled, strict=True):  # half label, half teachers
            hard = np.zeros(len(RELATIONS), np.float32)
            hard[INDEX[row["relation"]]] = 1
            row["soft"] = (0.5 * hard + 0.5 * soft).astype(np.float32)
    if args.sample:  # going on from trained weights: some of the old, all of what is new
        old = [row for row in rows if row["file"] != "plain"]
        rows = [row for row in rows if row["file"] == "plain"] + random.sample(old, args.sample)
    rows += far
    judge = make_judge(body, args.layers)
    if args.start:
        judge.load_state_dict(load(args.start))
        for part in (judge.words, judge.places, judge.sides, judge.norm, *judge.layers[:6]):
            part.requires_grad_(False)
    print(
        f"{args.name}: {len(rows)} pairs, {len(mixed)} mixed, {len(strangers)} real, {len(prompts)} prompts, {time.time() - started:.0f} s",
        flush=True,
    )
    if args.average:
        judge.load_state_dict(average([load(path) for path in args.average]))
        judge.to(args.device)
    else:
        train(
            judge,
            data,
            rows,
            prompts,
            strangers,
            taught,
            epochs=args.epochs,
            rate=args.rate,
            seed=args.seed,
            size=args.size,
            fits_too=not args.start,
            verbose=bool(args.start),
        )
    print(f"{args.name}: trained {time.time() - started:.0f} s", flush=True)
    report(
        f"{args.name} held",
        softmax(judge_pairs(judge, data, [(row["old"], row["new"]) for row in held])),
        held,
    )
    if dev and not args.all:
        report(
            f"{args.name} dev",
            softmax(judge_pairs(judge, data, [(row["old"], row["new"]) for row in dev])),
            dev,
        )
    if strangers:
        chosen = strangers[:1500]
        seen = softmax(judge_pairs(judge, data, chosen))
        print(
            f"{args.name} real neighbours: replaces at .8 {(seen[:, 0] >= 0.8).mean():.4f}, same at .8 {(seen[:, 1] >= 0.8).mean():.4f}",
            flush=True,
        )
    if args.prompts_dev:
        report_prompts(args.name, judge, data, args.prompts_dev, start)
    if not args.start:
        np.savez(
            args.out / f"{args.name}-logits.npz",
            mixed=judge_pairs(judge, data, mixed),
            rows=judge_pairs(judge, data, [(row["old"], row["new"]) for row in rows]),
        )
    save(judge, args.out / f"{args.name}-weights.npz")


if __name__ == "__main__":
    main()
