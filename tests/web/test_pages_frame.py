"""What every page has, and the first of them: the project in the header, the palette, a new memory, what is new without a reload, nothing
typed that gets lost, signing in with a token; and what happened since somebody was last here."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from conftest import NARROW, World, axe, expect_alert, find_small, press, sticks_out, window
from http_server import home_at, running
from playwright.sync_api import expect
from story import Story

from bethink.api import Bethink
from bethink.hooks import state


def come_back(page):
    """As when somebody turns to this window again: it looks whether there is something new."""
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")


def test_home_tells_digests_changes_of_mind_what_is_open_and_what_waits(page):
    page.goto("/?since=30d")
    session = page.locator(".session", has_text="Let us talk about the port search")
    expect(session).to_contain_text("The index is in migration 0007")
    changed, carts = page.locator(".mind li"), "Carts are kept in Redis for"
    expect(changed.locator("> a")).to_have_text(f"{carts} seven days, no longer three")
    expect(changed.locator("del")).to_have_text(f"{carts} three days")
    expect(page.locator(".rows li", has_text="Renew the certificate")).to_contain_text("todo")
    waiting = page.locator(".rows li", has_text="Unverified")
    assert int(waiting.locator(".badge").inner_text()) >= 1
    waiting.get_by_role("link").click()
    expect(page.locator("h1")).to_have_text("Inbox")


def test_home_counts_from_the_last_visit_and_its_calendar_has_its_numbers_beneath(page, signed_in):
    page.goto("/")
    expect(page.locator("h1")).to_have_text("New in the last week")
    (seen,) = [one for one in signed_in.context.cookies() if one["name"].endswith("-seen")]
    assert seen["httpOnly"] and seen["sameSite"] == "Strict"
    three_days = int(time.time()) - 3 * 86400
    signed_in.context.add_cookies([{**seen, "value": f"{three_days}"}])
    for _ in range(2):
        page.goto("/")
        expect(page.locator("h1")).to_have_text("New since your last visit, 3 days ago")
    expect(page.locator(".session")).to_have_count(1)
    assert 175 < page.locator(".calendar rect").count() <= 182
    page.locator(".calendar summary").click()
    days = page.locator(".calendar rect:not(.level-0)").count()
    assert page.locator(".calendar tbody tr").count() == days


def test_the_project_is_named_and_switched_in_the_header(page):
    page.goto("/timeline")
    chosen = page.locator("#projects summary")
    expect(chosen).to_have_text("harbour")
    chosen.click()
    page.locator("#projects").get_by_role("link", name="lighthouse").click()
    expect(chosen).to_have_text("lighthouse")
    expect(page.locator("h1")).to_have_text("Timeline")
    page.get_by_role("link", name="Search", exact=True).click()
    expect(page.locator(".hit", has_text="tide tables")).to_be_visible()
    chosen.click()
    page.keyboard.press("Escape")
    expect(page.locator("#projects li").first).to_be_hidden()
    expect(chosen).to_have_text("lighthouse")


def test_projects_with_the_same_name_are_told_apart_by_their_folders(page, tmp_path):
    for folder in ("north", "south"):
        (tmp_path / folder / "quay").mkdir(parents=True)
        with Bethink(directory=tmp_path / folder / "quay") as memory:
            memory.add(f"The {folder} quay is closed")
    page.goto("/sessions")
    page.locator("#projects summary").click()
    places = page.locator("#projects a", has_text="quay").locator(".where").all_inner_texts()
    assert sorted(places) == ["…/north/quay", "…/south/quay"]


def test_home_says_which_memories_agents_were_shown_and_used(page, world):
    used, unused = (world.server.add(f"Beacon {n} is lit", dedup=False) for n in (1, 2))
    state.note_delivery(state.Hook("prompt", "claude", session="beacons"), [used, unused])
    world.server.owner.get(f"/api/v1/memories/{used}")
    page.goto("/?shown=unused")
    shown = page.locator("section", has=page.get_by_role("heading", name="Shown to agents"))
    expect(shown.locator(".rows li", has_text="Beacon 2")).to_contain_text("never used")
    expect(shown.locator(".rows li", has_text="Beacon 1")).to_have_count(0)


def test_home_shows_the_latest_after_a_first_import_of_old_sessions(browser, tmp_path):
    project = tmp_path / "old"
    project.mkdir()
    long_ago = datetime.now(UTC) - timedelta(days=200)
    with home_at(tmp_path) as home:
        with Bethink(directory=project, clock=lambda: long_ago) as memory:
            memory.add("The old lamp burns oil")
        here = World(None, Story(project, project, {}), home)
        with (
            running(home, project) as server,
            window(browser, here._replace(server=server)) as opened,
        ):
            opened.page.goto("/")
            expect(opened.page.locator(".hit")).to_contain_text("The old lamp burns oil")


def test_the_palette_leads_to_pages_finds_and_adds(page):
    page.goto("/inbox")
    page.keyboard.press("Control+k")
    assert axe(page) == []
    page.keyboard.type("timel")
    expect(page.locator("#choices li").first).to_contain_text("Timeline")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Timeline")
    page.locator("#open-palette").click()
    page.keyboard.type("webhooks retried")
    hit = page.locator("#choices li", has_text="growing pause")
    expect(hit).to_be_visible()
    while hit.get_attribute("aria-selected") != "true":
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Webhooks are retried")
    page.keyboard.press("Control+k")
    page.keyboard.type("The quay closes at ten")
    page.locator("#choices li", has_text="Add “The quay").click()
    expect(page.locator("#add textarea")).to_have_value("The quay closes at ten")


def test_a_memory_is_added_on_any_page_and_what_was_typed_outlasts_escape(page):
    page.goto("/graph")
    page.keyboard.press("n")
    assert axe(page) == []
    page.keyboard.type("The pilot boards at buoy seven")
    page.keyboard.press("Escape")
    expect(page.locator("#add")).to_be_hidden()
    page.goto("/inbox")
    page.locator("#open-add").click()
    text = page.get_by_label("Note", exact=True)
    expect(text).to_have_value("The pilot boards at buoy seven")
    page.get_by_label("Tags").last.fill("pilot")
    press(page, "Add", "Stored.")
    expect(page.locator("h1")).to_have_text("The pilot boards at buoy seven")
    page.keyboard.press("n")
    expect(text).to_have_value("")  # it was sent
    page.keyboard.type(" ")
    press(page, "Add")
    expect(page.locator("#add").get_by_role("alert")).to_contain_text("text")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    expect(page.get_by_role("status")).to_contain_text("Forgotten")


def test_new_memories_appear_without_a_reload_and_only_those_of_the_project(signed_in, world):
    text, server = "The crane at berth four is out of order", world.server
    page, other = signed_in.page, signed_in.context.new_page()
    projects = server.owner.get("/api/v1/projects").json()["items"]
    (scope,) = [one["scope"] for one in projects if one["name"] == "lighthouse"]
    for one, where in ((page, "/"), (other, f"/?project={scope}")):
        with one.expect_response(lambda response: "/live" in response.url):
            one.goto(where)
    before = other.locator("main").inner_text()
    server.add(text, dedup=False)
    come_back(page)
    expect(page.locator(".hit", has_text=text)).to_be_visible()
    with other.expect_response(lambda response: "/live" in response.url):
        come_back(other)
    assert other.locator("main").inner_text() == before
    page.locator(".hit a.open").first.focus()  # somebody is at work there
    server.add(f"{text}, still", dedup=False)
    come_back(page)
    page.get_by_role("button", name="Show new items").click()
    expect(page.locator(".hit", has_text=f"{text}, still")).to_be_visible()


def test_a_member_signs_out_again(browser, world):
    token = world.server.token("marta", "write", folders=[world.story.project])
    with window(browser, world.address, viewport=NARROW, has_touch=True) as opened:
        page = opened.page
        assert page.goto("/").status == 401
        assert axe(page) == [] and not sticks_out(page) and find_small(page) == []
        page.get_by_label("Your token").fill("rcl_wrong")
        press(page, "Sign in")
        expect_alert(page, "Unknown token")
        page.get_by_label("Your token").fill(token)
        press(page, "Sign in")
        page.wait_for_url(f"{world.address}/~*/")
        expect(page.locator("footer")).to_contain_text("Signed in as marta")
        assert token not in page.url and page.evaluate("() => document.cookie") == ""
        press(page, "Sign out")
        expect(page.locator(".command")).to_have_text("bethink ui")
