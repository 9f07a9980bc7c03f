"""The options that choose among memories, shared by `search`, `recall`, `list` and `export`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bethink.surface.cli.parsing import number, pieces

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from bethink.api import Bethink
    from bethink.store.base import Overview
    from bethink.types import Filter


def filter_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("which memories")
    group.add_argument(
        "--kind",
        action="append",
        metavar="KIND",
        help="only of this kind; may be repeated or a comma list",
    )
    group.add_argument(
        "--entity", action="append", metavar="NAME", help="only about this entity; may be repeated"
    )
    group.add_argument(
        "--tag",
        action="append",
        metavar="TAG",
        help="only with this tag; may be repeated or a comma list",
    )
    group.add_argument(
        "--source", action="append", metavar="SOURCE", help="only from this source; may be repeated"
    )
    group.add_argument("--session", metavar="ID", help="only from this session")
    group.add_argument(
        "--host",
        action="append",
        metavar="HOST",
        help="only said in conversations with this agent: claude, codex …",
    )
    group.add_argument(
        "--since", metavar="TIME", help="made at or after: 7d, yesterday, 2026-03-01"
    )
    group.add_argument("--until", metavar="TIME", help="made before")
    group.add_argument("--as-of", metavar="TIME", help="what was valid at that time")
    group.add_argument(
        "--min-importance", type=number, metavar="N", help="of this importance (0 to 10) or more"
    )
    for name, what in (
        ("expired", "expired"),
        ("deleted", "forgotten"),
        ("superseded", "replaced"),
        ("quarantined", "quarantined"),
    ):
        group.add_argument(f"--include-{name}", action="store_true", help=f"{what} ones too")
    scope = group.add_mutually_exclusive_group()
    scope.add_argument(
        "--all-projects",
        action="store_true",
        help="of every project, not only this one and personal ones",
    )
    scope.add_argument("--personal", action="store_true", help="only personal ones")


def reach_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--all-projects",
        action="store_true",
        help="of any project, not only this one and personal ones",
    )


def projects(args: Namespace, memory: Bethink) -> dict[str, str]:
    """Scope → what it is called, for telling memories of several projects apart; nothing where only those of one are shown."""
    from bethink.surface.render import scope_labels

    return (
        scope_labels(memory.every_scope(), scope_names(memory, memory.stats(())))
        if args.all_projects
        else {}
    )


def scope_names(memory: Bethink, overview: Overview) -> dict[str, str]:
    known = {scope: name for scope, name in overview.extra.get("scope_names", {}).items() if name}
    return {memory.scope: memory.project.name, **known}


def chosen(args: Namespace, memory: Bethink, **more: Any) -> Filter:
    """The filter that the options describe. `more` overrides them."""
    from bethink.text.checks import as_entity
    from bethink.text.when import moment
    from bethink.types import PERSONAL

    now = memory.clock()
    times = {
        name: moment(text, now) if text else None
        for name, text in (("since", args.since), ("until", args.until), ("as_of", args.as_of))
    }
    scopes = memory.every_scope() if args.all_projects else (PERSONAL,) if args.personal else None
    wanted = {
        "kinds": pieces(args.kind),
        "entities": tuple(as_entity(name).name for name in args.entity or ()),
        "tags": pieces(args.tag),
        "sources": tuple(args.source or ()),
        "session": args.session,
        "hosts": pieces(args.host),
        "min_importance": args.min_importance,
        "scopes": scopes,
        **times,
        **{
            f"include_{name}": getattr(args, f"include_{name}")
            for name in ("expired", "deleted", "superseded", "quarantined")
        },
    }
    return memory.filter(**{**wanted, **more})
