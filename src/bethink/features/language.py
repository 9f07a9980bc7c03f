"""Optional language model: a hypothetical answer to improve a search, and a report of its cost.

A model that fails, or reaches today's limit, costs a hint and nothing else.
"""

from typing import Any

from bethink.api import Bethink
from bethink.errors import InvalidInput
from bethink.ingest.redact import redact
from bethink.llm import Model, open_budget, open_model, tasks
from bethink.llm.base import REASONS, ModelError
from bethink.model import Answer

NONE_SET = "`bethink config llm claude` sets one; `anthropic` and `openai` are others."


def open_language_model(memory: Bethink) -> Model | None:
    """Open the configured model, or return None."""
    return open_model(memory.config, lambda text: redact(text).text)


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
