"""Requests made up at random from the description of the API: none of them is a server error, and answers keep to their form."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
from http_server import V1, conforms, served
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from bethink.surface.http.api import OPERATIONS

__all__ = ["served"]

letters = some.text(some.characters(exclude_categories=("Cs",)), max_size=30)
LIKELY = (
    "|0|1|-1|true|null|7d|2026-03-01|created|decision|hybrid|explore|01a1|person:Ada|a AND b|e30"
)
plausible = some.sampled_from(LIKELY.split("|"))
scalars = some.none() | some.booleans() | some.integers() | some.floats() | letters | plausible
values = some.recursive(
    scalars,
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(letters, inner, max_size=4),
    max_leaves=8,
)


def requests(operation):
    """Parameters and a body in which fields that exist hold anything, and now and then one that does not exist."""
    names = some.sampled_from([*(one.name for one in operation.query), "unknown"])
    query = some.dictionaries(names, letters | plausible, max_size=4)
    body = some.none()
    if operation.body is not None:
        fields = dict.fromkeys((one.name for one in operation.body), values)
        if "memories" in fields:
            names = "kind tags metadata expires importance supersedes entities".split()
            statement = {**dict.fromkeys(names, values), "content": letters}
            objects = some.fixed_dictionaries({}, optional=statement)
            fields["memories"] = some.lists(objects, max_size=3)
        body = some.fixed_dictionaries({}, optional=fields) | values
    return some.tuples(query, body, letters | plausible)


@pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}"
)
def test_no_request_is_a_server_error(served, operation):
    @settings(max_examples=12, database=None, suppress_health_check=list(HealthCheck))
    @given(requests(operation))
    def tried(request):
        query, body, name = request
        path = re.sub(r"\{\w+\}", quote(name or "x", safe=""), operation.path)
        query = {"container": "fuzz", **query}
        # NaN and Infinity included
        content = None if operation.body is None else json.dumps(body).encode()
        headers = {} if content is None else {"Content-Type": "application/json"}
        sent = {"params": query, "content": content, "headers": headers}
        response = served.owner.request(operation.method, V1 + path, **sent)
        assert response.status_code < 500, (response.status_code, response.text)
        if response.status_code >= 400:
            assert response.json()["detail"]
        elif operation.answer:
            conforms(operation, response)

    tried()
