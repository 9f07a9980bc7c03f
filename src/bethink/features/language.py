"""What a language model adds to a search where one is set, a supposed answer to look near, and what it cost.

A model that fails, or today's ceiling, costs a hint and nothing else.
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
    """The model that the settings name, or None."""
    return open_model(memory.config, lambda text: redact(text).text)


def search(memory: Bethink, question: str, **options: Any) -> Answer:
    """A search that first asks the model what an answer might say (HyDE), and looks near that too."""
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
    """What the model cost: today against the ceiling, and by purpose and failure over the last thirty days."""
    report = open_budget(memory.config).report()
    failures = {
        REASONS.get(reason, reason): number for reason, number in report["failures"].items()
    }
    return {"model": memory.config.llm or None, **report, "failures": failures}
