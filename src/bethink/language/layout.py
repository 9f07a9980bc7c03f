"""Lines that are not the user's prose: output, code, and documents, mails and chats of others."""

from bethink.language.pattern import Pattern

NO_PROSE = Pattern(
    "a line of output, code or markup",
    r"\s*(?:"
    r">(?!=)|\|.*\||[|:+=_*-]{3,}\s*$|[│├└┌┐┘┤┬┴┼─═║╔╚╠⏺⎿]"  # quotations, tables, rules, boxes
    r"|\$ \S|❯|>>> |#!|%\s\w+ "  # a shell
    r"|diff --git |index [0-9a-f]{6,}|@@ |\+\+\+ |--- [ab]/|[+-](?=[^\s+-])(?!\d+(?:[.,]\d+)?\s?%).*[;{}()=<>]"  # a diff
    r"|[-dl][rwxsStT-]{9}[\s.+@]|total \d+$"  # a listing
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d{1,2}:\d\d:\d\d|\d{10,13}[.\s]"  # logs
    r"|\[?(?:INFO|DEBUG|WARN|WARNING|ERROR|TRACE|FATAL|CRITICAL)\]?[\s:|]|\[\w{0,20}[:./\d][\w:./-]{0,30}\] (?!\()|npm (?:ERR|WARN)|error\[E\d+\]|=+ "
    r"|at \S{1,300} ?\(.{0,300}\)\s*$|at \S{1,300}:\d+|File \".{1,300}\", line \d+|Traceback \(most recent|goroutine \d+|\.{3} \d+ more"
    r"|Caused by: |(?:--- )?(?:PASS|FAIL|SKIP|RUN|===|ok)[:\s]+\S*(?:/|\.|_|\()"  # traces and test runs
    r"|</?[A-Za-z][\w:.-]{0,60}(?:\s[^<>\n]{0,300})?>"  # markup
    r"|!?\[[^\]\n]{0,200}\]\([^)\s]{0,600}\)\s*$|https?://\S+\s*$|[\w./\\~@-]{1,300}(?:/|\.\w{1,8})(?::\d+)*\s*$"  # links and paths
    r"|\[Request interrupted|\[Image|`?(?:★ Insight )?─{3}"
    r")",
    start=True,
    fold=False,
    matches=(
        "> quoted",
        "| a | b |",
        "$ make test",
        "diff --git a/x b/x",
        "total 48",
        "2026-03-01 12:00:01 started",
        "WARN: low memory",
        'File "x.py", line 3',
        "--- FAIL: TestParse/empty (0.00s)",
        "<div>",
        "src/app/main.py:12",
        "[Image 1]",
        "`★ Insight ─────────`",
        "`─────────`",
    ),
    rejects=("Use pnpm, not npm", ">= 3 works", "The total is 3", "-5 % of memory"),
)
ANOTHER_AUTHOR = Pattern(
    "a line laid out like a document, a ticket, a mail, a chat or code",
    r"\s*(?:"
    r"#{1,6}\s|[=~_-]{2,}\s*$|--\s*$|\*\*[^*]+\*\*:?(?:\s|$)|__[^_]+__:?\s*$"  # headings, rules, signatures
    r"|[*=~_#-]{3,}\s"  # banners
    r"|//|/\*|\*/|\*\s\S.*\*/|<!--|\"\"\"|'''|;;|--\s\S|%%"  # comments
    r"|[{}\[\]],?\s*$|[{\[]\s*[\"'{\[]"  # data
    r"|[\"'][\w .-]{1,40}[\"']\s*:"
    r"|(?:[*|\\/]\s?)*[0-9a-f]{7,40}\s|commit [0-9a-f]{7,40}\b"  # commits
    r"|(?:feat|fix|chore|docs|refactor|perf|tests?|build|ci|style|revert)(?:\([^)\n]{1,40}\))?!?:\s"
    r"|\[?[A-Z][A-Z0-9]{1,9}-\d+\]?\s*[:|–—-]|[A-Z][A-Z0-9]{1,9}-\d{2,}\s+[A-Z\u2e80-\U0003ffff]"  # tickets
    r"|(?:issue|pr|pull request|ticket|bug|merge request)\s#?\d+\s*[:–—-]"
    r"|[-*+•]\s+\[[ xX]\]\s|\+\s|.{0,200}\(#\d+\)\s*$|@\w+\s+[A-Z\u2e80-\U0003ffff]"  # boxes, added lines, titles of commits, marks
    r"|\[?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:\s?[ap]m)?\]?(?:\s|$)"  # times and dates
    r"|\[?\d{1,4}[./-]\d{1,2}[./-]\d{2,4}[,\sT]"
    r"|@[\w.-]{2,30}[:,]?\s(?=.*:\s)|<@?[\w.-]{2,30}>\s|\(\w{2,20}\)\s[A-Z\u2e80-\U0003ffff]"  # people who chat
    r"|\S{1,40}[\w.-]*@[\w.-]+[:~][^\s]*[$#%>]|[\w~/.-]{0,40}[$❯➜]\s"  # a shell
    r"|\w+(?:,\w+)+\s*$|\d+,\w|\d{1,3}/\s|[$\w.\[\]-]+\s?=\s?\S"  # rows, numbers of a thread, assignments
    r"|(?:closes|fixes|resolves|refs) #?\d+|(?:Closes|Fixes|Resolves|Refs) \S*#\d+"
    r"|(?:def|class|func|function|fn|public|private|return|SELECT|INSERT)\s\S.{0,300}(?:[({;]|\):)\s{0,4}$"
    r"|(?:const|let|var)\s\w+\s?=|(?:import|from)\s[\w.{}]+(?:\s(?:import|as)\s\S.*|;)?$"
    r"|\[(?!Image)[^\]\n]{1,40}\]\s+\S|@?\w[\w.-]{0,20}(?: \w[\w.-]{0,20})?\s?[>|]\s"  # tags, people who chat
    r"|Merge (?:pull request|branch|remote)|Sent from |Get Outlook|Begin forwarded"
    r"|https?://\S+\s*$|https?://\S+\s+[A-Z\u2e80-\U0003ffff]|(?:Re|RE|Aw|AW|Fwd|FWD|Fw|FW|Wg|WG): "
    r")",
    start=True,
    fold=False,
    matches=(
        "## Notes",
        "// TODO",
        '"name": "x"',
        "commit 3f2a91c",
        "fix(parser): keep comments",
        "ABC-123: Parser drops comments",
        "- [ ] write the docs",
        "[12:30] Bo joined",
        "@anna: please see: this",
        "dev@host:~$ ls",
        "Closes #12",
        "const x = 1",
        "Merge branch 'main'",
        "Re: the parser",
    ),
    rejects=("Use pnpm, not npm", "please fix the tests", "Merge it", "12 tests fail"),
)
