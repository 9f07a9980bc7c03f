"""Closing to-dos, questions and problems on their own page, on Home and in the inbox, and reopening them."""

from __future__ import annotations

from itertools import count

import pytest
from conftest import NARROW, axe, find_small, press, sticks_out, window
from playwright.sync_api import expect

from bethink.api import Bethink

_numbers = count(1)


@pytest.fixture
def make(world):
    """Adds an open item of a kind. Returns its text and id."""

    def add(kind="todo"):
        text = f"Item {next(_numbers)}: paint the harbour crane"
        told = {"memories": [{"content": text, "kind": kind}], "dedup": False}
        answer = world.server.owner.post("/api/v1/memories", json=told).json()
        return text, answer["outcomes"][0]["id"]

    return add


def is_closed(world, id):
    return world.server.owner.get(f"/api/v1/memories/{id}?count=false").json()["answered"]


def row(page, text):
    return page.locator(".rows li", has_text=text)


@pytest.mark.parametrize(
    ("kind", "state"), [("todo", "done"), ("question", "answered"), ("problem", "solved")]
)
def test_an_open_item_is_closed_on_its_own_page(page, world, make, kind, state):
    _, id = make(kind)
    page.goto(f"/memory/{id}")
    press(page, f"Mark as {state}", f"Marked as {state}.")
    assert is_closed(world, id)


def test_a_key_closes_the_open_item_of_a_page(page, world, make):
    _, id = make()
    page.goto(f"/memory/{id}")
    page.keyboard.press("d")
    expect(page.get_by_role("status")).to_contain_text("Marked as done.")
    assert is_closed(world, id)


def test_closing_on_its_own_page_can_be_undone(page, world, make):
    _, id = make()
    page.goto(f"/memory/{id}")
    press(page, "Mark as done", "Marked as done.")
    press(page, "Undo", "Reopened.")
    assert is_closed(world, id) is False


def test_a_closed_item_can_be_reopened_later(page, world, make):
    _, id = make()
    world.server.owner.patch(f"/api/v1/memories/{id}", json={"answered": True})
    page.goto(f"/memory/{id}")
    press(page, "Reopen", "Reopened.")
    assert is_closed(world, id) is False


def test_a_statement_has_nothing_to_close(page, world):
    page.goto(f"/memory/{world.id('redis fact')}")
    expect(page.get_by_role("button", name="Mark as")).to_have_count(0)


def test_a_closed_item_leaves_the_list_on_home(page, world, make):
    text, id = make()
    page.goto("/?since=30d")
    page.get_by_role("button", name=f"Mark as done: {text}").click()
    expect(page.get_by_role("status").filter(has_text="Marked as done")).to_contain_text(text)
    expect(row(page, text)).to_have_count(0)
    assert is_closed(world, id)


def test_home_keeps_its_period_after_an_item_was_closed(page, make):
    text, _ = make()
    page.goto("/?since=30d")
    page.get_by_role("button", name=f"Mark as done: {text}").click()
    expect(page.get_by_role("status").filter(has_text="Marked as done")).to_be_visible()
    expect(page.locator("h1")).to_contain_text("in the last month")


def test_closing_on_home_can_be_undone(page, world, make):
    text, id = make()
    page.goto("/")
    page.get_by_role("button", name=f"Mark as done: {text}").click()
    press(page, "Undo", "Reopened")
    expect(row(page, text)).to_be_visible()
    assert is_closed(world, id) is False


def test_the_box_on_home_works_with_the_keyboard(page, world, make):
    text, id = make()
    page.goto("/")
    page.locator("a.open", has_text=text).first.wait_for()
    page.get_by_role("button", name=f"Mark as done: {text}").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("status").filter(has_text="Marked as done")).to_be_visible()
    assert is_closed(world, id)


