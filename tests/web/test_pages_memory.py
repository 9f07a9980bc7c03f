"""The page of one memory in a real browser: source, history, relations, votes, edit, forget, restore, and undo of each."""

from __future__ import annotations

import re
from itertools import count

import pytest
from conftest import expect_alert, expect_title, press, text_box, window
from playwright.sync_api import expect

from bethink.api import Bethink
from bethink.model import Passage, Source

_numbers = count(1)
NINE = "The ferry to Tallinn leaves at nine"


@pytest.fixture
def fresh(world):
    """A memory of this test's own."""
    id = world.server.add(NINE, dedup=False, force=True)
    yield id
    world.server.owner.delete(f"/api/v1/memories/{id}?purge=true")


@pytest.fixture
def unverified(world):
    """An imported memory."""
    name = f"vendor/{next(_numbers)}.txt"
    with Bethink(directory=world.story.project) as memory:
        memory.ingest([(Source(name, "import"), [Passage(f"Line of {name}", kind="fact")])])
        (found,) = memory.list(filter=memory.filter(sources=(name,)), limit=1)
    return found.id


def stored(world, id):
    return world.server.owner.get(f"/api/v1/memories/{id}?count=false").json()


def test_an_edit_is_kept_shown_as_a_difference_and_undone(page, world, fresh):
    page.goto(f"/memory/{fresh}")
    page.keyboard.press("e")
    new = "The ferry to Tallinn leaves at ten,\nfrom the west quay"
    text_box(page).fill(new)
    page.get_by_label("Importance").fill("7.5")
    page.locator("#edit").get_by_label("Tags").fill("ferry, harbour")
    press(page, "Save", "Saved")
    saved = {"content": new, "importance": 7.5, "tags": ["ferry", "harbour"]}
    assert {**stored(world, fresh), **saved} == stored(world, fresh)
    expect(page.locator(".diff del").first).to_have_text("nine")
    expect(page.locator(".diff ins").first).to_contain_text("ten")
    press(page, "Undo")
    expect_title(page, "leaves at nine")
    assert stored(world, fresh)["content"] == NINE


def test_what_changed_meanwhile_is_not_overwritten_and_nothing_typed_is_lost(page, world, fresh):
    page.goto(f"/memory/{fresh}")
    page.keyboard.press("e")
    text_box(page).fill("The ferry leaves at noon")
    changed = {"content": "The ferry was cancelled"}
    world.server.owner.patch(f"/api/v1/memories/{fresh}", json=changed)
    press(page, "Save")
    expect_alert(page, "changed while you were editing")
    expect_title(page, "cancelled")
    expect(text_box(page)).to_have_value("The ferry leaves at noon")
    assert stored(world, fresh)["content"] == "The ferry was cancelled"
    press(page, "Save", "Saved")  # now knowing of it
    assert stored(world, fresh)["content"] == "The ferry leaves at noon"


def test_an_edit_that_cannot_be_is_told_and_kept_in_the_form(page, world, fresh):
    for field, value, told in (("Text", "   ", "no text"), ("Expires", "banana", "banana")):
        page.goto(f"/memory/{fresh}")
        page.keyboard.press("e")
        page.get_by_role("textbox", name=field, exact=True).fill(value)
        page.locator("#edit form").evaluate("form => form.noValidate = true")
        press(page, "Save")
        expect_alert(page, told)
        page.once("dialog", lambda dialog: dialog.accept())  # something typed would be left
    assert stored(world, fresh)["content"] == NINE
    assert stored(world, fresh)["expires_at"] is None


def test_a_replaced_memory_says_by_what_and_can_be_brought_back(page, world):
    page.goto(f"/memory/{world.id('old')}")
    press(page, "Restore", "Restored")
    press(page, "Undo", "Linked.")
    expect(page.locator(".notice.warn")).to_contain_text("Replaced by Carts are kept")
    relation = page.locator(".relations li", has_text="replaced by")  # of the other one to this
    relation.get_by_role("button").click()
    expect(page.get_by_role("status")).to_contain_text("Link removed.")
    press(page, "Undo", "Linked.")
    expect(page.locator(".notice.warn")).to_contain_text("Replaced by Carts are kept")
    page.locator(".notice.warn").get_by_role("link").click()
    expect_title(page, "seven days")
    expect(page.locator(".relations")).to_contain_text("replaces")


