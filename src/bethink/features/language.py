"""Optional language model: a hypothetical answer to improve a search, and a report of its cost.

A model that fails, or reaches today's limit, costs a hint and nothing else.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bethink.api import Bethink
from bethink.errors import InvalidInput
from bethink.ingest.redact import redact
from bethink.llm import Failing, Model, list_names, open_budget, open_model, tasks
from bethink.llm.base import REASONS, ModelError, Task
from bethink.model import Answer

NONE_SET = (
    "`bethink config reader claude` sets one; codex, gemini, ollama:MODEL and openai are others."
)
CHECK = Task(
    "check",
    "Read the word between the marks and give it back.",
    (("word", "ready"),),
    {"word": "The word."},
    200,
)


class CheckedModel(NamedTuple):
    """A model that answered, and what the answer cost."""

    name: str
    tokens: int


def open_language_model(memory: Bethink) -> Model | None:
    """Open the configured model, or return None."""
    return open_model(memory.config, lambda text: redact(text).text)


def check_model(memory: Bethink, settings: Mapping[str, str]) -> CheckedModel:
    """Ask the model of these settings a tiny question. Raises ModelError if it cannot answer."""
    config = memory.config._replace(**dict[str, Any](settings))
    budget = open_budget(config)
    budget.clear_failing()  # the user may have signed in since
    model = open_model(config, lambda text: redact(text).text)
    if model is None:
        raise InvalidInput("There is no model to check.", NONE_SET)
    before = budget.spent()
    model.ask(CHECK)
    return CheckedModel(model.name, budget.spent() - before)


def read_failing(memory: Bethink) -> Failing | None:
    """Return the failures of the configured model since its last answer."""
    return open_budget(memory.config).read_failing() if memory.config.llm else None


def list_providers() -> list[str]:
    """Return the names of the language model providers, those of other packages included."""
    return list_names()


def search(memory: Bethink, question: str, **options: Any) -> Answer:
    """Search near a hypothetical answer written by the model as well (HyDE)."""
    model = open_language_model(memory)
    if model is None:
        raise InvalidInput("hyde needs a language model, and none is set.", NONE_SET)
    try:
        supposed = tasks.suppose_answer(model.ask, question)
    except ModelError as error:
        answer = memory.search(question, **options)
        return answer._replace(
            hints=(*answer.hints, f"Searched without a supposed answer: {error.message}")
        )
    return memory.search(question, hypothesis=supposed, **options)


def report_usage(memory: Bethink) -> dict[str, Any]:
    """Cost of the model: today against the limit, and by purpose and failure over thirty days."""
    report = open_budget(memory.config).report()
    failures = {
        REASONS.get(reason, reason): number for reason, number in report["failures"].items()
    }
    return {"model": memory.config.llm or None, **report, "failures": failures}
