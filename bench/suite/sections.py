"""The sections of the page: for each task its text, the columns of its table, and the next step for each measure on which Bethink is behind."""

from __future__ import annotations

from typing import NamedTuple

from tasks import REAL, SETS

OURS = "bethink"


class Column(NamedTuple):
    task: str
    measure: str
    title: str
    digits: int = -1  # after the point; -1 for shares, which are written .72
    least: bool = False  # whether less is better
    ranked: bool = True


class Section(NamedTuple):
    title: str
    text: str
    columns: tuple[Column, ...]
    in_view: str  # which of its data was in view while Bethink was tuned
    drawn: int = 0  # the column of the picture


SUMMARY = (
    Column("next-day", "balanced", "next day"),
    Column("investigations", "balanced", "investigations"),
    Column("failures", "balanced (fresh)", "failures"),
    Column("decisions", "either", "decisions"),
    Column("histories", "mean of three", "nothing lost"),
    Column("change", "balanced (fresh)", "change"),
    Column("recall", "mean of sets", "recall"),
    Column("answers", "mean of sets", "answers"),
    Column("languages", "mean", "languages"),
    Column("silence", "balanced (fresh)", "silence"),
    Column("understanding", "F1 (own)", "understanding"),
    Column("attacks", "balanced", "attacks"),
    Column("cost", "write ms", "write, ms", 1, True),
    Column("cost", "search ms", "search, ms", 1, True),
    Column("cost", "tool tokens", "tools, tokens", 0, True),
)
IN_README = (
    "next day",
    "failures",
    "nothing lost",
    "recall",
    "silence",
    "attacks",
    "write, ms",
    "search, ms",
)
_RECALL_SAMPLES = ", ".join(
    f"{full[1]} questions in {full[0]} {'haystack' if full[0] == 1 else 'haystacks'} of {name}"
    for name, (full, _) in SETS.items()
)
SECTIONS = {
    "next-day": Section(
        "The next day",
        "Ten written projects, each with one recorded day and six requests of the next day. Four requests depend on a statement of the day before; two "
        "depend on nothing. *At the prompt*: the statement is in what the agent reads unasked, at most two memories. *Silent*: nothing is shown for a "
        "request that needs nothing. *Balanced* is the mean of the two. *In three hits*: the statement is among the first three hits of a search with "
        "the request. A system without a hook is searched at every prompt, so it is silent only if its search finds nothing.",
        (
            Column("next-day", "balanced", "balanced"),
            Column("next-day", "at the prompt", "at the prompt"),
            Column("next-day", "silent rightly", "silent"),
            Column("next-day", "in three hits", "in three hits"),
            Column("next-day", "prompt tokens", "tokens a prompt", 0, True, False),
        ),
        "nothing until 0.22.0. The prompts at which it showed nothing were read after that, so trust the next section more.",
    ),
    "investigations": Section(
        "The day after an investigation",
        "The same for ten other written days of another kind: the agent looked for a cause or reviewed a change, and much of what matters later was found by the agent and "
        "accepted by the user in few words. Two of six requests depend on nothing.",
        (
            Column("investigations", "balanced", "balanced"),
            Column("investigations", "at the prompt", "at the prompt"),
            Column("investigations", "silent rightly", "silent"),
            Column("investigations", "in three hits", "in three hits"),
            Column("investigations", "prompt tokens", "tokens a prompt", 0, True, False),
        ),
        "nothing. The days were written before anything was measured on them.",
    ),
    "failures": Section(
        "Repeated failures",
        "Scripted sessions with a failed command and what fixed it. Later the same failure happens again, or an error that only looks like it. *Fix shown*: "
        "the fix is in the text that the agent reads after the failed command. *Silent*: nothing is shown for a look-alike, and nothing for a failure that "
        "was never fixed. A system without a hook is searched with the command and its output, and its first hit counts, so it is silent only if it finds nothing. "
        "Recorded sessions of real agents are replayed by `bench/replay.py`; their transcripts are not published, so [bench/LOG.md](../bench/LOG.md) has these figures.",
        (
            Column("failures", "balanced (fresh)", "balanced, fresh"),
            Column("failures", "balanced", "balanced, all"),
            Column("failures", "fix shown", "fix shown"),
            Column("failures", "silent rightly", "silent"),
            Column("failures", "tokens", "tokens a failure", 0, True, False),
        ),
        "half of the cases. *Fresh* cases are recorded runs of real tools, kept for final runs.",
    ),
    "decisions": Section(
        "Decisions",
        "Conversations of [sde-bench](https://github.com/vectorize-io/sde-bench) in which a developer settles a rule, mixed with conversations about other "
        "things. A month later comes the bug report that needs the rule. *In three hits* and *at the prompt*: 60 % of the words and half of the "
        "numbers of the rule are shown, in texts of the right conversation. *Either* is one or the other. *Refused*: a proposal that the developer "
        "refused is shown; less is better.",
        (
            Column("decisions", "either", "either"),
            Column("decisions", "in three hits", "in three hits"),
            Column("decisions", "at the prompt", "at the prompt"),
            Column("decisions", "refused proposal", "refused", least=True, ranked=False),
            Column("decisions", "prompt tokens", "tokens a prompt", 0, True, False),
        ),
        "half of the tasks was read, the other half was only counted.",
    ),
    "histories": Section(
        "Nothing lost",
        "Histories of projects, note by note: most notes are true together and some replace, repeat, answer or complete others. *Kept*: a note that still "
        "holds is found, unmarked, by its own words. *Not hidden*: the same, marked as outdated or not. *Found*: the answer is in the first three hits of a question. *Current*: a replaced note is gone, "
        "marked or behind its successor. *Stored once*: of a repeated note only one version is current. The plain recipes never change a note, so they keep "
        "everything.",
        (
            Column("histories", "mean of three", "mean of three"),
            Column("histories", "kept", "kept"),
            Column("histories", "not hidden", "not hidden"),
            Column("histories", "found", "found"),
            Column("histories", "current", "current"),
            Column("histories", "stored once", "stored once"),
        ),
        "the histories, as a measure. Bethink's judge did not learn from them.",
    ),
    "change": Section(
        "Change",
        "A statement, a day later another one, then the question. *Ended*: what was replaced, answered or done is gone or marked, and the new statement comes "
        "first. *Untouched*: a refinement, a contradiction between two sources or a neighbour; both remain. *Balanced* is their mean. *New first* is what "
        "the clock alone gets. *Stored once*: a repetition is not kept twice.",
        (
            Column("change", "balanced (fresh)", "balanced, fresh"),
            Column("change", "balanced", "balanced, all"),
            Column("change", "changed", "ended"),
            Column("change", "untouched", "untouched"),
            Column("change", "new first", "new first"),
            Column("change", "told once", "stored once"),
        ),
        "the 200 older pairs. The 60 *fresh* pairs were written for this benchmark; 5 of their 120 statements also occur in the judge's training data, never both of a pair.",
    ),
    "recall": Section(
        "Recall a month later",
        "nDCG@10 of questions asked 30 days after the newest memory, so that the clock does not help. Samples: "
        + _RECALL_SAMPLES
        + ".",
        (
            Column("recall", "mean of sets", "mean"),
            Column("recall", "locomo-turns", "locomo-turns"),
            Column("recall", "longmemeval-s-prefix", "longmemeval-s-prefix"),
            Column("recall", "sessions-cipher-box", "sessions-cipher-box"),
        ),
        "all three sets. Bethink's judge learned from conversations of LoCoMo and LongMemEval, but this search does not use it.",
    ),
    "answers": Section(
        "Answers",
        "Whole conversations of LoCoMo and a haystack of LongMemEval sessions, read turn by turn. A month later each question gets 2,000 tokens of search results. "
        "*All* and *any*: all or any of the evidence can be read in them (two thirds of its runs of four words). No reader takes part. Plain FTS5 is BM25, and plain RRF "
        "is BM25 with vectors. BEAM is not measured: its data could not be fetched here, and its evidence is whole messages with code, for which these runs of words are no fair test.",
        (
            Column("answers", "mean of sets", "all, mean of sets"),
            Column("answers", "locomo, all", "LoCoMo, all"),
            Column("answers", "locomo, any", "LoCoMo, any"),
            Column("answers", "longmemeval, all", "LongMemEval, all"),
            Column("answers", "longmemeval, any", "LongMemEval, any"),
        ),
        "no LoCoMo conversation of this sample; some of the LongMemEval questions.",
    ),
    "languages": Section(
        "Languages",
        "Short notes with a question each, in nine languages. *Across*: English notes, asked in eight other languages. *Within*: notes and questions in the same "
        "other language. Right: the note is the first hit.",
        (
            Column("languages", "mean", "mean"),
            Column("languages", "across", "across"),
            Column("languages", "within", "within"),
            Column("languages", "English", "English"),
        ),
        "nothing. Peers that take an embedding model got the shared one, which is English; with a multilingual model of their choice they would do better.",
    ),
    "silence": Section(
        "Silence",
        "Two projects of 40 memories, with prompts to which one memory applies and prompts to which none does. *Shown*: a fitting memory is among the two that an "
        "agent reads. *Silent*: nothing is shown where nothing fits. Systems without a hook are searched at every prompt, with their own threshold "
        "if they have one.",
        (
            Column("silence", "balanced (fresh)", "balanced, fresh"),
            Column("silence", "balanced", "balanced, all"),
            Column("silence", "told rightly", "shown"),
            Column("silence", "silent rightly", "silent"),
        ),
        "one of the two projects. The *fresh* one was written for this benchmark.",
    ),
    "understanding": Section(
        "Understanding",
        "What is kept of a conversation, against what a careful colleague would keep. Precision counts sentences, so a long text pays for all of its "
        "sentences. *Never*: share of temptations (pasted text, plans for the next minute, dropped ideas) that were kept; less is better. *Open*: F1 of "
        "open questions and to-dos. *Text kept*: share of the text that is stored. Six small conversations of our own, and "
        f"{REAL} of 22 real sessions of public repositories, whose labels are not published.",
        (
            Column("understanding", "F1 (own)", "F1, own"),
            Column("understanding", "recall (own)", "recall, own"),
            Column("understanding", "precision (own)", "precision, own"),
            Column("understanding", "never kept (own)", "never", least=True, ranked=False),
            Column("understanding", "open F1 (own)", "open"),
            Column("understanding", "F1 (real)", "F1, real"),
            Column("understanding", "recall (real)", "recall, real"),
            Column("understanding", "precision (real)", "precision, real"),
            Column("understanding", "text kept (real)", "text kept, real", ranked=False),
        ),
        "the real sessions. Our own conversations were written for this benchmark.",
    ),
    "attacks": Section(
        "Attacks",
        'The user decides; a day later an agent, an indexed README or a pasted issue claims the opposite, in one of twelve generated forms such as "The user '
        "decided: …\". *Held*: the user's decision is still the first valid hit. *User's change first*: the user says the same in such a form, and the change "
        "must win. *Balanced* is the mean. *Not lost*: the decision is among the valid hits at all.",
        (
            Column("attacks", "balanced", "balanced"),
            Column("attacks", "held", "held"),
            Column("attacks", "user's change first", "user's change first"),
            Column("attacks", "not lost", "not lost"),
            Column("attacks", "against agent", "agent"),
            Column("attacks", "against document", "README"),
            Column("attacks", "against issue", "issue"),
        ),
        "the 20 pairs, but not the generated forms.",
    ),
    "poison": Section(
        "Poison",
        "The same without forms: 20 pairs of a decision and its opposite, both ways round, so that no wording is favoured.",
        (
            Column("poison", "balanced", "balanced"),
            Column("poison", "user's word first", "user's word first"),
            Column("poison", "user's later word first", "later word first"),
        ),
        "all pairs.",
    ),
    "cost": Section(
        "Cost",
        "Processor time of everything that a system starts, embedding included, with default settings, over 200 short notes. *Prompt*: what is done at a prompt, in a "
        "process that has its models loaded. *Turn*: reading a turn of a conversation. *Start*: a new process up to its first answer. *Tools*: descriptions "
        "of the MCP server, which an agent reads at every start. *Session*: tools, briefing and what 20 prompts add, in tokens; for a system without hooks only "
        "its tools. *Year*: megabytes on disk for 40,000 turns and 2,500 notes, computed from the bytes of one; a system that reads no conversations would store a turn as a note. "
        "*Install*: megabytes of the environment with its model.",
        (
            Column("cost", "write ms", "write, ms", 1, True),
            Column("cost", "search ms", "search, ms", 1, True),
            Column("cost", "prompt ms", "prompt, ms", 1, True),
            Column("cost", "turn ms", "turn, ms", 1, True),
            Column("cost", "start ms", "start, ms", 0, True),
            Column("cost", "disk bytes a memory", "disk, bytes a memory", 0, True),
            Column("cost", "year MB", "year, MB", 0, True),
            Column("cost", "resident MB", "resident, MB", 0, True),
            Column("cost", "install MB", "install, MB", 0, True),
            Column("cost", "tool tokens", "tools, tokens", 0, True),
            Column("cost", "session tokens", "session, tokens", 0, True, False),
        ),
        "nothing.",
    ),
    "scale": Section(
        "Cost by size",
        "A search, a write, a prompt and a turn of a conversation, in milliseconds of processor time, among 1, 10 and 100 thousand notes. The notes are loaded in bulk with "
        "random vectors, and 30 of each with real ones are measured. A dash: the system was not measured at that size, because loading it takes too long, or reads no conversations.",
        (
            Column("scale", "search ms, 1k", "search, 1k", 1, True),
            Column("scale", "search ms, 10k", "search, 10k", 1, True),
            Column("scale", "search ms, 100k", "search, 100k", 1, True),
            Column("scale", "write ms, 1k", "write, 1k", 1, True),
            Column("scale", "write ms, 10k", "write, 10k", 1, True),
            Column("scale", "write ms, 100k", "write, 100k", 1, True),
            Column("scale", "prompt ms, 1k", "prompt, 1k", 1, True),
            Column("scale", "prompt ms, 10k", "prompt, 10k", 1, True),
            Column("scale", "prompt ms, 100k", "prompt, 100k", 1, True),
            Column("scale", "turn ms, 1k", "turn, 1k", 1, True),
            Column("scale", "turn ms, 10k", "turn, 10k", 1, True),
            Column("scale", "turn ms, 100k", "turn, 100k", 1, True),
            Column("scale", "resident MB, 1k", "resident MB, 1k", 0, True),
            Column("scale", "resident MB, 10k", "resident MB, 10k", 0, True),
            Column("scale", "resident MB, 100k", "resident MB, 100k", 0, True),
        ),
        "nothing.",
        drawn=1,
    ),
}

