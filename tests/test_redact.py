"""What `redact` takes out, and what it must leave alone. Secrets are put together at run time, so that no scanner
mistakes this file for a leak."""

import re

import pytest
import secret_sentences as told
from data_redact import BENIGN, LOOKALIKES, SECRETS, SHAPES
from hypothesis import given, settings
from hypothesis import strategies as st
from secret_examples import LATER_LOOKALIKES, LATER_SECRETS
from secret_examples import LOOKALIKES as PLAIN
from secret_examples import SECRETS as PLACED
from secret_parts import A36, MIXED, pem, word

from bethink.ingest.redact import INVISIBLE, SHORTEST, Redacted, redact, redact_value

TOKEN = "ghp_" + A36


def visible(text: str) -> str:
    return re.sub(INVISIBLE, "", text)


def is_removed(around: str, secret: str) -> bool:
    """Whether the secret is gone from its place; its letters may stand elsewhere in the text."""
    text, hidden = around.format(secret), visible(secret)
    return visible(redact(text).text).count(hidden) < visible(text).count(hidden)


@pytest.mark.parametrize(
    ("kind", "around", "secret"),
    [pytest.param(*row, id=f"{row[0]}-{number}") for number, row in enumerate(SECRETS, 1)],
)
def test_a_secret_is_replaced_by_its_kind(kind, around, secret):
    result = redact(around.format(secret))
    assert result.text == around.format(f"[REDACTED:{kind}]")
    assert (result.private, result.secrets) == (0, 1)
    assert redact(result.text) == Redacted(result.text)


def test_nearly_all_shapes_of_secrets_are_removed():
    kept = [(around, secret) for around, secret in SHAPES if not is_removed(around, secret)]
    assert len(SHAPES) >= 110 and len(LOOKALIKES) >= 85
    assert len(kept) <= 0.05 * len(SHAPES), kept


def test_nearly_all_look_alikes_stay():
    changed = [text for text in LOOKALIKES if redact(text).text != text]
    assert len(changed) <= 0.02 * len(LOOKALIKES), changed


# Too much like ordinary text: a blank inside a quoted password, and passwords that nothing names.
MISSED = ("yaml-quoted", "ssh-said", "slash-pair", "openvpn")


def mark_missed(name):
    return [pytest.mark.xfail(strict=True, reason="not told apart")] if name in MISSED else []


@pytest.mark.parametrize(
    ("around", "secret"),
    [
        pytest.param(around, secret, id=name, marks=mark_missed(name))
        for name, around, secret in [*PLACED, *LATER_SECRETS, *told.SECRETS, *told.UNSEEN_SECRETS]
    ],
)
def test_a_secret_is_removed_from_its_place(around, secret):
    assert is_removed(around, secret)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name)
        for name, text in [*PLAIN, *LATER_LOOKALIKES, *told.LOOKALIKES, *told.UNSEEN_LOOKALIKES]
    ],
)
def test_a_text_that_only_looks_like_a_secret_stays(text):
    assert redact(text).text == text


HIDDEN = {
    "zero-width-space": "\u200b",
    "zero-width-joiner": "\u200d",
    "word-joiner": "\u2060",
    "byte-order-mark": "\ufeff",
    "soft-hyphen": "\u00ad",
    "combining-stroke": "\u0336",
    "combining-grapheme-joiner": "\u034f",
    "variation-selector": "\ufe0f",
    "tag-letter": "\U000e0061",
    "right-to-left-override": "\u202e",
    "null": "\x00",
    "backspace": "\x08",
    "colour": "\x1b[31m",
}
TOKENS = {
    "openai": "sk-" + "proj-" + word("hidden", 48),
    "github": "ghp" + "_" + word("hidden", 36),
    "aws": "AKIA" + "QYLPMN5HHHFPZAM2",
}


@pytest.mark.parametrize("hidden", [pytest.param(one, id=name) for name, one in HIDDEN.items()])
@pytest.mark.parametrize("token", [pytest.param(one, id=name) for name, one in TOKENS.items()])
def test_an_invisible_character_does_not_hide_a_token(token, hidden):
    assert [
        inside
        for inside in (token[:3] + hidden + token[3:], hidden.join(token))
        for left in [redact(f"key {inside} here").text]
        if not left.startswith("key [REDACTED:") or not left.endswith("] here")
    ] == []


def test_a_password_with_a_zero_width_space_in_its_name_is_removed():
    assert redact("pass\u200bword=Kestrel7!Pond").text == "pass\u200bword=[REDACTED:password]"


