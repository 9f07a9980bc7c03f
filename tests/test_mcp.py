"""The MCP server over stdio with the official client, in both eras: every tool, resource and prompt."""

import json
import re
import tomllib
from datetime import timedelta
from itertools import chain

import pytest

pytest.importorskip("mcp")

from case_tables import cases, stories
from mcp.shared.exceptions import MCPError
from mcp_client import ERAS, Bare, talking
from mcp_types import Implementation, ListRootsResult, Root
from memories import use_tool

from bethink import Bethink, __version__
from bethink.agents.base import extract_speech
from bethink.app import OPERATIONS
from bethink.app.mcp import PROMPTS, TOOLS
from bethink.app.mcp.server import TEXT_ONLY, _codex_workspaces
from bethink.config import Config
from bethink.features import inbox
from bethink.model import Passage, Source
from bethink.outgoing import NOTICE
from bethink.recall.shape import tokens

DAY = timedelta(days=1)
FENCED = re.compile(r"<bethink-memory ([0-9a-f]{8})>\n(.*)\n</bethink-memory \1>", re.DOTALL)


@pytest.fixture(scope="module", params=[(ERAS[0], "sqlite"), (ERAS[1], "postgres")], ids="-".join)
def place(request, tmp_path_factory):
    """A project with knowledge and a home, for one era and one kind of database."""
    era, kind = request.param
    folder = tmp_path_factory.mktemp(era)
    project = folder / "shop"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    knowledge = project / ".claude" / "knowledge" / "domain"
    knowledge.mkdir(parents=True)
    (knowledge / "tea.md").write_text("# Tea\n\nOolong is sold in tins.\n")
    (folder / "home").mkdir(mode=0o700)
    if kind == "postgres":
        import postgres

        postgres.settle(folder / "home")
    return era, project, folder / "home"


@pytest.fixture(scope="module")
def talk(place):
    with talking(*place, client_info=Implementation(name="Test Host", version="1")) as talk:
        yield talk


def direct(place):
    """The same memory without the server, as a person would see it."""
    _, project, home = place
    given = home / "config.toml"
    settings = tomllib.loads(given.read_text()) if given.exists() else {}
    settings = {"database": str(home / "memory.db")} | settings
    return Bethink(config=Config(**settings)._replace(embedding="hashing"), directory=project)


def test_the_server_says_who_it_is_and_its_tools_are_few_words_with_hints(talk):
    listed = talk("list_tools", cache_mode="bypass")
    assert len(listed.model_dump_json(by_alias=True, exclude_none=True)) / 4 <= 1500
    tools = listed.tools
    assert [tool.name for tool in tools] == list(TOOLS)
    assert {tool for _, _, _, tool, _ in OPERATIONS.values()} - {"-"} == set(TOOLS)
    about = {tool.name: tool.annotations for tool in tools}
    reads = {"search_memories", "get_memories", "get_handoff", "memory_overview"}
    assert {name for name, one in about.items() if one.read_only_hint} == reads
    assert [name for name, one in about.items() if one.destructive_hint] == ["forget_memories"]
    once = {name for name, one in about.items() if one.idempotent_hint}
    assert once == set(TOOLS) - reads - {"rate_memories"}
    loaded = [tool.name for tool in tools if (tool.meta or {}).get("anthropic/alwaysLoad")]
    assert loaded == ["search_memories"]
    assert all(one.open_world_hint is False for one in about.values())
    listed = talk("list_prompts", cache_mode="bypass")
    if talk.client.mode == "legacy":
        info = talk.client.server_info
        assert (info.name, info.version) == ("bethink", __version__)
    else:
        assert listed.meta["io.modelcontextprotocol/serverInfo"]["name"] == "bethink"
        assert (listed.ttl_ms > 0, listed.cache_scope) == (True, "private")


def test_what_is_stored_is_found_with_its_origin_and_never_counted_by_searching(talk, place):
    fields = {"kind": "decision", "tags": ["release"], "importance": 8}
    id = talk.store("We deploy from main, never from a branch", **fields)
    asked = {"intent": "fact_check", "reason_for_search": "a test"}
    answer = talk.search_memories(query="how do we deploy?", **asked)
    marker, body = FENCED.search(answer).groups()
    assert body.startswith(NOTICE)
    assert f"[{id}] decision, agent, note:agent:Test-Host, " in body
    assert "> We deploy from main, never from a branch" in body
    assert marker not in talk.search_memories(query="how do we deploy?")
    with direct(place) as memory:
        one = memory.one(id)
        assert (one.access_count, one.importance, one.tags, one.trust) == (0, 8, ("release",), 2)
        assert memory.history(id)[0].actor.startswith("agent:Test-Host")


