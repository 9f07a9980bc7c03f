"""What `redact` takes out, and what it must leave alone. Secrets are put together at run time, so that no scanner
mistakes this file for a leak."""

from __future__ import annotations

import pytest
from case_tables import cases
from growth import grows_too_fast, long_text
from hypothesis import given, settings
from hypothesis import strategies as st
from secret_parts import A36, MIXED, NAMES, pem

from bethink.ingest.redact import INVISIBLE, SHORTEST, Redacted, redact, redact_value

SECRETS = cases("redact-secrets", NAMES)  # kind, text around, the secret itself
SHAPES = cases("redact-shapes", NAMES)  # text around, the secret itself
LOOKALIKES = cases("redact-look-alikes", NAMES)
BENIGN = cases("redact-benign", NAMES)


@pytest.mark.parametrize(
    ("kind", "around", "secret"),
    SECRETS,
    ids=[f"{n}-{kind}" for n, (kind, _, _) in enumerate(SECRETS)],
)
def test_a_secret_is_replaced_by_its_kind_and_the_rest_stays(kind, around, secret):
    result = redact(around.format(secret))
    assert result.text == around.format(f"[REDACTED:{kind}]")
    assert (result.private, result.secrets) == (0, 1)
    assert redact(result.text) == Redacted(result.text)


def is_removed(around: str, secret: str) -> bool:
    """Whether the secret is gone from its place; its letters may stand elsewhere in the text."""
    text = visible(around.format(secret))
    return visible(redact(around.format(secret)).text).count(visible(secret)) < text.count(
        visible(secret)
    )


def visible(text: str) -> str:
    return "".join(character for character in text if character not in INVISIBLE)


def test_secrets_of_all_shapes_go_and_what_looks_like_them_stays():
    kept = [(around, secret) for around, secret in SHAPES if not is_removed(around, secret)]
    changed = [text for text in LOOKALIKES if redact(text).text != text]
    assert len(SHAPES) >= 110 and len(LOOKALIKES) >= 85
    assert len(kept) <= 0.05 * len(SHAPES), kept
    assert len(changed) <= 0.02 * len(LOOKALIKES), changed


def test_the_shortest_secret_is_found_and_nothing_shorter_is_looked_at():
    assert len("://:p@h") == SHORTEST
    assert redact("://:p@h").secrets == 1


@pytest.mark.parametrize("text", BENIGN, ids=range(len(BENIGN)))
def test_a_lookalike_is_left_alone(text):
    assert redact(text) == Redacted(text)


PRIVATE = cases("redact-private")


@pytest.mark.parametrize(("text", "expected", "count"), PRIVATE)
def test_private_blocks_are_taken_out(text, expected, count):
    assert redact(text) == Redacted(expected, private=count)


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("<private>all of it</private>", True),
        (" <private>a</private>, <private>b</private>!\n", True),
        ("ghp_" + A36, True),
        ("", True),
        ("- [ ] …", True),
        ("key: <private>a</private>", False),
        ("密 <private>a</private>", False),
    ],
)
def test_empty_means_that_only_markers_and_punctuation_are_left(text, empty):
    assert redact(text).empty is empty


def test_several_secrets_are_counted_and_private_comes_first():
    text = f"<private>ghp_{A36}</private> and ghp_{A36} and AKIA{'QYLPMN5HHHFPZAM2'}"
    assert redact(text) == Redacted(
        "[REDACTED] and [REDACTED:github-token] and [REDACTED:aws-access-key]", 1, 2
    )


def test_values_are_walked_and_keys_give_context():
    token = "ghp_" + A36
    value = {
        "tags": ["ok", token],
        "deep": ({"note": "<private>x</private>"}, 3, None),
        "db_password": "correct9horse",
        "n": 1.5,
        token: "k",
    }
    assert redact_value(value) == (
        {
            "tags": ["ok", "[REDACTED:github-token]"],
            "deep": ({"note": "[REDACTED]"}, 3, None),
            "db_password": "[REDACTED:password]",
            "n": 1.5,
            "[REDACTED:github-token]": "k",
        },
        4,
    )
    assert redact_value(redact_value(value)[0]) == (redact_value(value)[0], 0)


@pytest.mark.parametrize("value", cases("redact-other-values-are-left"))
def test_other_values_are_left_alone(value):
    assert redact_value(value) == (value, 0)


FRAGMENTS = st.sampled_from(
    [
        *(around.format(secret) for _, around, secret in SECRETS),
        *(secret for _, _, secret in SECRETS),
        *BENIGN,
        *"<private>|</private>|`|<pri|vate>|password|password=|token|: |=| is |\"|'|\\|://|a:b@|@h".split(
            "|"
        ),
        *"[REDACTED]|[REDACTED:token]|-|_|\n| |eyJ|.|sk-|AKIA|-----BEGIN RSA PRIVATE KEY-----|-----END |&|curl -u a:".split(
            "|"
        ),
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(FRAGMENTS, st.text(max_size=6)), max_size=12).map("".join))
def test_redacting_twice_is_redacting_once(text):
    once = redact(text)
    assert redact(once.text) == Redacted(once.text)


@settings(max_examples=150, deadline=None)
@given(
    st.text(max_size=40),
    st.sampled_from(["ghp_" + A36, "sk-ant-" + MIXED[:40], pem("RSA PRIVATE KEY")]),
    st.text(max_size=40),
)
def test_a_secret_on_its_own_line_never_survives(before, secret, after):
    assert secret not in redact(f"{before}\n{secret}\n{after}").text


HOSTILE = cases("redact-hostile")
CASES = [("", unit) for unit in HOSTILE] + cases("redact-long-runs", NAMES)


@pytest.mark.parametrize(("before", "unit"), CASES, ids=range(len(CASES)))
def test_time_is_linear_for_hostile_text(before, unit):
    assert not grows_too_fast(redact, long_text(before, unit))
