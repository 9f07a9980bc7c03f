"""What a page says when something is missing or broken: nothing remembered, a database that is locked, migrated, too new or
damaged, a server that is gone, a browser that is not signed in. And that it goes on by itself.
"""

from __future__ import annotations

from contextlib import ExitStack

import apsw
import pytest
from conftest import World, axe, expect_alert, press, text_box, window
from http_server import home_at, running
from playwright.sync_api import expect
from story import Story

from bethink.api import Bethink


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A home and a project with nothing in them, and little patience with locks."""
    project = tmp_path / "shop"
    project.mkdir()
    monkeypatch.setenv("BETHINK_BUSY_TIMEOUT", "0.2")
    with home_at(tmp_path) as home:
        yield home, project


def opened_at(browser, home, project, server, **options):
    return window(browser, World(server, Story(project, project, {}), home), **options)


def test_while_another_process_writes_a_change_waits_and_pages_are_read(browser, place):
    home, project = place
    with Bethink(directory=project) as memory:
        id = memory.add("We deploy from main").id
    with running(home, project) as server, opened_at(browser, home, project, server) as opened:
        page = opened.page
        page.goto(f"/memory/{id}")
        writer = apsw.Connection(str(home / "memory.db"))
        writer.execute("BEGIN IMMEDIATE")
        page.reload()
        page.keyboard.press("e")
        text_box(page).fill("We deploy from main before noon")
        press(page, "Save")
        expect_alert(page, "locked by another process")
        expect(text_box(page)).to_have_value("We deploy from main before noon")
        page.context.new_page().goto("/search?q=deploy")
        expect(page.context.pages[1].locator(".hit a.open")).to_contain_text("We deploy from main")
        writer.execute("ROLLBACK")
        writer.close()
        press(page, "Save", "Saved")


def too_new(file):
    with Bethink(directory=file.parent):
        pass
    connection = apsw.Connection(str(file))
    connection.pragma("user_version", 999)
    connection.close()


def damaged(file):
    file.write_bytes(b"this is no database at all " * 400)
    file.chmod(0o600)


@pytest.mark.parametrize(("spoil", "told"), [(too_new, "newer Bethink"), (damaged, "memory.db")])
def test_a_database_that_cannot_be_used_is_named_with_what_to_do(browser, place, spoil, told):
    home, project = place
    spoil(home / "memory.db")
    with running(home, project) as server, opened_at(browser, home, project, server) as opened:
        assert opened.page.goto("/").status == 500
        expect(opened.page.locator(".trouble")).to_contain_text(told)
        expect(opened.page.locator(".hint")).not_to_be_empty()
        assert axe(opened.page) == []


def test_a_server_that_is_gone_is_told_and_the_page_goes_on_when_it_is_back(browser, place):
    home, project = place
    with Bethink(directory=project) as memory:
        id = memory.add("We deploy from main").id
        memory.add("Redis keeps sessions for an hour")
    with ExitStack() as first:
        server = first.enter_context(running(home, project))
        port = int(server.address.rpartition(":")[2])
        with opened_at(browser, home, project, server) as opened:
            page, editing = opened.page, opened.context.new_page()
            page.goto("/search")
            editing.goto(f"/memory/{id}")
            editing.keyboard.press("e")
            text_box(editing).fill("We deploy from main at noon")
            idle = opened.context.new_page()
            idle.goto("/")
            first.close()
            # Somebody comes back to this window.
            idle.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
            expect(idle.locator("#gone")).to_be_visible()
            page.locator("#q").fill("deploy")
            expect(page.locator("#gone")).to_be_visible()
            press(editing, "Save")
            expect(editing.locator("#gone")).to_be_visible()
            expect(text_box(editing)).to_have_value("We deploy from main at noon")
            with running(home, project, port=port):
                for one in (idle, page, editing):
                    expect(one.locator("#gone")).to_be_hidden(timeout=15_000)
                hit = page.locator(".hit a.open").first  # of the question that was waiting
                expect(hit).to_contain_text("We deploy from main")
                press(editing, "Save", "Saved")


def test_a_ticket_signs_one_browser_in_once_and_leaves_no_trace(browser, world):
    ticket = f"{world.address}/enter?ticket={world.sessions.new_ticket()}"
    with window(browser, world.address) as opened:
        assert opened.page.goto("/").status == 401
        expect(opened.page.locator(".command")).to_have_text("bethink ui")
        assert axe(opened.page) == []
        opened.page.goto(ticket)
        opened.page.wait_for_url(f"{world.address}/~*/")
        expect(opened.page.locator(".hit a.open").first).to_be_visible()
        assert opened.page.evaluate("() => document.cookie") == ""
        opened.page.goto("/inbox")  # an address without the path is led to the browser's own pages
        opened.page.wait_for_url(f"{world.address}/~*/inbox")
        opened.page.go_back()
        assert "ticket" not in opened.page.url
    with window(browser, world.address) as other:
        assert other.page.goto(ticket).status == 401