@stories("mcp-stories")
def test_tools_do_what_their_arguments_say(talk, place, lines):
    """Calls of tools, each with what its answer holds (+) and does not (-). ID is the memory that the first one stores."""
    answer, id = "", "ID"
    for line in lines:
        word, _, rest = line.replace("ID", id).replace("SECRET", "ghp_" + "c3D4" * 9).partition(" ")
        if word in "+-":
            assert bool(re.search(rest, answer, re.DOTALL)) == (word == "+"), (line, answer)
        elif word in ("uses", "history"):
            with direct(place) as memory:
                uses = [str(memory.one(id).access_count)]
                actions = [event.action for event in memory.history(id)]
            assert rest.split() == (uses if word == "uses" else actions), line
        else:
            answer = getattr(talk, word)(**json.loads(rest))
            stored = re.match(r"1\. added \[(\S+)\]", answer)
            id = stored[1] if stored and id == "ID" else id


def test_what_expired_is_told_when_it_is_asked_for(talk, place):
    with direct(place) as memory:
        one = memory.add("The badger permit is on the wall", expires_at=memory.clock() + DAY).id
        memory.clock = lambda start=memory.clock: start() + 2 * DAY
        for given, expected in (({}, 0), ({"include_expired": True}, 1)):
            found = use_tool(memory, "search_memories", query="badger permit", **given)
            assert found.count("on the wall") == expected
        memory.forget(one)


def read_pages(talk, pattern, total, **asked):
    """What is found in each page of a search, whose numbers must be right."""
    offset = 0
    while offset is not None:
        result = talk("call_tool", "search_memories", asked | {"offset": offset})
        told = result.structured_content
        assert (told["total_count"], told["answer"]) == (total, result.content[0].text)
        assert told["tokens_used"] == tokens(told["answer"]) <= asked["max_tokens"]
        assert told["has_more"] == ("next_offset" in told)
        assert extract_speech(told["answer"]).recalled == 1, "closed, however short"
        yield re.findall(pattern, told["answer"])
        offset = told.get("next_offset")


def test_memories_are_found_in_pages_and_each_comes_once(talk):
    for number in range(5):
        talk.store(f"Page test {number}: the lantern hangs low", tags=["lantern"])
    asked = {"tags": ["lantern"], "limit": 2, "max_tokens": 1000}
    seen = list(chain(*read_pages(talk, r"Page test (\d)", 5, **asked)))
    assert seen == list("43210"), "the newest first"
    assert "beyond the last of 5." in talk.search_memories(tags=["lantern"], offset=5)
    otters = [f"The otter of pond {number} sleeps in hole {number}" for number in range(32)]
    talk.store_memories(memories=[{"content": text, "tags": ["otter"]} for text in otters])
    asked = {"query": "otter pond", "mode": "keyword", "tags": ["otter"], "limit": 50}
    pages = list(read_pages(talk, r"pond (\d+) sleeps", 32, **asked, max_tokens=300))
    assert all(len(page) >= 5 for page in pages[:-1])
    assert len({*chain(*pages)}) == sum(map(len, pages)) == 32, "nothing is paid for twice"


def test_the_project_is_analysed_on_request(tmp_path):
    project = tmp_path / "shop"
    project.mkdir()
    (project / "Makefile").write_text("test:\n\tpytest -q\n")
    # Agents that would show numbers in place of the text get the text alone.
    assert all(map(TEXT_ONLY.search, ("claude-code", "codex-mcp-client", "github-copilot")))
    client = Implementation(name="claude-code", version="1")
    env = {"CLAUDE_PROJECT_DIR": str(project)}
    with talking(ERAS[0], tmp_path, tmp_path / "home", client_info=client, env=env) as talk:
        result = talk("call_tool", "search_memories", {})
        assert result.structured_content is None
        assert result.content[0].text == "No memories match."
        told = talk.store_memories(analyze="files")
        assert re.search(r"^memories +[1-9]\d* added$", told, re.MULTILINE), told
        assert "make test" in talk.search_memories(query="how to run tests?", tags=["command"])
        assert "added" not in talk.store_memories(analyze="git")


def test_the_users_own_word_waits_in_the_inbox_when_an_agent_would_forget_it(talk, place):
    with direct(place) as memory:
        id = memory.add("We use Redis").id
    assert "only the user can confirm this" in talk.forget_memories(ids=[id]).lower()
    with direct(place) as memory:
        assert memory.one(id).deleted_at is None
        (item,) = inbox.list_queue(memory, "doubtful").items
        assert (item.memories[0].id, item.reason) == (id, "an agent asks to forget it")
        inbox.decide(memory, "forget", [id])
        assert not inbox.list_queue(memory, "doubtful").items


def test_a_tool_changes_no_field_of_the_users_own_word(talk, place):
    with direct(place) as memory:
        id = memory.add("We use Kafka", kind="decision").id
    assert "user's own word" in talk.refused("update_memory", id=id, kind="context")
    with direct(place) as memory:
        assert memory.one(id).kind == "decision"


NAMES = {"MOST": "'{}' has 10,000 items; {} are the most in one call.", "MOST_IDS": 50}
NAMES |= {"MOST_STORED": 100, "FINE": {"content": "fine too"}}


