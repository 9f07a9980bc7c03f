"""Thirty memories (`cases/web-hostile.txt`) that would like to be more than text. On every page they are text: nothing runs, nothing is loaded, nothing is
hidden, nothing breaks the page.
"""

from __future__ import annotations

import re

import pytest
from conftest import sticks_out, window
from http_server import body
from markupsafe import Markup
from playwright.sync_api import expect

from bethink.app.web.render import show_unseen

HOSTILE = {
    "script": "<script>window.hacked = 1</script> in the deployment notes",
    "script closing": "</script><script>window.hacked = 1</script>",
    "attribute": '"><script>window.hacked = 1</script><input value="',
    "single quotes": "'><img src=x onerror='window.hacked=1'>",
    "image": '<img src="x" onerror="window.hacked=1">',
    "svg": '<svg onload="window.hacked=1"><circle r="9"/></svg>',
    "svg script": '<svg><script href="data:text/javascript,window.hacked=1"/></svg>',
    "svg animate": '<svg><animate onbegin="window.hacked=1" attributeName="x" dur="1s"/></svg>',
    "math": '<math><mtext></p><img src onerror="window.hacked=1"></mtext></math>',
    "iframe": '<iframe srcdoc="<script>parent.hacked=1</script>"></iframe>',
    "object": '<object data="data:text/html,<script>window.hacked=1</script>"></object>',
    "style": "<style>body { display: none }</style>",
    "link": '<link rel="stylesheet" href="https://elsewhere.example/a.css">',
    "meta": '<meta http-equiv="refresh" content="0; url=https://elsewhere.example/">',
    "base": '<base href="https://elsewhere.example/">',
    "form": '<form action="https://elsewhere.example/" method="post"><button>Save</button></form>',
    "textarea": "</textarea><script>window.hacked=1</script>",
    "title": "</title><script>window.hacked=1</script>",
    "comment": "<!-- --><script>window.hacked=1</script><!--",
    "cdata": "<![CDATA[<script>window.hacked=1</script>]]>",
    "template": "{{ ''.__class__ }} {% include 'base.html' %} ${7*7} #{7*7} <%= 7*7 %>",
    "markdown": "[click](javascript:window.hacked=1) ![x](https://elsewhere.example/a.png) **bold**",
    "entities": "&lt;script&gt;window.hacked=1&lt;/script&gt; &amp;amp; &#60;b&#62;",
    "long word": "x" * 3000,
    "long line": "word " * 1000,
    "bidi": "access \u202egranted\u202c to \u2066everyone\u2069",
    "unseen": "pass\u200bword\ufeff \x07bell \U000e0041\U000e0042 tagged",
    "unseen between markup": "<script>window.hacked = 1</script>\u200b<img src=x onerror='window.hacked=1'>\u202e<b>",
    "marks": "Z" + "\u0301" * 500 + " and so on",
    "right to left": "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd <b>bold</b> \u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "nul and controls": "before\x01\x02 after \x1b[31mred\x1b[0m",
    "mark of ours": '<mark>marked</mark> <input name="mark" value="stolen">',
    "javascript address": "javascript:window.hacked=1",
}
# Those that are looked at on a page of their own, where they stand in a title, a form and attributes, too.
ALONE = ("script closing", "attribute", "single quotes", "textarea", "title", "comment", "template")
ALONE += ("long word", "bidi", "unseen", "unseen between markup", "marks", "mark of ours")
QUESTIONS = ("%00", "\ud83d", "a" * 9000, "'; DROP TABLE memories; --", "../../etc/passwd")
# What is unseen or turns text around is shown as what it is.
SHOWN = {"bidi": ("U+202E", "U+202C"), "unseen": ("U+200B", "U+FEFF", "U+E0041")}
PAGES = """
    / /search /search?q=script /search?q=window.hacked /search?q=elsewhere+example&project=all
    /todos /sessions /timeline /timeline?q=script /graph /inbox /health /projects
""".split()
# Elements and attributes that no page of ours has inside its content.
FOREIGN = (
    "main :is(script, iframe, object, embed, style, link, base, meta, img, video, audio, math, [style], [srcdoc], form:not([action^='/']),"
    " a:not([href^='/'], [href^='#']))"
)


@pytest.fixture(scope="module")
def hostile(world):
    """The memories, hostile in every part of them that is text. Name → id."""
    assert len(HOSTILE) >= 30
    found = {}
    for name, text in HOSTILE.items():
        short = text[:200]
        about = {"tags": [short[:50]], "entities": [f"concept:{short[:50]}"], "summary": short}
        statement = {"content": text, "kind": "question", **about}
        told = {"memories": [statement], "dedup": False, "source": short}
        answer = body(world.server.owner.post("/api/v1/memories", json=told), 201)
        found[name] = answer["outcomes"][0]["id"]
    return found


@pytest.fixture
def page(browser, world):
    with window(browser, world, viewport={"width": 380, "height": 700}) as opened:
        opened.page.on("dialog", lambda dialog: opened.wrong.append(f"dialog: {dialog.message}"))
        yield opened.page


def check_inert(page, where):
    assert page.evaluate("() => window.hacked") is None, where
    assert page.locator(FOREIGN).evaluate_all("nodes => nodes.map(n => n.outerHTML)") == [], where
    handlers = "() => [...document.querySelectorAll('*')].flatMap(node => [...node.attributes]).filter(a => a.name.startsWith('on')).length"
    assert page.evaluate(handlers) == 0, where
    assert page.locator("input[name=mark][value=stolen]").count() == 0, where


@pytest.mark.parametrize("name", ALONE)
def test_every_hostile_memory_is_plain_text_on_its_own_page(page, world, hostile, name):
    page.goto(f"/memory/{hostile[name]}")
    page.keyboard.press("e")
    check_inert(page, name)
    assert not sticks_out(page), name
    text = world.server.owner.get(f"/api/v1/memories/{hostile[name]}").json()["content"]
    shown = page.locator("article.memory").text_content()
    assert _plain(str(Markup(show_unseen(text)).striptags())) in _plain(shown), name
    assert page.locator("#edit textarea").input_value() == text.replace("\r\n", "\n"), name
    unseen = page.locator("article.memory .unseen").all_inner_texts()
    assert set(SHOWN.get(name, ())) <= set(unseen)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_stays_whole_with_all_of_them_on_it(page, hostile, path):
    page.goto(path)
    for why in page.locator(".why summary").all()[:3]:
        why.click()
    check_inert(page, path)
    assert not sticks_out(page), path
    frame = [page.locator(part).count() for part in ("header.top", "footer.foot")]
    assert frame == [1, 1], path


@pytest.mark.parametrize("question", (*list(HOSTILE.values())[:12], *QUESTIONS))
def test_a_hostile_question_is_only_a_question(page, hostile, question):
    page.goto("/search")
    with page.expect_response(lambda response: "part=results" in response.url):
        page.locator("#q").fill(question)
    expect(page.locator("#results[aria-busy=true]")).to_have_count(0)
    check_inert(page, question[:40])
    assert page.locator("#q").count() == 1


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text)