def test_an_item_of_another_project_is_closed_where_all_projects_are_shown(page, world):
    text = "Order new lamps for the lighthouse"
    with Bethink(directory=world.story.other) as memory:
        id = memory.add(text, kind="todo").id
    page.goto("/?project=all")
    page.get_by_role("button", name=f"Mark as done: {text}").click()
    press(page, "Undo", "Reopened")
    page.get_by_role("button", name=f"Mark as done: {text}").click()
    expect(page.get_by_role("status").filter(has_text="Marked as done")).to_contain_text(text)
    expect(page.locator("#projects summary")).to_have_text("All projects")
    with Bethink(directory=world.story.other) as memory:
        assert memory.one(id).answered


def test_a_key_closes_an_item_of_the_ledger(page, world, make):
    text, id = make()
    page.goto("/todos")
    page.locator("#items .item", has_text=text).focus()
    page.keyboard.press("d")
    expect(page.get_by_role("status")).to_contain_text(f"Marked as done: {text}")
    assert is_closed(world, id)


def test_a_key_closes_the_item_that_has_the_focus_and_not_the_first(page, world, make):
    _, older = make()
    _, newer = make()
    page.goto("/todos?kind=todo")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("d")
    expect(page.get_by_role("status")).to_contain_text("Marked as done")
    assert is_closed(world, older) and not is_closed(world, newer)


def test_a_key_closes_an_open_item_of_home(page, world, make):
    text, id = make()
    page.goto("/")
    row(page, text).get_by_role("link").focus()
    page.keyboard.press("d")
    expect(page.get_by_role("status")).to_contain_text(f"Marked as done: {text}")
    assert is_closed(world, id)


def test_closing_in_the_ledger_can_be_undone_by_key(page, world, make):
    text, id = make("question")
    page.goto("/todos?kind=question")
    page.get_by_role("button", name=f"Mark as answered: {text}").click()
    expect(page.get_by_role("status")).to_contain_text("Marked as answered")
    page.keyboard.press("u")
    expect(row(page, text)).to_be_visible()
    assert is_closed(world, id) is False


def test_a_closed_item_is_listed_as_closed_and_reopened_there(page, world, make):
    text, id = make()
    world.server.owner.patch(f"/api/v1/memories/{id}", json={"answered": True})
    page.goto("/todos?show=done")
    page.get_by_role("button", name=f"Reopen: {text}").click()
    expect(page.get_by_role("status")).to_contain_text("Reopened")
    assert is_closed(world, id) is False


def test_a_to_do_is_added_on_its_page(page):
    page.goto("/todos")
    text = f"Item {next(_numbers)}: oil the winch of the pilot boat"
    page.get_by_label("New todo").fill(text)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text(f"Added: {text}")
    expect(row(page, text)).to_be_visible()


def test_the_last_change_is_undone_by_key_on_any_page(page, world, make):
    _, id = make()
    page.goto(f"/memory/{id}")
    press(page, "Mark as done", "Marked as done.")
    page.goto("/sessions")
    page.keyboard.press("Control+z")
    expect(page.get_by_role("status")).to_contain_text("Undone: reopened")
    assert not is_closed(world, id)


@pytest.mark.parametrize("address", ["/", "/todos", "/memory/{id}"])
def test_an_item_is_reopened_without_scripts(browser, world, make, address):
    _, id = make()
    with window(browser, world, java_script_enabled=False) as opened:
        page = opened.page
        page.goto(address.format(id=id))
        page.get_by_role("button", name="Mark as done").first.click()
        press(page, "Undo")
        expect(page.get_by_role("status").filter(has_text="Reopened")).to_be_visible()


def test_who_may_only_read_is_offered_nothing_to_close(browser, world, make):
    text, _ = make()
    token = world.server.token("reader", "read", folders=[world.story.project])
    with window(browser, world.address) as opened:
        page = opened.page
        page.goto("/")
        page.get_by_label("Your token").fill(token)
        press(page, "Sign in")
        expect(row(page, text)).to_be_visible()
        expect(page.get_by_role("button", name="Mark as")).to_have_count(0)


def test_boxes_are_large_enough_for_a_finger(browser, world, make):
    make()
    with window(browser, world, viewport=NARROW, has_touch=True) as opened:
        opened.page.goto("/")
        assert find_small(opened.page) == [] and not sticks_out(opened.page)


def test_home_with_boxes_is_accessible(page, make):
    make()
    page.goto("/")
    assert axe(page) == []
