"""The page of failed commands: what failed, what fixed it, what is unsolved."""

from __future__ import annotations

import re

import pytest
import story as telling
from conftest import World, window
from http_server import home_at, running
from playwright.sync_api import expect
from story import Story

HOSTILE = "Error: Cannot find module '<script>hacked=1</script><img src=x onerror=hacked=1>'"


@pytest.fixture(scope="module")
def world(world):
    telling.fail(world.story.project, world.home)
    return world


@pytest.fixture
def empty(browser, tmp_path):
    """A window on the pages of a project without memories, and the folder of that project."""
    project = tmp_path / "empty"
    project.mkdir()
    with (
        home_at(tmp_path) as home,
        running(home, project) as server,
        window(browser, World(server, Story(project, project, {}), home)) as opened,
    ):
        yield opened.page, project


def failure(page, text=""):
    return page.locator("li.failure", has_text=text)


def test_a_failure_is_shown_with_its_error_cause_count_last_day_and_fix(page):
    page.goto("/failures")
    expect(failure(page, "pnpm test").locator("dd")).to_contain_text(
        ["Cannot find module 'zod'", "ran pnpm install (helped 2 times)"]
    )
    origin = failure(page, "pnpm test").locator(".origin")
    expect(origin).to_contain_text("missing dependency · 2 times · last ")
    expect(origin.locator("time")).to_have_attribute("title", re.compile("^2026-05-05 "))
    expect(origin.get_by_role("link", name="session")).to_be_visible()


def test_a_failure_leads_to_its_memory(page):
    page.goto("/failures")
    failure(page, "docker compose").locator("a.open").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("docker compose up -d broker")


def test_the_unsolved_filter_leaves_out_what_was_fixed(page):
    page.goto("/failures")
    expect(failure(page)).to_have_count(2)
    page.get_by_role("link", name="Unsolved").click()
    expect(failure(page)).to_have_count(1)
    expect(failure(page)).to_contain_text("docker compose up -d broker unsolved")


def test_a_failure_is_marked_as_solved_and_reopened(page):
    page.goto("/failures?show=unsolved")
    page.get_by_role("button", name="Mark as solved").click()
    expect(page.get_by_role("status")).to_contain_text("Marked as solved")
    page.keyboard.press("u")
    expect(failure(page)).to_have_count(1)


def test_without_failures_the_page_names_the_command_that_reads_them(empty):
    page, _ = empty
    page.goto("/failures")
    expect(page.get_by_role("heading", name="No failures yet")).to_be_visible()
    expect(page.locator(".empty code").first).to_have_text("bethink backfill")


def test_markup_in_an_error_is_shown_as_text(empty):
    page, project = empty
    telling.fail(project, project, [(6, [("pnpm test", f"Exit code 1\n{HOSTILE}", True)])])
    page.goto("/failures")
    expect(failure(page).locator("dd")).to_have_text(HOSTILE)
    assert page.evaluate("() => window.hacked") is None