def test_a_relation_can_be_undone(page, world, fresh):
    def relate(other):
        page.goto(f"/memory/{fresh}")
        page.get_by_text("Link to another memory").click()
        page.get_by_label(re.compile("^Relation")).select_option("builds_on")
        page.get_by_label("Memory id").fill(other)
        press(page, "Link")

    relate(world.id("renew todo"))
    expect(page.locator(".relations")).to_contain_text("builds on")
    expect(page.locator(".relations a")).to_contain_text("Renew the certificate")
    press(page, "Undo")
    expect(page.get_by_text("None yet.")).to_be_visible()
    assert stored(world, fresh)["related"] == []
    relate("ffffffff")
    expect_alert(page, "ffffffff")


def test_an_idea_is_shown_among_the_turns_it_came_from(page):
    page.goto("/search?q=pg_trgm&kind=decision&host=claude")
    page.locator(".hit a.open").first.click()
    expect(page.locator(".turn.own")).to_contain_text("pg_trgm")
    expect(page.locator(".turn").first).to_contain_text("talk about the port search")
    whole = page.get_by_role("link", name="Full conversation").get_attribute("href")
    assert "/session/a1000000-0000-4000-8000-000000000002" in whole


def test_an_undo_by_key_stays_on_the_page_of_the_memory(page, world):
    id = world.server.add("The tug of the north pier is red")
    page.goto(f"/memory/{id}")
    page.keyboard.press("e")
    text_box(page).fill("The tug of the north pier is blue")
    page.keyboard.press("Control+Enter")
    expect_title(page, "is blue")
    page.keyboard.press("Control+z")
    expect_title(page, "is red")


def test_a_key_opens_the_conversation_at_the_turn_of_a_memory(page):
    page.goto("/search?q=pg_trgm&kind=decision&host=claude")
    page.locator(".hit a.open").first.click()
    expect(page.locator(".turn.own")).to_be_visible()
    page.keyboard.press("c")
    page.wait_for_url("**/session/**")
    expect(page.locator(".turn:target")).to_contain_text("pg_trgm")


def test_everything_can_be_done_without_scripts(browser, world, fresh):
    with window(browser, world, java_script_enabled=False) as opened:
        page = opened.page
        page.goto(f"/memory/{fresh}")
        page.locator("#edit summary").click()
        text_box(page).fill("The ferry leaves at one")
        press(page, "Save")
        expect_title(page, "leaves at one")
        press(page, "Forget", "Forgotten")
        press(page, "Undo", "Restored")
        assert stored(world, fresh)["deleted_at"] is None


def test_a_memory_shows_how_it_changed(page, world):
    page.goto(f"/memory/{world.id('new')}")
    chain = page.locator(".chain li")
    expect(chain).to_contain_text(["Carts are kept in Redis for three days", "seven"])
    expect(chain.nth(1).locator("del")).to_have_text("three")


def test_the_arrow_of_a_relation_points_at_what_was_replaced(page, world):
    page.goto(f"/memory/{world.id('new')}")
    relation = page.locator(".relations li", has_text="replaces")
    expect(relation).to_contain_text("→ replaces Carts are kept")


def test_an_unverified_memory_is_trusted_by_key(page, world, unverified):
    page.goto(f"/memory/{unverified}")
    page.keyboard.press("t")
    expect(page.get_by_role("status")).to_contain_text("Trusted")
    assert stored(world, unverified)["trust"] == 3


def test_trusting_a_memory_can_be_undone(page, world, unverified):
    page.goto(f"/memory/{unverified}")
    press(page, "Trust", "Trusted")
    press(page, "Undo", "earlier trust")
    assert stored(world, unverified)["trust"] == 1


def test_the_reason_of_a_decision_is_shown(page, world):
    text = "The dredger moors at pier two because pier one silts up"
    page.goto(f"/memory/{world.server.add(text, dedup=False)}")
    expect(page.locator(".because")).to_contain_text("pier one silts up")