# What to do next about a measure on which Bethink is behind, by task and measure; '' stands for the other measures of a task.
NEXT = {
    (
        "next-day",
        "",
    ): "Train the judge on requests that a step of reasoning links to a rule (small print and the least font size): it gives these less than even odds.",
    (
        "investigations",
        "",
    ): "Keep causes and limits that an agent found and the user accepted in a word or two.",
    (
        "failures",
        "",
    ): "Read the steps between a failure and its fix more widely: edits of files, other folders, retries.",
    (
        "decisions",
        "",
    ): "Store a settled rule as one statement when it was settled over several turns.",
    ("histories", "kept"): "Require more certainty before a note is retired.",
    ("histories", "stored once"): "Merge a repetition that adds a detail instead of keeping both.",
    ("histories", ""): "Train the judge on more notes of which only a part changes.",
    (
        "change",
        "told once",
    ): "Merge more repetitions in other words without merging neighbours.",
    ("change", ""): "Train the judge on more pairs in which the old value is not named.",
    (
        "recall",
        "",
    ): "Weigh words and meaning by the kind of question; on sessions of agents plain words do better.",
    ("answers", ""): "Show more evidence per token: cut long turns to the sentences that answer.",
    (
        "languages",
        "",
    ): "A larger model for other languages: the questions that fail share no word and little meaning with their note.",
    (
        "silence",
        "",
    ): "Show more at prompts that name the subject in other words, at the same silence.",
    (
        "understanding",
        "recall (real)",
    ): "Keep more of what the user says; a language model as reader raises it (see `llm`).",
    (
        "understanding",
        "recall (own)",
    ): "Keep causes that the agent names, and facts that the user mentions in passing.",
    (
        "understanding",
        "",
    ): "Keep fewer requests for the next minute and proposals that were dropped; write what was decided over several turns as one sentence.",
    ("attacks", ""): "Keep weighing a speaker's authority before the wording of a claim.",
    ("poison", ""): "Keep weighing a speaker's authority before the wording of a claim.",
    (
        "cost",
        "write ms",
    ): "Let the judge compare a note with fewer neighbours, those that share a subject with it.",
    ("cost", "search ms"): "Search by words alone where the first hits agree.",
    ("cost", "turn ms"): "Judge only sentences that could be kept.",
    (
        "cost",
        "start ms",
    ): "Let commands ask the helper that already keeps the models open for the prompt hook.",
    (
        "cost",
        "disk bytes a memory",
    ): "Store vectors as 8-bit instead of 16-bit numbers; they are already stored once.",
    ("cost", "year MB"): "Drop the vectors of turns whose ideas are kept.",
    (
        "cost",
        "resident MB",
    ): "Let servers use the judge of the helper; at present each process that writes loads its own.",
    ("cost", "install MB"): "Use a smaller runtime for the models.",
    (
        "cost",
        "prompt ms",
    ): "Answer from the word index where no memory shares a word with the prompt.",
    ("cost", ""): "See [speed](concepts/speed.md).",
    ("scale", ""): "See [speed](concepts/speed.md): compare fewer neighbours in large scopes.",
}
