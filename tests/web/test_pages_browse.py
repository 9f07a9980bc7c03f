"""Timeline, conversation, graph, inbox, health and projects in a real browser: what they show, what they do, keys, narrow, dark,
without scripts."""

from __future__ import annotations

import itertools
import re

import pytest
import story as telling
from conftest import NARROW, WIDE, World, axe, find_small, sticks_out, window
from http_server import home_at, running
from playwright.sync_api import expect
from story import Story

from bethink.api import Bethink
from bethink.app.http import projects as serving
from bethink.llm import open_budget
from bethink.llm.base import Usage
from bethink.model import Passage, Source

PAGES = """
    / /?since=365d /memory/{new} /memory/{old} /search?q=redis /add /todos /sessions /session/several /timeline?q=redis /failures?project=all /graph /inbox
    /inbox?queue=doubtful /inbox?queue=duplicates /health /projects
""".split()
STILL = "#graph[data-state=still]"


@pytest.fixture(scope="module")
def world(world):
    project = world.story.project
    world.story.ids.update(telling.decide_about(project))
    telling.fail(world.story.other, world.home)
    with Bethink(directory=project) as memory:
        telling.long_talk(memory, "several", 6, ("Broker and outbox", "Port search", "Mails"))
    with Bethink(directory=project, container="crowd") as crowd:
        telling.crowd(crowd, 470)
    return world


def items(page, text=""):
    return page.locator("#items > .item", has_text=text)


def open_page(page, world, address):
    """Open a page, and wait for what comes later by itself."""
    page.goto(address.format_map(world.story.ids))
    if address == "/health":
        page.wait_for_selector(".findings li")
    elif "graph" in address:
        page.wait_for_selector(STILL)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [pytest.param(NARROW, id="390"), pytest.param(WIDE, id="1440")])
@pytest.mark.parametrize("address", PAGES)
def test_a_page_fits_its_window_and_is_accessible(browser, world, size, scheme, address):
    is_narrow = size == NARROW
    with window(browser, world, viewport=size, color_scheme=scheme, has_touch=is_narrow) as opened:
        page = opened.page
        open_page(page, world, address)
        assert axe(page) == []
        assert not sticks_out(page)
        assert not is_narrow or find_small(page) == []


EVERY_PAGE_CAN_BE_READ = [
    ("/?since=30d", "Carts are kept in Redis for three days"),
    ("/todos", "Renew the certificate"),
    ("/sessions", "Talk about broker and outbox"),
    ("/timeline?q=carts+in+redis", "Carts are kept in Redis for three days"),
    ("/session/several?topic=several-1", "user on Port search, number 0"),
    ("/failures?project=all", "Cannot find module 'zod'"),
    ("/graph?focus=about:RabbitMQ", "The broker's memory alarm"),
    ("/inbox", "Hotfixes may be deployed from a branch"),
    ("/health", "Checks"),
    ("/projects", "lighthouse"),
]


def test_every_page_can_be_read_without_scripts(browser, world):
    with window(browser, world, java_script_enabled=False) as opened:
        for address, text in EVERY_PAGE_CAN_BE_READ:
            opened.page.goto(address)
            expect(opened.page.locator("main").get_by_text(text).first).to_be_visible()


EMPTY = [
    ("/", "No memories yet"),
    ("/search?q=anything", "Nothing found"),
    ("/todos", "Nothing is open"),
    ("/sessions", "bethink backfill --all"),
    ("/timeline", "Nothing here yet"),
    ("/failures", "bethink backfill"),
    ("/graph", "Nothing to draw"),
    ("/inbox", "Nothing needs you"),
    ("/inbox?queue=doubtful", "Nothing needs you"),
    ("/health", "No conversations captured yet."),
    ("/projects", "No tokens yet."),
]


@pytest.fixture(scope="class")
def empty(browser, tmp_path_factory):
    """A page of a server without a memory."""
    folder = tmp_path_factory.mktemp("empty")
    (project := folder / "empty").mkdir()
    with (
        home_at(folder) as home,
        running(home, project) as server,
        window(browser, World(server, Story(project, project, {}), home)) as opened,
    ):
        yield opened.page


class TestNothingRemembered:
    @pytest.mark.parametrize(("address", "text"), EMPTY)
    def test_a_page_says_so(self, empty, address, text):
        assert empty.goto(address).status == 200
        expect(empty.get_by_text(text).first).to_be_visible()

    @pytest.mark.parametrize("address", [address for address, _ in EMPTY])
    def test_a_page_is_accessible(self, empty, address):
        empty.goto(address)
        assert axe(empty) == []


