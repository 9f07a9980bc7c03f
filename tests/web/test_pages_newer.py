"""What the pages say of a note that replaces, closes or may replace another: after it was added, and beside the older one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from conftest import NARROW, axe, expect_title, find_small, press, sticks_out, window
from playwright.sync_api import expect

from bethink.api import Bethink
from bethink.app.render import PROPOSALS
from bethink.app.web.pages import SHOWN_EFFECTS, list_effects

_numbers = count(1)


def add_note(page, text):
    page.goto("/timeline")
    page.keyboard.press("n")
    page.keyboard.type(text)
    page.keyboard.press("Control+Enter")
    expect_title(page, text)


def stored(world, id):
    return world.server.owner.get(f"/api/v1/memories/{id}?count=false").json()


@pytest.fixture
def pair(world):
    """An older and a newer memory, of which the newer one may replace the older one: (old, new), each a text and an id."""
    number, now = next(_numbers), datetime.now(UTC)
    texts = f"Tug {number} lies in Kiel, the spare one in Riga", f"Tug {number} moved to Gdansk"
    with Bethink(directory=world.story.project) as memory:
        ids = []
        for text, seconds in zip(texts, (2, 1), strict=True):
            memory.clock = lambda seconds=seconds: now - timedelta(seconds=seconds)
            ids.append(memory.add(text, kind="fact", dedup=False).id)
        memory.link(ids[1], ids[0], "may_replace")
    return tuple(zip(texts, ids, strict=True))


def remark(page, text):
    return page.locator(".remark", has_text=text)


# After a note was added


def test_adding_a_note_that_replaces_another_says_so_with_a_link(page, world):
    world.server.add("The harbour master's office is in room 12")
    add_note(page, "The harbour master's office moved from room 12 to room 31")
    expect(remark(page, "This replaces")).to_contain_text(
        "The harbour master's office is in room 12"
    )
    page.get_by_role("link", name="The harbour master's office is in room 12").first.click()
    expect_title(page, "The harbour master's office is in room 12")


def test_undoing_a_note_restores_what_it_replaced(page, world):
    old = world.server.add("The pilots' desk is in room 21")
    add_note(page, "The pilots' desk moved from room 21 to room 23")
    expect(remark(page, "This replaces")).to_be_visible()
    assert stored(world, old)["superseded_by"]
    press(page, "Undo", "Forgotten")
    assert stored(world, old)["superseded_by"] is None


def test_adding_the_same_note_again_says_that_it_is_stored_already(page, world):
    text = "The office opens at half past seven in summer"
    world.server.add(text)
    add_note(page, text)
    expect(page.get_by_role("status")).to_contain_text("Already stored; nothing was added.")


def test_secrets_removed_from_a_note_are_mentioned(page):
    page.goto("/timeline")
    page.keyboard.press("n")
    page.keyboard.type("The gate code is <private>4711</private> until further notice")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("status")).to_contain_text("Private or secret text was removed")


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        pytest.param("replaces", "This replaces", id="replaced"),
        pytest.param("closes", "This closes", id="closed"),
        pytest.param("may-replaces", "This may replace", id="may replace"),
        pytest.param("may-answers", "This may answer", id="may answer"),
        pytest.param("may-completes", "This may complete", id="may complete"),
        pytest.param("may-same", "This may say the same as", id="may be the same"),
        pytest.param("newer", "This is newer than", id="newer"),
        pytest.param("similar", "This is very similar to", id="similar"),
    ],
)
def test_an_effect_of_a_new_note_is_put_into_words(page, pair, effect, text):
    (old_text, old), (_, new) = pair
    page.goto(f"/memory/{new}?done=added&effects={effect}:{old}")
    expect(remark(page, text)).to_contain_text(old_text)


def test_what_a_note_may_replace_is_replaced_by_one_click(page, world, pair):
    (_, old), (_, new) = pair
    page.goto(f"/memory/{new}?done=added&effects=may-replaces:{old}")
    press(page, "Replace it", "Linked.")
    assert stored(world, old)["superseded_by"] == new


def test_what_a_note_may_answer_is_closed_by_one_click(page, world, pair):
    (_, new) = pair[1]
    told = {"memories": [{"content": "Where is the tug?", "kind": "question"}], "dedup": False}
    asked = world.server.owner.post("/api/v1/memories", json=told).json()["outcomes"][0]["id"]
    page.goto(f"/memory/{new}?done=added&effects=may-answers:{asked}")
    press(page, "Close it", "Linked.")
    assert stored(world, asked)["answered"] is True


def test_an_effect_on_a_memory_that_is_gone_is_left_out(page, pair):
    (_, new) = pair[1]
    page.goto(f"/memory/{new}?done=added&effects=replaces:ffffffff")
    expect(page.get_by_role("status")).to_contain_text("Stored.")
    expect(page.locator(".remark")).to_have_count(0)


@pytest.mark.parametrize(
    ("outcome", "effect"),
    [
        pytest.param({"supersedes": ["a"]}, "replaces", id="replaced"),
        pytest.param({"settles": ["a"]}, "closes", id="closed"),
        pytest.param({"marks": ["a"]}, "newer", id="marked"),
        pytest.param({"similar": "a"}, "similar", id="similar"),
        *(
            pytest.param({"proposals": [{"relation": name, "id": "a"}]}, f"may-{name}", id=name)
            for name in PROPOSALS
        ),
    ],
)
def test_every_effect_of_an_outcome_has_words(outcome, effect):
    assert list_effects(outcome) == [(effect, "a")]
    assert effect in SHOWN_EFFECTS


def test_a_memory_is_named_once_however_many_effects_concern_it():
    assert list_effects({"supersedes": ["a"], "marks": ["a"], "similar": "a"}) == [
        ("replaces", "a")
    ]


def test_an_unknown_effect_in_the_address_is_left_out(page, pair):
    (_, old), (_, new) = pair
    page.goto(f"/memory/{new}?done=added&effects=calls-the-number-of:{old}")
    expect(page.get_by_role("status")).to_contain_text("Stored.")
    expect(page.locator(".remark")).to_have_count(0)


# Beside the older memory


def test_the_page_of_a_memory_names_the_newer_one(page, pair):
    (_, old), (new_text, _) = pair
    page.goto(f"/memory/{old}")
    expect(page.locator(".notice", has_text="Newer:")).to_contain_text(new_text)
    page.locator(".notice").get_by_role("link", name=new_text).click()
    expect_title(page, new_text)


def test_the_page_of_the_newer_memory_has_no_such_remark(page, pair):
    page.goto(f"/memory/{pair[1][1]}")
    expect(page.get_by_text("Newer:")).to_have_count(0)


def test_the_older_memory_is_marked_as_replaced_by_one_click(page, world, pair):
    (_, old), (_, new) = pair
    page.goto(f"/memory/{old}")
    press(page, "Mark as replaced", "Linked.")
    assert stored(world, old)["superseded_by"] == new
    expect(page.get_by_text("Newer:")).to_have_count(0)


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("/search?q={text}", id="hits"),
        pytest.param("/search", id="newest"),
        pytest.param("/", id="home"),
    ],
)
def test_a_list_names_the_newer_memory_beside_the_older_one(page, pair, address):
    (old_text, _), (new_text, _) = pair
    page.goto(address.format(text=old_text.replace(" ", "+")))
    older = page.locator(".hit", has=page.locator("a.open", has_text=old_text))
    expect(older.locator(".newer")).to_have_text(f"Newer: {new_text}")


def test_a_forgotten_memory_is_not_named_as_newer(page, world, pair):
    (_, old), (_, new) = pair
    world.server.owner.delete(f"/api/v1/memories/{new}")
    page.goto(f"/memory/{old}")
    expect(page.get_by_text("Newer:")).to_have_count(0)


def test_an_older_memory_is_not_named_as_newer(page, world, pair):
    (_, old), (_, new) = pair
    where = f"/api/v1/memories/{old}/relations"
    world.server.owner.post(where, json={"target": new, "type": "may_replace"})
    page.goto(f"/memory/{new}")
    expect(page.get_by_text("Newer:")).to_have_count(0)


WITH_REMARKS = [
    pytest.param("/memory/{old}", id="the older"),
    pytest.param("/memory/{new}?done=added&effects=may-replaces:{old}", id="the newer"),
]


@pytest.mark.parametrize("address", WITH_REMARKS)
def test_a_page_with_remarks_fits_a_phone(browser, world, pair, address):
    (_, old), (_, new) = pair
    with window(browser, world, viewport=NARROW, has_touch=True) as opened:
        opened.page.goto(address.format(old=old, new=new))
        assert find_small(opened.page) == [] and not sticks_out(opened.page)


@pytest.mark.parametrize("address", WITH_REMARKS)
def test_a_page_with_remarks_is_accessible(page, pair, address):
    (_, old), (_, new) = pair
    page.goto(address.format(old=old, new=new))
    assert axe(page) == []
