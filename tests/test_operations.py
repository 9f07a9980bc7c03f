"""Operations: the same arguments on all surfaces, each with help, and unknown ones refused with a suggestion."""

from typing import Annotated, NamedTuple

import pytest

from bethink.app.cli import COMMANDS
from bethink.app.cli.console import load_operation
from bethink.app.cli.parser import list_parameters, parse
from bethink.app.http.api import ENDPOINTS
from bethink.app.mcp.tools import TOOLS
from bethink.app.operation import (
    OPERATIONS,
    Arg,
    Members,
    Parameter,
    check_values,
    object_schema,
    operation,
    read_signature,
)
from bethink.errors import InvalidInput, UsageError
from bethink.model import Values

SHARED = [name for name in COMMANDS if load_operation(name).http]


def shapes(parameters: tuple[Parameter, ...]) -> dict[str, tuple[str, bool]]:
    """The type of each argument, and whether it is a list."""
    return {one.name: (one.type, one.many) for one in parameters}


@pytest.mark.parametrize("name", SHARED)
def test_an_argument_has_one_type_on_all_surfaces(name: str) -> None:
    command, request = (shapes(load_operation(name).parameters(one)) for one in ("cli", "http"))
    both = command.keys() & request.keys()
    assert {one: command[one] for one in both} == {one: request[one] for one in both}


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_operation_is_served_over_http(name: str) -> None:
    assert f"{ENDPOINTS[name].method} {ENDPOINTS[name].path}" == load_operation(name).http


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_names_a_tool_that_exists(name: str) -> None:
    assert load_operation(name).tool in ("", *TOOLS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_has_help(name: str) -> None:
    parameters = list_parameters(load_operation(name))
    assert [one.name for one in parameters if not (one.arg.help or one.arg.choices)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_is_refused_with_a_suggestion(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(load_operation(name), ["--quite"])
    assert refused.value.message == "Unknown option --quite."
    assert refused.value.hint == "Did you mean '--quiet'?"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_one_short_line(name: str) -> None:
    help = load_operation(name).help
    assert help[0].isupper() and len(help) <= 100


class Page(NamedTuple):
    limit: Annotated[int, Arg("maximum number", low=1, high=50)] = 10


def list_colours() -> list[Parameter]:
    arg = Arg("a colour", aliases=("color",))
    return [Parameter("colour", "text", False, False, None, arg)]


Colours = Annotated[Values, Members(list_colours)]


def paint(
    memory: str,
    names: Annotated[tuple[str, ...], Arg("names", aliases=("name",))],
    page: Page,
    colours: Colours,
    dry: Annotated[bool | None, Arg("try it")] = None,
) -> None:
    """Paint some names.

    Nothing else.
    """


@pytest.fixture
def painting():
    operation("Everyday", agents="read")(paint)
    yield OPERATIONS["paint"]
    del OPERATIONS["paint"]


def test_a_signature_becomes_arguments(painting) -> None:
    assert shapes(read_signature(paint)) == {
        "names": ("text", True),
        "limit": ("whole", False),
        "colour": ("text", False),
        "dry": ("switch", False),
    }


def test_a_docstring_becomes_help_and_description(painting) -> None:
    assert (painting.help, painting.description) == (
        "Paint some names",
        "Paint some names. Nothing else.",
    )


def test_checked_values_become_the_arguments_of_the_function(painting) -> None:
    given = {"name": ["door"], "limit": 3, "color": "red"}
    assert painting.bind(given, "http") == {
        "names": ("door",),
        "page": Page(3),
        "colours": {"colour": "red"},
    }


def test_a_mapping_of_members_keeps_an_explicit_null(painting) -> None:
    bound = painting.bind({"names": ["door"], "colour": None}, "http")
    assert bound["colours"] == {"colour": None}


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        pytest.param(
            {"names": ["x"], "limt": 1},
            "There is no argument 'limt'.",
            "Did you mean 'limit'?",
            id="unknown",
        ),
        pytest.param(
            {"names": ["x"], "limit": 99},
            "'limit' is 99, which is not a whole number from 1 to 50.",
            "Give a whole number from 1 to 50.",
            id="out of range",
        ),
        pytest.param(
            {"names": "x"},
            "'names' is 'x', which is not a list of strings.",
            "Give a list of strings.",
            id="wrong type",
        ),
        pytest.param(
            {}, "The argument 'names' is missing.", "Give a list of strings.", id="missing"
        ),
        pytest.param(
            {"names": ["x"], "name": ["y"]},
            "'name' and 'names' are the same.",
            "Give one of them.",
            id="given twice",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_what_would_be_right(painting, given, message, hint) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_values(given, painting.parameters("http"))
    assert (refused.value.message, refused.value.hint) == (message, hint)


def test_a_closed_schema_bounds_every_value(painting) -> None:
    schema = object_schema(painting.parameters("http"), closed=True)
    assert schema["additionalProperties"] is False and schema["required"] == ["names"]
    assert schema["properties"]["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 50,
        "default": 10,
        "description": "maximum number",
    }