def test_sessions_show_days_and_topics_and_lead_to_the_turns(page):
    page.goto("/sessions")
    days = page.locator(".day h2 time").evaluate_all("all => all.map(one => one.dateTime)")
    assert days == sorted(days, reverse=True) and len(days) == 4
    session = page.locator(".session", has_text="Talk about broker")
    bands = session.locator(".band rect")
    expect(bands).to_have_count(3)
    widths = [bands.nth(number).bounding_box()["width"] for number in range(3)]
    assert widths == sorted(widths)
    session.locator(".bands li").nth(1).get_by_role("link").click()
    expect(page.locator("h2#turns-title")).to_have_text("Port search")
    expect(page.locator(".turn")).to_have_count(4)
    expect(page.locator(".turn").first).to_contain_text("user on Port search, number 0")
    page.goto("/sessions?project=all")
    page.get_by_label("Agent").select_option("codex")
    expect(page.locator(".session")).to_have_count(1)
    expect(page.locator(".session .origin").first).to_contain_text("harbour")
    page.goto("/sessions?host=gemini")
    expect(page.get_by_text("No sessions here")).to_be_visible()


def test_the_timeline_of_a_subject_strikes_what_was_replaced_and_names_the_successor(page):
    page.goto("/timeline?q=carts+kept+in+redis")
    past = page.locator(".event.past", has_text="for three days")
    expect(past.locator("del")).to_have_text("Carts are kept in Redis for three days")
    expect(past.locator(".arrow")).to_contain_text("replaced by Carts are kept in Redis for seven")


def test_a_subject_of_the_timeline_shows_its_statements_oldest_first(page):
    page.goto("/timeline")
    page.locator(".chips a", has_text="Redis").click()
    expect(page.locator("h1")).to_have_text("How “Redis” changed")
    times = page.locator(".event .origin time").evaluate_all("all => all.map(one => one.dateTime)")
    assert times == sorted(times)


def test_the_oldest_memory_of_a_graph_by_time_is_at_the_left(page):
    page.goto("/graph?focus=about:Redis")
    page.wait_for_selector(STILL)
    page.locator("[data-do=time]").click()
    page.wait_for_selector(STILL)
    left = {
        text: page.locator(".node", has_text=text).first.bounding_box()["x"]
        for text in ("keeps sessions", "seven days, no")
    }
    assert left["keeps sessions"] < left["seven days, no"]


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(WIDE, id="wide"),
        pytest.param(NARROW, id="narrow"),
    ],
)
def test_a_conversation_of_hundreds_of_topics_names_some_and_never_scrolls_sideways(
    page, world, size
):
    with Bethink(directory=world.story.project, container="long") as memory:
        telling.long_talk(memory, "endless", 1, [f"Topic of number {n}" for n in range(220)], 1)
    page.set_viewport_size(size)
    page.goto("/sessions?container=long")
    assert not sticks_out(page)
    expect(page.locator(".band rect")).to_have_count(220)
    names = page.locator(".bands li")
    expect(names.last).to_have_text("214 more")
    # Each is named in full.
    assert [
        number
        for number in range(6)
        for name in [names.nth(number).locator("bdi")]
        if not re.fullmatch(r"Topic of number \d+", name.inner_text())
        or name.bounding_box()["width"] <= 80
    ] == []


def test_a_conversation_shows_what_was_taken_from_each_turn(page):
    page.goto("/session/a1000000-0000-4000-8000-000000000001")
    turn = page.locator(".turn", has_text="consumers have to be idempotent").first
    turn.locator(".ideas a").first.click()
    expect(page.locator("h1")).to_contain_text("accept that an event can arrive twice")
    page.get_by_role("link", name="Full conversation").click()
    expect(page.locator(".turn")).to_have_count(6)


def test_a_node_is_opened_by_key(page):
    page.goto("/graph?focus=about:RabbitMQ&size=40")
    page.wait_for_selector(STILL)
    before = page.locator(".node").count()
    page.locator("#drawing").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#chosen > p bdi")).to_have_text("RabbitMQ")
    expect(page.locator(".node.chosen")).to_have_count(1)
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"):  # at least one of them leads on
        page.keyboard.press(key)
        if (chosen := page.locator("#chosen > p bdi").inner_text()) != "RabbitMQ":
            break
    assert chosen != "RabbitMQ"
    page.keyboard.press("Enter")
    expect(page.locator("#chosen .quiet").last).to_have_text(re.compile("more|Nothing else"))
    assert page.locator(".node").count() >= before
    page.keyboard.press("o")
    expect(page.locator("h1")).to_contain_text(chosen[:20])


def test_a_graph_has_a_legend_says_that_there_is_more_and_its_labels_do_not_overlap(page):
    page.goto("/graph?container=crowd&focus=about:Crowd&size=40")
    page.wait_for_selector(STILL)
    expect(page.locator("#left-out")).to_contain_text("there are more")
    expect(page.locator(".legend li")).to_have_count(11)
    page.goto("/graph?container=crowd&query=crowd&size=500")
    page.wait_for_selector(STILL)
    assert page.locator(".node").count() > 300
    boxes = page.evaluate(
        """() => [...document.querySelectorAll('.names text:not(.off)')].map(text => text.getBoundingClientRect().toJSON())"""
    )
    assert len(boxes) >= 5
    assert [
        one
        for one, other in itertools.combinations(boxes, 2)
        if (one["right"] > other["left"] and other["right"] > one["left"])
        and one["bottom"] > other["top"]
        and (other["bottom"] > one["top"])
    ] == []


