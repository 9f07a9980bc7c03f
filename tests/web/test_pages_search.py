"""The search page in a real browser: results while one types, filters, marks, reasons, keys, narrow, dark, without scripts."""

from __future__ import annotations

import pytest
from conftest import expect_alert, focused
from http_server import body
from playwright.sync_api import expect

from bethink.app.web.pages import count_strong

FIRST_PAGE = 150_000  # bytes, all of it


def titles(page):
    return page.locator(".hit a.open").all_inner_texts()


def test_results_come_while_one_types_and_the_address_follows(page):
    page.goto("/search")
    page.locator("#q").press_sequentially("outbox relay", delay=5)
    expect(page.locator(".hit a.open").first).to_contain_text("outbox")
    expect(page.locator(".hit mark").first).to_have_text("outbox")
    page.wait_for_url(lambda url: url.endswith("q=outbox+relay"))
    page.reload()
    expect(page.locator("#q")).to_have_value("outbox relay")
    expect(page.locator(".hit a.open").first).to_contain_text("outbox")


def test_more_leads_on_without_repeating_anything(page):
    page.goto("/search")
    expect(page.locator(".count")).to_contain_text("newest first")
    first = titles(page)
    assert first[0].startswith("Tests are run with make test")
    page.get_by_role("link", name="More", exact=True).click()
    expect(page.locator(".hit a.open").first).not_to_have_text(first[0])
    assert not set(titles(page)) & set(first)


FILTERS_NARROW_SHOWN = [
    ("kind=gotcha", "make seed truncates", "Renew the certificate"),
    ("entity=Redis", "Redis keeps sessions", "Renew the certificate"),
    ("host=codex", "pnpm", "Renew the certificate"),
    ("host=claude&kind=context", "trigram", "pnpm"),
    ("source=docs/orders.md", "Order numbers count per port", "Redis keeps"),
    ("tag=staging", "The staging database", "Redis keeps"),
    ("since=4d", "memory alarm", "Renew the certificate"),
    ("until=20d", "make seed truncates", "memory alarm"),
    ("project=all&kind=decision", "Lighthouse renders its charts", "Redis keeps"),
    ("project=personal", "I prefer small steps", "Redis keeps"),
    ("hidden=1&q=carts+in+redis", "for three days", "nothing"),
]


@pytest.mark.parametrize(("asked", "there", "missing"), FILTERS_NARROW_SHOWN)
def test_a_filter_narrows_what_is_shown(page, asked, there, missing):
    page.goto(f"/search?{asked}")
    expect(page.locator("#results")).to_contain_text(there)
    assert missing not in page.locator("#results").inner_text()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        pytest.param("since=banana", "banana", id="time"),
        pytest.param("project=nowhere", "There is no project 'nowhere' here.", id="project"),
    ],
)
def test_a_filter_that_cannot_be_read_is_named(page, asked, message):
    page.goto(f"/search?{asked}")
    expect_alert(page, message)


def test_the_reasons_of_a_score_and_what_hardly_fits_are_shown_on_demand(page):
    page.goto("/search?q=redis")
    expect(page.locator(".hit .value").first).to_be_hidden()
    page.locator(".why summary").first.click()
    expect(page.locator(".hit .value").first).to_be_visible()
    bars = page.locator(".why").first.locator(".bars meter")
    read = "bars => Object.fromEntries(bars.map(bar => [bar.ariaLabel, bar.value / bar.max]))"
    shares = bars.evaluate_all(read)
    assert {"words", "relevance"} <= set(shares)
    assert all(0 <= share <= 1 for share in shares.values())
    page.goto("/search?q=how+do+we+deploy")
    shown = page.locator(".hit").count()
    assert 1 <= shown <= 5
    expect(page.locator(".count")).to_have_text(f"{shown} matches")
    page.get_by_role("link", name="weaker matches").click()
    expect(page.locator(".count")).not_to_have_text(f"{shown} matches")
    assert page.locator(".hit").count() > shown


@pytest.mark.parametrize(
    ("scores", "number"),
    [
        pytest.param([], 0, id="0"),
        pytest.param([0.9], 1, id="0.9-1"),
        pytest.param([0.9, 0.1, 0.1, 0.1], 3, id="0.9-0.1"),
        pytest.param([0.9, 0.8, 0.7, 0.6, 0.2, 0.1], 4, id="0.9-0.8"),
        pytest.param([0.3, 0.3, 0.3, 0.3, 0.9, 0.2], 5, id="0.3"),
        pytest.param([0.5] * 20, 20, id="0.5"),
    ],
)
def test_the_tail_begins_where_scores_fall_off(scores, number):
    assert count_strong(scores) == number, scores


def test_code_is_shown_as_code_with_its_matches_marked(page, world):
    code = "def send_events(broker):\n    for row in outbox:\n        broker.publish(row)\n" * 9
    note = "Call `send_events` once:\n```python\nsend_events(broker)  # <b>\n```\nand no `twice"
    statements = [{"content": code, "kind": "code"}, {"content": note, "kind": "fact"}]
    told = {"memories": statements, "dedup": False}
    body(world.server.owner.post("/api/v1/memories?container=coded", json=told), 201)
    page.goto("/search?container=coded&q=send_events")
    hit = page.locator(".hit", has=page.locator(".is-code"))
    expect(hit.locator("pre.code mark").first).to_have_text("send")
    assert "monospace" in hit.locator("pre").evaluate("one => getComputedStyle(one).fontFamily")
    assert len(hit.locator("pre").inner_text().splitlines()) <= 10
    told = page.locator(".hit .text")
    expect(page.locator(".hit h3 code mark").first).to_have_text("send")
    expect(told.locator("pre")).to_contain_text("# <b>")
    expect(told).to_contain_text("and no `twice")


