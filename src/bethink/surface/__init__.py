"""What Bethink does, a line each, and where every surface has it: the file of its command in `cli/`, and whether that reads a memory
that is there or may make one; its address in the HTTP API; its tool for agents. A dash says that a surface has it not. Commands,
routes and tools look themselves up here; what each takes stands with the function that does it, in the language of `arguments.py`.

Nothing is imported here: `--help` reads this file and those that start the command line alone.
"""

_TABLE = """
Use:
add             remember make   POST /memories                   store_memories   remember a statement
search          find read       GET /search                      search_memories  find memories, best first
recall          find read       GET /recall                      -                answer a question from memory: the best in full, the rest as an index
why             find read       -                                -                tell why something is as it is: the decision, its reason, what it replaced
today           find read       -                                -                list what was said, decided and done today, or at another time
get             find read       GET /memories/{id}               get_memories     show memories by id
around          -               GET /memories/{id}/around        -                show what stands around a memory where it came from
list            find read       GET /memories                    search_memories  list memories by time, importance or use
update          remember read   PATCH /memories/{id}             update_memory    change a memory
edit            remember read   -                                -                change the text of a memory in your editor
forget          remember read   DELETE /memories/{id}            forget_memories  hide memories, or with --purge remove every trace of them
restore         remember read   POST /memories/{id}/restore      -                bring back a forgotten or replaced memory, or an earlier version
vote            remember read   POST /memories/{id}/votes        rate_memories    say that a memory was useful, or was not
link            remember read   POST /memories/{id}/relations    -                relate two memories
unlink          -               DELETE /memories/{id}/relations  -                take a relation back
open            remember read   -                                -                open the source of a memory at its line
history         find read       GET /memories/{id}/history       -                show every version of a memory
handoff         remember        -                                store_handoff    leave word for whoever works here next, or read it
handoff-show    -               -                                get_handoff      read what was left for whoever works here
Take in:
init            knowledge       -                                -                set a project up in one step
index           knowledge make  -                                -                bring the knowledge folders in step
import          transfer        -                                -                take in an export, another program's memories, JSON, CSV, Markdown, or a repo map
map             knowledge make  -                                -                map the source code, so that symbols and places are found
backfill        knowledge make  -                                -                read earlier conversations from the agents' transcripts
analyze         knowledge make  -                                store_memories   find commands, routes, decisions and more in a project, or in its history
promote         remember read   -                                -                put a proven memory into the rules that agents always read
demote          remember read   -                                -                take a memory out of the rules
Look:
stats           find read       -                                memory_overview  count what is stored
sessions        find read       -                                -                show what conversations asked, did and left
topics          find read       GET /sessions/{id}               -                show what conversations were about
turns           -               GET /sessions/{id}/turns         -                show what was said in a conversation
timeline        -               GET /timeline                    -                list conversations by day
recent          -               GET /recent                      -                tell what happened since a time
graph           -               GET /graph                       -                draw what stands around a memory or a thing
projects        -               GET /projects                    -                list projects and containers, and count what each holds
duplicates      tend read       -                                -                list memories that say the same
contradictions  tend read       -                                -                list memories that disagree
inbox           -               GET /inbox                       -                list what is to be decided
inbox-counts    -               GET /inbox/counts                -                count what is to be decided
decide          -               POST /inbox                      -                decide about what waits in the inbox
audit           tend read       -                                -                show who changed what in a team's database
export          transfer read   GET /export                      -                write memories out, all or a part
ui              serve           -                                -                open the web page: search, browse, tend
demo            tend            -                                -                show the product on a throw-away database
Serve:
mcp             serve           -                                -                speak the Model Context Protocol on stdin and stdout
serve           serve           -                                -                serve the web page, MCP and a REST API over HTTP
token           serve           GET /tokens                      -                create, list and revoke tokens for the server
hook            tend            -                                -                do what an agent's hook asks for
Connect:
install         connect         -                                -                connect agents: their MCP servers, hooks and skills
uninstall       connect         -                                -                disconnect agents and give their files back as they were
Tend:
pause           tend            -                                -                listen and tell nothing for a while, in a project or everywhere
resume          tend            -                                -                end a pause
doctor          connect         -                                -                check that all is well and say how to mend what is not
condition       -               GET /condition                   -                tell how memory is doing
config          tend            -                                -                show and change settings
model           tend            -                                -                list, fetch and verify embedding models
consolidate     tend read       -                                -                merge, mark and retire what has become superfluous
reindex         tend read       -                                -                embed what has no vector of the current model
backup          tend read       -                                -                copy the database into one file
migrate         transfer        -                                -                move everything into another database, SQLite or PostgreSQL
sync            transfer make   -                                -                exchange memories of a project with a team's database or server
sync-outline    -               POST /sync/outline               -                tell a machine of the team what a project holds
sync-records    -               POST /sync/records               -                give it memories whole
sync-take       -               POST /sync/take                  -                take what it has
sync-remove     -               POST /sync/remove                -                remove what it no longer has
sync-purged     -               POST /sync/purged                -                tell it what was purged
reset           tend read       -                                -                forget everything beyond recovery
bench           tend            -                                -                measure quality and speed on labelled sets
completion      tend            -                                -                print completions for a shell
"""


def _parse_table(table: str) -> dict[str, tuple[str, ...]]:
    """Name → its group, the file of its command, its address, its tool, what it is for."""
    rows: dict[str, tuple[str, ...]] = {}
    group = ""
    for line in table.strip().splitlines():
        if line.endswith(":"):
            group = line[:-1]
            continue
        name, *cells = (cell.strip() for cell in line.split("  ") if cell)
        rows[name] = (group, *cells)
    return rows


OPERATIONS = _parse_table(_TABLE)