def test_no_label_of_a_graph_covers_a_node_of_another(page):
    page.goto("/graph?query=broker+outbox+redis")
    page.wait_for_selector(STILL)
    covered = page.evaluate(
        """() => {
            const box = (one) => one.getBoundingClientRect();
            const groups = [...document.querySelectorAll('.dots > g')];
            const labels = [...document.querySelectorAll('.names > text')];
            const over = (a, b) => a.right > b.left && a.left < b.right && a.bottom > b.top && a.top < b.bottom;
            return labels.flatMap((label, mine) => label.classList.contains('off') ? [] : groups
                .filter((dot, at) => at !== mine && over(box(label), box(dot.firstChild)))
                .map(() => label.textContent));
        }"""
    )
    assert covered == []


def test_of_two_statements_of_a_moment_the_replaced_one_is_the_older(page):
    page.goto("/timeline?entity=Redis")
    texts = page.locator(".event .open").all_inner_texts()
    assert texts.index("Carts are kept in Redis for three days") < texts.index(
        "Carts are kept in Redis for seven days, no longer three"
    )


def test_an_empty_project_names_those_with_memories(browser, tmp_path):
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.mkdir()
    full.mkdir()
    with home_at(tmp_path) as home, running(home, empty) as server:
        with Bethink(directory=full) as memory:
            memory.add("The quay has two cranes", kind="fact")
        with window(browser, World(server, Story(empty, empty, {}), home)) as opened:
            opened.page.goto("/")
            opened.page.locator("main").get_by_role("link", name="full").click()
            expect(opened.page.locator(".hit").first).to_contain_text("two cranes")


def test_a_decision_by_key_can_be_undone(page):
    for queue, key, text in (
        ("contradictions", "2", "Hotfixes may be deployed"),
        ("duplicates", "b", "never run it against staging"),
        ("doubtful", "t", telling.IMPORTED),
        ("promotions", "p", telling.USEFUL),
    ):
        page.goto(f"/inbox?queue={queue}")
        item = items(page, text).first
        expect(item).to_be_visible()
        count = items(page).count()
        item.focus()
        page.keyboard.press(key)
        expect(page.locator(".notice.good")).to_be_visible()
        expect(items(page)).to_have_count(count - 1)
        page.keyboard.press("u")
        expect(items(page)).to_have_count(count)
        expect(items(page, text).first).to_be_visible()


def test_a_decision_about_many_lines_can_be_undone(page, world):
    with Bethink(directory=world.story.project, container="read") as memory:
        for number in range(12):
            source = Source(f"vendor/{number}.txt", "import")
            memory.ingest([(source, [Passage(f"Line {number} of the vendor", kind="fact")])])
    page.goto("/inbox?container=read&queue=doubtful")
    tab = page.locator(".tabs a", has_text="Unverified")
    expect(tab.locator(".badge")).to_have_text("12")
    page.locator("#bulk").get_by_role("button", name="Forget").click()
    expect(page.get_by_role("alert").filter(has_text="Select something")).to_be_visible()
    page.get_by_label("all 12").check()
    page.keyboard.press("x")  # but not the first
    page.locator("#bulk").get_by_role("button", name="Forget").click()
    expect(page.locator(".notice.good")).to_contain_text("11 items")
    expect(items(page)).to_have_count(1)
    page.keyboard.press("u")
    expect(items(page)).to_have_count(12)


def test_health_counts_and_shows_what_doctor_says_by_itself(page, world, monkeypatch):
    budget = open_budget(world.server.projects.base.config)
    budget.note(budget.allow("extract", 2000), Usage(1000, 234))
    monkeypatch.setattr(serving, "CHECKED_FOR", 0)  # what was found for another test is old
    page.goto("/health")
    monkeypatch.undo()
    expect(page.locator(".findings li").first).to_be_visible()
    expect(page.locator("#running")).to_have_count(0)  # until then the page looks again by itself
    expect(page.get_by_role("row", name="codex").first).to_contain_text("1")
    charts = {}
    for name, number in (("Growth", 12), ("Capture", 2), ("Cost", 30)):
        charts[name] = page.locator("section", has=page.get_by_role("heading", name=name))
        expect(charts[name].locator(".bar")).to_have_count(number)
    charts["Cost"].get_by_text("Numbers").click()
    expect(charts["Cost"].locator("tbody tr").last).to_contain_text("1,234")
    expect(page.locator(".tiles div", has_text="Memories").locator(".figure")).not_to_have_text("0")


def test_projects_show_scopes_containers_and_who_reads_along(page, world):
    world.server.token("laptop", "write", folders=[world.story.project], personal=True)
    page.goto("/projects")

    def project(name):
        return page.locator(".project", has=page.get_by_role("heading", name=name))

    harbour = project("harbour")
    for text in ("server's project", "laptop", "router"):
        expect(harbour).to_contain_text(text)
    expect(project("lighthouse")).to_contain_text("Not shared")
    expect(project("Personal")).to_contain_text("1 memory in every project")
    harbour.locator(".containers li", has_text="router").get_by_role("link", name="Search").click()
    expect(page.locator(".hit")).to_have_count(2)  # its own, and what is personal
