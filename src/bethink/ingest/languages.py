"""Which programming languages the code map reads, by which grammar, and what counts as a definition in each.

A table and look-ups in it. This module opens no file and imports no grammar; `symbols` does both jobs' other half.
To add a language: a suffix, a `Grammar`, a fixture in tests/fixtures/code and its rows in tests/test_symbols.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import NamedTuple


class Rule(NamedTuple):
    """How one type of syntax node defines a symbol."""

    kind: str
    # Steps from the node to its name or names: fields or node types, joined by dots. `~` digs through C's declarators.
    name: str = "name"
    body: str = "body"  # the field before which the signature ends
    members: bool = False  # whether the body holds symbols of its own
    by: str = ""  # the definer in `defines` that knows more than this table; "" for none


class Grammar(NamedTuple):
    """How one language is read. Nodes that are neither defined nor opened here are passed over whole."""

    module: str  # the Python package with the grammar
    definitions: Mapping[str, Rule]
    opened: frozenset[str]  # nodes that define nothing themselves but may hold definitions
    wrappers: frozenset[str] = (
        frozenset()
    )  # opened nodes that belong to the definition they hold: export, template, decorator
    marks: frozenset[str] = frozenset()  # decorators, annotations, attributes
    comments: frozenset[str] = frozenset({"comment"})
    separator: str = "."
    function: str = "language"  # what the package calls its grammar


def _rules(table: str, members: bool = False, **options: str) -> dict[str, Rule]:
    """`node=kind node=kind:steps` as rules."""
    rules = {}
    for item in table.split():
        node, _, rest = item.partition("=")
        kind, _, name = rest.partition(":")
        rules[node] = Rule(kind, name or "name", members=members, **options)
    return rules


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PYTHON = Grammar(
    "tree_sitter_python",
    {
        **_rules("class_definition=class", members=True),
        **_rules("function_definition=function"),
        **_rules("assignment=constant:left", by="python assignment"),
        **_rules("type_alias_statement=type:left", body="", by="python type"),
    },
    _set(
        "module block if_statement elif_clause else_clause try_statement except_clause finally_clause with_statement expression_statement"
    ),
    wrappers=_set("decorated_definition"),
    marks=_set("decorator"),
)

_JAVASCRIPT = Grammar(
    "tree_sitter_javascript",
    {
        **_rules("class_declaration=class class=class", members=True),
        **_rules(
            "function_declaration=function generator_function_declaration=function",
            by="script function",
        ),
        **_rules("method_definition=method"),
        **_rules("variable_declarator=constant", by="script variable"),
        **_rules("field_definition=field:property pair=method:key", by="script member"),
        **_rules("assignment_expression= call_expression=", by="script expression"),
    },
    _set("program statement_block if_statement else_clause try_statement class_body object"),
    wrappers=_set(
        "export_statement lexical_declaration variable_declaration expression_statement return_statement"
    ),
    marks=_set("decorator"),
    comments=_set("comment html_comment"),
)

_TYPESCRIPT = _JAVASCRIPT._replace(
    module="tree_sitter_typescript",
    function="language_typescript",
    definitions={
        **_JAVASCRIPT.definitions,
        **_rules(
            "abstract_class_declaration=class interface_declaration=interface enum_declaration=enum",
            members=True,
        ),
        **_rules("internal_module=namespace module=namespace", members=True),
        **_rules(
            "function_signature=function method_signature=method abstract_method_signature=method"
        ),
        **_rules("public_field_definition=field", by="script member"),
        **_rules(
            "property_signature=field enum_assignment=field type_alias_declaration=type", body=""
        ),
        **_rules("property_identifier=field", by="enum member"),
    },
    opened=_JAVASCRIPT.opened | _set("interface_body enum_body"),
    wrappers=_JAVASCRIPT.wrappers | _set("ambient_declaration"),
)

_GO = Grammar(
    "tree_sitter_go",
    {
        **_rules("type_spec=type", by="go type"),
        **_rules("const_spec=constant var_spec=variable", body="", by="go value"),
        **_rules("type_alias=type field_declaration=field method_elem=method", body=""),
        **_rules("function_declaration=function"),
        **_rules("method_declaration=method", by="go method"),
    },
    _set("source_file var_spec_list field_declaration_list struct_type interface_type"),
    wrappers=_set("type_declaration const_declaration var_declaration"),
)

_RUST = Grammar(
    "tree_sitter_rust",
    {
        **_rules("struct_item=struct", members=True, by="rust type"),
        **_rules("enum_item=enum union_item=union trait_item=trait mod_item=module", members=True),
        **_rules("function_item=function function_signature_item=function"),
        **_rules(
            "const_item=constant static_item=constant type_item=type associated_type=type", body=""
        ),
        **_rules("field_declaration=field enum_variant=field", body=""),
        **_rules("macro_definition=macro", by="rust macro"),
        **_rules("impl_item=", by="rust impl"),
    },
    _set("source_file declaration_list field_declaration_list enum_variant_list foreign_mod_item"),
    marks=_set("attribute_item"),
    comments=_set("line_comment block_comment"),
    separator="::",
)

_JAVA = Grammar(
    "tree_sitter_java",
    {
        **_rules(
            "class_declaration=class interface_declaration=interface enum_declaration=enum record_declaration=record",
            members=True,
        ),
        **_rules("annotation_type_declaration=annotation", members=True),
        **_rules(
            "method_declaration=method constructor_declaration=method compact_constructor_declaration=method"
        ),
        **_rules("annotation_type_element_declaration=field enum_constant=field"),
        **_rules(
            "field_declaration=field:declarator.name constant_declaration=constant:declarator.name",
            body="",
            by="java field",
        ),
    },
    _set("program class_body interface_body enum_body enum_body_declarations annotation_type_body"),
    marks=_set("annotation marker_annotation"),
    comments=_set("line_comment block_comment"),
)

_C = Grammar(
    "tree_sitter_c",
    {
        **_rules("struct_specifier=struct union_specifier=union enum_specifier=enum", by="c type"),
        **_rules("function_definition=function", by="c function"),
        **_rules("declaration=variable field_declaration=field", by="c declaration"),
        **_rules("type_definition=type", by="c typedef"),
        **_rules("enumerator=field", body=""),
        **_rules("preproc_def=macro preproc_function_def=macro", by="c macro"),
    },
    _set(
        "translation_unit preproc_if preproc_ifdef preproc_else preproc_elif linkage_specification declaration_list"
        " field_declaration_list enumerator_list"
    ),
)

_CPP = _C._replace(
    module="tree_sitter_cpp",
    definitions={
        **_C.definitions,
        **_rules("class_specifier=class", by="c type"),
        **_rules("namespace_definition=namespace", members=True, by="c namespace"),
        **_rules("alias_declaration=type concept_definition=concept", body=""),
    },
    wrappers=_set("template_declaration"),
    separator="::",
)

_CSHARP = Grammar(
    "tree_sitter_c_sharp",
    {
        **_rules(
            "class_declaration=class record_declaration=record struct_declaration=struct",
            members=True,
        ),
        **_rules(
            "interface_declaration=interface enum_declaration=enum namespace_declaration=namespace",
            members=True,
        ),
        **_rules("file_scoped_namespace_declaration=namespace delegate_declaration=delegate"),
        **_rules(
            "method_declaration=method constructor_declaration=method enum_member_declaration=field"
        ),
        **_rules(
            "property_declaration=property event_declaration=property",
            body="accessors",
            by="c# property",
        ),
        **_rules(
            "field_declaration=field:variable_declaration.variable_declarator.name"
            " event_field_declaration=field:variable_declaration.variable_declarator.name",
            by="c# field",
        ),
    },
    _set(
        "compilation_unit declaration_list enum_member_declaration_list preproc_if preproc_else preproc_elif"
    ),
    marks=_set("attribute_list"),
)

_RUBY = Grammar(
    "tree_sitter_ruby",
    {
        **_rules("module=module class=class", members=True, by="ruby type"),
        **_rules("method=method singleton_method=method", by="ruby method"),
        **_rules("assignment=constant", by="ruby assignment"),
        **_rules("call=property:arguments.simple_symbol", by="ruby call"),
    },
    _set("program body_statement singleton_class if then else unless begin do_block block"),
    separator="::",
)

_PHP = Grammar(
    "tree_sitter_php",
    {
        **_rules(
            "class_declaration=class interface_declaration=interface trait_declaration=trait enum_declaration=enum",
            members=True,
        ),
        **_rules("namespace_definition=namespace", members=True),
        **_rules("function_definition=function method_declaration=method enum_case=field"),
        **_rules(
            "const_declaration=constant:const_element.name property_declaration=field:property_element.name",
            body="",
        ),
        **_rules("function_call_expression=constant", by="php call"),
    },
    _set(
        "program declaration_list enum_declaration_list if_statement else_clause compound_statement expression_statement"
    ),
    marks=_set("attribute_list"),
    separator="::",
    function="language_php",
)

GRAMMARS: Mapping[str, Grammar] = {
    "python": _PYTHON,
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT._replace(function="language_tsx"),
    "go": _GO,
    "rust": _RUST,
    "java": _JAVA,
    "c": _C,
    "cpp": _CPP,
    "csharp": _CSHARP,
    "ruby": _RUBY,
    "php": _PHP,
}

SUFFIXES: Mapping[str, str] = {
    suffix: language
    for language, suffixes in {
        "python": ".py .pyi .pyw",
        "javascript": ".js .jsx .mjs .cjs",
        "typescript": ".ts .mts .cts",
        "tsx": ".tsx",
        "go": ".go",
        "rust": ".rs",
        "java": ".java",
        "c": ".c .h",
        "cpp": ".cc .cpp .cxx .hpp .hh .hxx .ipp",
        "csharp": ".cs",
        "ruby": ".rb .rake .gemspec",
        "php": ".php",
    }.items()
    for suffix in suffixes.split()
}
NAMES: Mapping[str, str] = {"Rakefile": "ruby", "Gemfile": "ruby"}
INTERPRETERS: Mapping[str, str] = {
    "python": "python",
    "pypy": "python",
    "node": "javascript",
    "nodejs": "javascript",
    "bun": "typescript",
    "deno": "typescript",
    "ruby": "ruby",
    "php": "php",
}

HEAD = 8_192  # characters of a file that tell its language
_PROGRAM = re.compile(r"(?<=[/\s])[a-z]{2,10}(?=[\d.]{0,8}(?:\s|$))")
# What C does not have. `class` and `namespace` are fine names for a field in C, so they need what follows them in C++.
_CPP_ONLY = re.compile(
    r"^[ \t]{0,40}(?:class\s+\w+\s*(?:final\s*)?[:{;]|namespace\s+(?:[\w:]+\s*)?\{|template\s*<|using\s+(?:namespace\s+)?\w+"
    r"|(?:public|private|protected)\s*:|#include\s+<(?:string|vector|memory|map|utility|functional|iostream|cstd\w{2,6})>)"
    r"|\b(?:constexpr|nullptr|noexcept|std::\w)",
    re.MULTILINE,
)


def language_of(path: str, text: str = "") -> str | None:
    """The language of a file by its name and, where the name leaves it open, by the beginning of its text. None for other files."""
    name = PurePosixPath(path).name
    suffix = PurePosixPath(name).suffix
    if not suffix:
        return NAMES.get(name) or _interpreter(text)
    language = SUFFIXES.get(suffix) or SUFFIXES.get(suffix.lower())
    if suffix == ".h" and _CPP_ONLY.search(text[:HEAD]):
        return "cpp"
    return language


def _interpreter(text: str) -> str | None:
    """The language of a script by the interpreter that its first line names."""
    if not text.startswith("#!"):
        return None
    programs = _PROGRAM.findall(text[:200].split("\n")[0])
    return next((INTERPRETERS[program] for program in programs if program in INTERPRETERS), None)