@pytest.mark.parametrize(
    ("text", "expected", "blocks"),
    [
        pytest.param(
            "API key is <private>sk-abc123</private>, uses JWT auth",
            "API key is [REDACTED], uses JWT auth",
            1,
            id="in-a-sentence",
        ),
        pytest.param("a <Private>x</PRIVATE> b", "a [REDACTED] b", 1, id="any-case"),
        pytest.param("a <private>x\ny\n</private> b", "a [REDACTED] b", 1, id="over-lines"),
        pytest.param(
            "<private>x</private> and <private>y</private>",
            "[REDACTED] and [REDACTED]",
            2,
            id="two-blocks",
        ),
        pytest.param(
            "a <private>x <private>y</private> z</private> b", "a [REDACTED] b", 1, id="nested"
        ),
        pytest.param(
            "a <private>x <private>y</private> z", "a [REDACTED]", 1, id="nested-without-end"
        ),
        pytest.param("a <private>x and no end", "a [REDACTED]", 1, id="without-end"),
        pytest.param(
            "a <private>x</private> b <private>y",
            "a [REDACTED] b [REDACTED]",
            2,
            id="second-without-end",
        ),
        pytest.param("a </private>b", "a b", 0, id="end-without-start"),
        pytest.param("a <private>x</private></private> b", "a [REDACTED] b", 1, id="two-ends"),
        pytest.param("<private></private>", "[REDACTED]", 1, id="nothing-inside"),
        pytest.param("<private >x</private >", "[REDACTED]", 1, id="blanks-in-tags"),
        pytest.param(
            "Wrap it in `<private>` tags.", "Wrap it in `<private>` tags.", 0, id="tag-as-code"
        ),
        pytest.param(
            "Wrap it in `<private>x</private>` tags.",
            "Wrap it in `[REDACTED]` tags.",
            1,
            id="block-as-code",
        ),
        pytest.param(
            "`<private>` hides <private>this</private>.",
            "`<private>` hides [REDACTED].",
            1,
            id="code-and-block",
        ),
        pytest.param(
            "<privateer> and <private-key>",
            "<privateer> and <private-key>",
            0,
            id="longer-tag-names",
        ),
        pytest.param("<pri</private>vate>x", "<pri[REDACTED]vate>x", 0, id="end-inside-a-tag"),
    ],
)
def test_private_blocks_are_removed(text, expected, blocks):
    assert redact(text) == Redacted(expected, private=blocks)


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=f"text-{number}") for number, text in enumerate(BENIGN, 1)]
)
def test_a_text_without_secrets_is_left_alone(text):
    assert redact(text) == Redacted(text)


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        pytest.param("<private>all of it</private>", True, id="private-all-private"),
        pytest.param(
            " <private>a</private>, <private>b</private>!\n",
            True,
            id="private-private-private-b-private",
        ),
        pytest.param("ghp_" + A36, True, id="ghp"),
        pytest.param("", True, id="empty"),
        pytest.param("- [ ] …", True, id="hyphen-minus"),
        pytest.param("key: <private>a</private>", False, id="key-private-private"),
        pytest.param("密 <private>a</private>", False, id="private-private"),
    ],
)
def test_a_text_that_is_wholly_private_is_empty(text, empty):
    assert redact(text).empty is empty


def test_redacted_parts_are_counted():
    text = f"<private>{TOKEN}</private> and {TOKEN} and AKIA{'QYLPMN5HHHFPZAM2'}"
    left = "[REDACTED] and [REDACTED:github-token] and [REDACTED:aws-access-key]"
    assert redact(text) == Redacted(left, 1, 2)
    assert len("://:p@h") == SHORTEST and redact("://:p@h").secrets == 1


CLEAN = {
    "tags": ["ok", "[REDACTED:github-token]"],
    "deep": ({"note": "[REDACTED]"}, 3, None),
    "db_password": "[REDACTED:password]",
    "n": 1.5,
    "[REDACTED:github-token]": "k",
}


def test_values_are_redacted_by_their_keys():
    value = {"tags": ["ok", TOKEN], "deep": ({"note": "<private>x</private>"}, 3, None)}
    value |= {"db_password": "correct9horse", "n": 1.5, TOKEN: "k"}
    assert redact_value(value) == (CLEAN, 4)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(CLEAN, id="redacted-before"),
        pytest.param({"token": "str"}, id="name-of-a-type"),
        pytest.param({"password": "${PW_2}"}, id="variable"),
        pytest.param({"max_tokens": "100k-limit"}, id="other-key"),
        pytest.param({"author": "Xk29!fhq"}, id="key-that-begins-like-auth"),
        pytest.param(7, id="number"),
        pytest.param(None, id="none"),
        pytest.param(b"x", id="bytes"),
    ],
)
def test_a_value_without_secrets_is_left_alone(value):
    assert redact_value(value) == (value, 0)


SIGNS = "<private>|</private>|`|<pri|vate>|password|password=|token|: |=| is |\"|'|\\|://|a:b@|@h|[REDACTED]|[REDACTED:token]"
SIGNS += "|-|_|\n| |eyJ|.|sk-|AKIA|-----BEGIN RSA PRIVATE KEY-----|-----END |&|curl -u a:"
FRAGMENTS = [*(around.format(secret) for _, around, secret in SECRETS), *BENIGN, *SIGNS.split("|")]
FRAGMENTS += [secret for _, _, secret in SECRETS]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=6), max_size=12).map("".join))
def test_redacting_twice_is_redacting_once(text):
    once = redact(text)
    assert redact(once.text) == Redacted(once.text)


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=40),
    st.sampled_from([TOKEN, "sk-ant-" + MIXED[:40], pem("RSA PRIVATE KEY")]),
    st.text(max_size=40),
)
def test_a_secret_on_its_own_line_never_survives(before, secret, after):
    assert secret not in redact(f"{before}\n{secret}\n{after}").text