def test_everything_works_with_the_keyboard_alone(page):
    page.goto("/search?q=redis")
    page.locator("body").press("/")
    assert focused(page) == "q"
    page.keyboard.type("redis carts")  # in place of what stood there
    expect(page.locator(".hit mark", has_text="Carts").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    first = focused(page)
    page.keyboard.press("ArrowDown")
    assert focused(page) != first
    page.keyboard.press("ArrowUp")
    assert focused(page) == first
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(first)
    page.keyboard.press("Escape")
    expect(page.locator("#q")).to_have_value("redis carts")
    page.locator("#q").focus()
    page.keyboard.press("Escape")
    assert focused(page) != "q"
    expect(page.locator("#q")).to_have_value("redis carts")


def test_the_first_page_is_light(page):
    page.goto("/search", wait_until="load")
    loaded = "() => performance.getEntriesByType('resource').map(entry => entry.name)"
    parts = (page.url, *page.evaluate(loaded))
    sizes = {url.rpartition("/")[2]: len(page.request.get(url).body()) for url in parts}
    assert set(sizes) >= {"search", "site.css", "site.js"}
    assert sum(sizes.values()) < FIRST_PAGE, sizes


def test_a_slow_answer_never_replaces_a_newer_one(page):
    """The first question is held back until the second was answered."""
    held = []
    page.goto("/search")
    page.route("**/search?q=redis&part=results", lambda route: held.append(route))
    page.locator("#q").fill("redis")
    page.wait_for_selector("#results[aria-busy=true]")
    page.locator("#q").fill("webhooks")
    expect(page.locator(".hit a.open").first).to_contain_text("Webhooks")
    assert held
    for route in held:
        route.fulfill(body="<p id='late'>late</p>", content_type="text/html")
    # Whatever came late is there by then.
    late = "async () => { await fetch('/healthz'); await new Promise(requestAnimationFrame); }"
    page.evaluate(late)
    assert page.locator("#late").count() == 0
    expect(page.locator(".hit a.open").first).to_contain_text("Webhooks")
    page.wait_for_url(lambda url: "q=webhooks" in url)


def test_notes_come_before_turns_and_passages_from_files(page):
    page.goto("/search?q=outbox+broker+confirm")
    groups = page.locator("h2.group").all_inner_texts()
    assert [group.rstrip("0123456789 ") for group in groups] == [
        "Notes and decisions",
        "From conversations",
        "From files",
    ]


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("what did we do last session", id="last session"),
        pytest.param("what is left", id="open items"),
    ],
)
def test_a_question_about_the_work_is_answered(page, question):
    page.goto(f"/search?q={question.replace(' ', '+')}")
    expect(page.locator(".hit").first).to_be_visible()


def test_the_newest_memories_leave_turns_to_a_link(page):
    page.goto("/search")
    expect(page.locator(".hit .kind-context")).to_have_count(0)
    page.get_by_role("link", name="from conversations").click()
    expect(page.locator(".hit .kind-context").first).to_be_visible()


def test_a_facet_narrows_the_results_to_its_number(page):
    page.goto("/search")
    facet = page.locator(".facet a", has_text="gotcha")
    number = facet.locator(".number").inner_text()
    facet.click()
    expect(page.locator(".count")).to_contain_text(f"{number} memor")
    expect(page.locator(".facet a[aria-current]")).to_contain_text("gotcha")


def test_a_chosen_facet_is_removed_again(page):
    page.goto("/search?kind=gotcha")
    page.locator(".facet a[aria-current]").click()
    expect(page.locator(".facet a[aria-current]")).to_have_count(0)


def test_a_key_leads_to_the_filters(page):
    page.goto("/search?q=redis")
    page.locator("#q").press("Escape")
    page.keyboard.press("f")
    assert focused(page) == "kind"


def test_a_key_opens_the_reasons_of_the_hit_with_the_focus(page):
    page.goto("/search?q=redis")
    page.locator("#q").press("ArrowDown")
    page.keyboard.press("w")
    expect(page.locator(".hit .value").first).to_be_visible()


def test_markdown_in_a_snippet_is_rendered(page, world):
    text = "# Mooring\n\nUse **two** lines:\n\n- bow line\n- stern line"
    told = {"memories": [{"content": text, "kind": "fact"}], "dedup": False}
    body(world.server.owner.post("/api/v1/memories?container=moored", json=told), 201)
    page.goto("/search?container=moored&q=mooring+lines")
    snippet = page.locator(".hit .text")
    expect(snippet.locator("strong")).to_have_text("two")
    expect(snippet.locator(".points li")).to_have_count(2)


def test_the_newest_memories_leave_passages_of_files_to_a_link(page):
    page.goto("/search")
    expect(page.locator(".hit .kind-document")).to_have_count(0)
    page.get_by_role("link", name="from files").click()
    expect(page.locator(".hit .kind-document").first).to_be_visible()
