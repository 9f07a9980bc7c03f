"""Our WordPiece beside the package `tokenizers`: the same ids on any text, in linear time."""

import json
import random
import sys
from pathlib import Path

import growth
import pytest
import tokenizers
from case_tables import cases
from tokenizers import models, pre_tokenizers

from bethink import judge
from bethink.embed.base import LibraryTokenizer, WordPiece, open_tokenizer
from bethink.errors import EmbeddingError

FILE = Path(judge.__file__).parent / "data" / "tokenizer.json"
# What fuzzed texts are made of: whole words, pieces, and characters of every sort.
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
STUFF = [*LETTERS, *(one for row in cases("tokenizer-stuff") for one in row)]


@pytest.fixture(scope="module")
def library():
    return LibraryTokenizer(FILE.read_text("utf-8"))


@pytest.fixture(scope="module")
def ours():
    found = open_tokenizer(FILE)
    assert isinstance(found, WordPiece)
    return found


def test_every_character_and_fuzzed_texts_have_the_same_ids(ours, library):
    # Behind the symbols all are ideographs, whose compatible forms are the last, and then nothing much.
    codes = [*range(0xD800), *range(0xE000, 0x20000), *range(0x2F800, 0x2FA20)]
    codes += range(0x20000, 0x110000, 101)
    for start in range(0, len(codes), 4096):
        block = codes[start : start + 4096]
        text = " ".join(f"x{chr(code)}y {chr(code)}" for code in block)
        if ours.encode(text) != library.encode(text):
            wrong = [c for c in block if ours.encode(f"x{chr(c)}") != library.encode(f"x{chr(c)}")]
            pytest.fail(f"{[hex(code) for code in wrong]}")
    rng = random.Random(0)
    for _ in range(1000):
        some = rng.sample(STUFF, rng.choice([2, 5, 20, 80]))
        text = "".join(rng.choices([*some, " "], k=rng.choice([1, 3, 12, 90, 150])))
        assert ours.encode(text) == library.encode(text), repr(text)


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