def test_a_mistake_is_told_with_what_would_be_right(talk):
    for tool, arguments, said in cases("mcp-mistakes", NAMES):
        assert said in talk.refused(tool, **arguments)
    with pytest.raises(MCPError, match="Did you mean 'search_memories'") as unknown:
        talk("call_tool", "search_memory", {})
    assert unknown.value.code == -32602


def test_memories_of_other_projects_do_not_exist_here(talk, place, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    plain = Config(embedding="none")
    with Bethink(place[2] / "memory.db", directory=tmp_path / "elsewhere", config=plain) as memory:
        foreign = memory.add("The password of the other project is secret").id
    for tool, arguments in cases("mcp-foreign-ids", {"foreign": foreign}):
        assert "There is no memory" in talk.refused(tool, **arguments)
    assert "other project" not in talk.search_memories(query="password of the other project")
    with pytest.raises(MCPError, match="There is no memory"):
        talk("read_resource", f"bethink://memory/{foreign}")


def test_an_imported_document_does_not_fill_the_answer(talk, place):
    text = "The release train leaves at {} o'clock on Fridays, says the release guide"
    with direct(place) as memory:
        flood = [Passage(text.format(hour)) for hour in range(1, 25)]
        memory.ingest([(Source("import/evil.md", "markdown"), flood)])
    talk.store("The release train was abolished", kind="decision")
    answer = talk.search_memories(query="when does the release train leave?")
    origins = re.findall(r"^\[01[^\]]*\] \w+, (\w+), ([^,]+),", answer, re.MULTILINE)
    assert origins.count(("imported", "import/evil.md")) <= 3
    assert "abolished" in answer


def test_resources_are_listed_and_read_and_a_missing_one_is_told_as_such(talk):
    id = talk.store("Resources can be mentioned", kind="fact")
    [file] = talk("list_resources").resources
    assert (file.uri, file.mime_type, file.size) == ("memory://domain/tea.md", "text/markdown", 31)
    for path in ("domain/tea.md", "domain%2Ftea.md"):
        [content] = talk("read_resource", f"memory://{path}").contents
        assert "> # Tea\n>\n> Oolong is sold in tins." in FENCED.search(content.text)[2]
    assert FENCED.search(talk("read_resource", f"bethink://memory/{id}").contents[0].text)
    names = ["memory://{path}", "bethink://memory/{id}"]
    templates = talk("list_resource_templates").resource_templates
    assert [template.uri_template for template in templates] == names
    with pytest.raises(MCPError) as missing:
        talk("read_resource", "memory://nothing.md")
    assert missing.value.code == -32602
    with pytest.raises(MCPError, match="cursor"):
        talk("list_resources", cursor="nonsense")


def test_every_prompt_is_listed_and_filled_or_refused(talk):
    talk.store("Deploys happen on Fridays at noon", kind="decision")
    prompts = talk("list_prompts").prompts
    assert [prompt.name for prompt in prompts] == list(PROMPTS)
    [query] = talk("get_prompt", "query", {"topic": "deploys"}).messages
    assert query.role == "user" and "search_memories for: deploys" in query.content.text
    [remember] = talk("get_prompt", "remember", {"question": "when do deploys happen?"}).messages
    assert "> Deploys happen on Fridays at noon" in FENCED.search(remember.content.text)[2]
    for name, arguments, said in cases("mcp-wrong-prompts"):
        with pytest.raises(MCPError, match=said) as refused:
            talk("get_prompt", name, arguments)
        assert refused.value.code == -32602


def told_in(folder, home):
    with Bethink(home / "memory.db", directory=folder) as memory:
        return [one.content for one in memory.list()]


def test_a_client_says_by_its_roots_which_project_it_is_in(tmp_path):
    home, here, shop = (tmp_path / name for name in ("home", "cwd", "shop"))
    here.mkdir()
    shop.mkdir()

    async def roots(context):
        places = [tmp_path / "missing", shop]
        return ListRootsResult(roots=[Root(uri=place.as_uri()) for place in places])

    with talking("legacy", here, home, list_roots_callback=roots) as talk:
        talk.store("Told in the shop")
    assert told_in(shop, home) == ["Told in the shop"]


@pytest.mark.parametrize("way", ["option", "call"])
def test_the_project_can_be_given_at_the_start_and_with_a_call(tmp_path, way):
    home, here, shop = (tmp_path / name for name in ("home", "cwd", "shop"))
    here.mkdir()
    shop.mkdir()
    words = ("--project", str(shop)) if way == "option" else ()
    env = {"CLAUDE_PROJECT_DIR": str(here)} if way == "option" else {}
    meta = {"x-codex-turn-metadata": {"workspaces": {str(shop if way == "call" else here): {}}}}
    told = {"memories": [{"content": "Told in the shop"}]}
    with Bare(here, home, *words, **env) as bare:
        answer = bare.ask("tools/call", name="store_memories", arguments=told, meta=meta)
        assert answer["result"]["isError"] is False
    assert told_in(shop, home) == ["Told in the shop"]
    for turn in (None, "text", [], {}, {"workspaces": None}):
        assert _codex_workspaces({"x-codex-turn-metadata": turn}) == []
