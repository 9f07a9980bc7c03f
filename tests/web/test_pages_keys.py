"""The palette and Ctrl Enter in a real browser."""

from __future__ import annotations

import re

import pytest
from conftest import axe, expect_title, text_box
from playwright.sync_api import expect


def test_enter_in_the_palette_opens_the_full_search_page(page):
    page.goto("/timeline")
    page.keyboard.press("Control+k")
    page.keyboard.type("webhooks retried")
    expect(page.locator("#choices li", has_text="growing pause")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=webhooks+retried")
    expect(page.locator("header.top")).to_be_visible()


def test_enter_right_after_the_last_letter_searches_for_the_typed_text(page):
    page.goto("/timeline")
    page.keyboard.press("Control+k")
    page.locator("#palette input").evaluate(
        """field => {
            field.value = 'webhooks';
            field.dispatchEvent(new Event('input', {bubbles: true}));
            field.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
        }"""
    )
    page.wait_for_url("**/search?q=webhooks")


def test_the_palette_searches_the_project_of_the_page(page):
    page.goto("/search?project=personal")
    page.keyboard.press("Control+k")
    page.keyboard.type("small steps")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/search\?project=personal&q=small\+steps$"))


@pytest.mark.parametrize("key", ["Control+Enter", "Meta+Enter"])
def test_ctrl_enter_submits_a_new_note(page, key):
    page.goto("/timeline")
    page.keyboard.press("n")
    text = f"The lock keeper answers {key.split('+')[0]} calls on channel 12"
    page.keyboard.type(text)
    page.keyboard.press(key)
    expect_title(page, text)


def test_ctrl_enter_submits_the_edit_form(page, world):
    id = world.server.add("The slipway is closed on Mondays", dedup=False)
    page.goto(f"/memory/{id}")
    page.keyboard.press("e")
    text_box(page).fill("The slipway is closed on Tuesdays")
    page.keyboard.press("Control+Enter")
    expect_title(page, "closed on Tuesdays")


def test_a_key_shows_all_keys(page):
    page.goto("/sessions")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_contain_text("undo your last change")
    assert axe(page) == []


def test_two_keys_open_a_page(page):
    page.goto("/sessions")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect_title(page, "To-dos")


def test_an_arrow_opens_the_next_tab(page):
    page.goto("/todos")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tabs [aria-current]")).to_contain_text("To-dos")
