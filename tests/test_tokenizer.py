"""Our WordPiece beside the package `tokenizers`: the same ids on any text, in linear time."""

import json
import random
import sys
from itertools import chain
from pathlib import Path

import growth
import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from bethink import judge
from bethink.embed.base import LibraryTokenizer, WordPiece, open_tokenizer
from bethink.errors import EmbeddingError

FILE = Path(judge.__file__).parent / "data" / "tokenizer.json"
# What fuzzed texts are made of: whole words, pieces, and characters of every sort.
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
STUFF_CASES = [
    "ABC\xc4\xd6\xdc\xdf\xe9\xe8\xea\xf1\xe7\xf8\u0142\u0160\u0130\u0131\u017f \u0391\u03a3\u03c3\u03c2 \u0416\u0419\u0451 \ufb01\xbd\xb2\xaa\xba\u2122\xa9\u20ac\xb0\xb1\xd7\xb5\u7684\u4e00\u662f\u4e0d\u4e86\u4eba\u6211\u5728\u6709\u4ed6\u4e2d\u6587\u5b57\u6f22\u5b57\u4eee\u540d\u3072\u3089\u304c",
    "\u306a\u30ab\u30bf\u30ab\u30ca\ud55c\uad6d\uc5b4\uac01\ud7a3\u8c48\u4fae\u4e3d\u0905\u0906\u0915\u0916\u093e\u093f\u0940\u0941\u0942\u0947\u0948\u094b\u094c\u0902\u0903\u0985\u0995\u09be\u09c7\u09cb\u0b95\u0bbe\u0bbf\u0bc0\u0bc8\u0e44\u0e17\u0e22\u0e81\u0e82\u1019\u103c\u1029\u0645\u0631\u062d\u0628\u0627\u0639\u0627\u0644\u064e\u0645\u0650\u05e9\u05c1\u05dc",
    "\u05d5\u05b9\u05dd\u12a0\u121b!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\xa1\xa7\xab\xb6\xb7\xbb\xbf\u2010\u2013\u2014\u2018\u2019\u201c\u201d\u201e\u2020\u2022\u2026\u2030\u2032\u2033\u27e8\u27e9",
    "\u3001\u3002\u3008\u3009\u300a\u300b\u300c\u300d\uff08\uff09\uff0c\uff0e\uff1a\uff1f\uff01\U0001f600\U0001f680\U0001f469\u200d\U0001f467\U0001f3fd\U0001f1e9\U0001f1ea\u2764\ufe0f\u2603\u2713\u2192\u2211\u221a\u221e\u2260\u2264\u226e\u03a9\u2103\u2116\xc5\ufdfa\x00\x01\x07\x08\t\n\r\x0b\x0c\x1b\x1c\x1f\x7f\x80\x85\x9f\xa0\xad\u200b\u200e\u2028",
    "\u2029\u202e\u3000\ufeff\ufffd\ue000\U000f0000\U000e0001\u0301\u0308\u0327\u0338\u034f\u0483\u064b\u093c\u1abf\u20dd\u302e\U0001d165\U0001e944\U00011938",
    [
        "[CLS]",
        "[SEP]",
        "[PAD]",
        "[UNK]",
        "[MASK]",
        "[unused1]",
        "##ing",
        "</s>",
        "  ",
        "\r\n",
        "the",
        "and",
        "embedding",
        "tokenizer",
        "na\xefve",
        "caf\xe9",
        "don't",
        "e-mail",
        "HTTPServer",
        "snake_case",
    ],
]


STUFF = [*LETTERS, *(one for row in STUFF_CASES for one in row)]


@pytest.fixture(scope="module")
def library():
    return LibraryTokenizer(FILE.read_text("utf-8"))


@pytest.fixture(scope="module")
def ours():
    found = open_tokenizer(FILE)
    assert isinstance(found, WordPiece)
    return found


def test_every_character_has_the_ids_of_the_reference_tokenizer(ours, library):
    # Behind the symbols all are ideographs, whose compatible forms are the last, and then nothing much.
    codes = [*range(0xD800), *range(0xE000, 0x20000), *range(0x2F800, 0x2FA20)]
    codes += range(0x20000, 0x110000, 101)
    blocks = [codes[start : start + 4096] for start in range(0, len(codes), 4096)]
    texts = [" ".join(f"x{chr(code)}y {chr(code)}" for code in block) for block in blocks]
    wrong = [
        block
        for block, text in zip(blocks, texts, strict=True)
        if ours.encode(text) != library.encode(text)
    ]
    assert [
        hex(code)
        for code in chain.from_iterable(wrong)
        if ours.encode(f"x{chr(code)}") != library.encode(f"x{chr(code)}")
    ] == []
    assert wrong == []


def test_every_text_has_the_ids_of_the_reference_tokenizer(ours, library):
    def make_text():
        some = rng.sample(STUFF, rng.choice([2, 5, 20, 80]))
        return "".join(rng.choices([*some, " "], k=rng.choice([1, 3, 12, 90, 150])))

    rng = random.Random(0)
    texts = [make_text() for _ in range(1000)]
    assert [text for text in texts if ours.encode(text) != library.encode(text)] == []


@pytest.mark.parametrize("unit", ["a", None, "?!", "漢字", "\U0001f680x", "e\u0301\u0301\u0301"])
def test_time_is_linear_for_hostile_text_and_words_that_are_new(ours, unit):
    rng = random.Random(7)

    def make_words(size):
        letters = "".join(rng.choices(LETTERS, k=size))
        return " ".join(letters[at : at + 99] for at in range(0, size, 99))

    make = make_words if unit is None else growth.long_text("", unit)
    assert not growth.grows_too_fast(ours.encode, make)


def make_file(folder, **changes):
    settings = json.loads(FILE.read_text("utf-8")) | changes
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(settings), "utf-8")
    return file


def test_other_kinds_are_read_by_the_package_or_the_extra_is_named(tmp_path, monkeypatch):
    cased = make_file(tmp_path, normalizer={"type": "Lowercase"})
    assert isinstance(open_tokenizer(cased), LibraryTokenizer)
    unigram = tokenizers.Tokenizer(
        models.Unigram([("▁", -3.0), ("▁go", -1.0), ("es", -2.0), ("<u>", -9.0)], 3)
    )
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    file = tmp_path / "unigram.json"
    file.write_text(unigram.to_str(), "utf-8")
    found = open_tokenizer(file)
    assert found.encode(" go goes ") == [1, 1, 2] and found.opening == found.closing == ()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(EmbeddingError, match="package tokenizers") as caught:
        open_tokenizer(make_file(tmp_path, normalizer=None))
    assert "pip install 'bethink[models]'" in caught.value.hint
