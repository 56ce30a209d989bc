"""Defines the class `InUse`: the providers in use and their models. Nothing here reads the
database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chatmemory.exceptions import InvalidValue
from chatmemory.lint import PROVIDERS
from chatmemory.lint.catalog import RULES


@dataclass(frozen=True)
class InUse:
    """The providers in use for a conversation, each with its models.

    - `models` maps the name of each provider to the names of its models; () if no models are named.
    - `is_chosen` is False if nobody has chosen the providers in use. Then `models` has all
      providers.
    """

    models: Mapping[str, tuple[str, ...]]
    is_chosen: bool = True

    @property
    def providers(self) -> tuple[str, ...]:
        return tuple(self.models)

    @property
    def others(self) -> InUse:
        """The providers that are not in use."""
        return InUse({name: () for name in PROVIDERS if name not in self.models})

    def only(self, provider: str) -> InUse:
        """Return the given provider alone, with those of its models that are in use."""
        return InUse({provider: self.models.get(provider, ())}, self.is_chosen)

    def refusing(self, provider: str) -> list[str]:
        """Return the names of the rules by which at least one of the provider's models in use
        rejects windows. Rules that hold for all models of the provider are not listed.
        """
        laws = {name: rule.laws.get(provider) for name, rule in RULES.items()}
        models = self.models[provider]
        return [
            name
            for name, law in laws.items()
            if law and law.severity == "conditional"
            if any(law.severity_for_any(model) == "refused" for model in models)
        ]

    def written(self) -> list[str]:
        """Return the providers and models as texts for the function `in_use`, such as `openai` or
        `anthropic:claude-opus-4-6`.
        """
        return [
            text
            for name, models in self.models.items()
            for text in ([f"{name}:{model}" for model in models] or [name])
        ]


ALL = InUse(dict.fromkeys(PROVIDERS, ()), is_chosen=False)
MODELS, MODEL = 20, 100  # models of a choice, and characters of a name


def in_use(written: Iterable[object]) -> InUse:
    """Read providers and models from texts such as `"openai"` or `"anthropic:claude-opus-4-6"`.

    Raises InvalidValue for an unknown provider, for too many models, and for a model name that is
    too long.
    """
    models: dict[str, tuple[str, ...]] = {}
    for each in written:
        name, _, model = each.partition(":") if isinstance(each, str) else ("", "", "")
        if name not in PROVIDERS:
            raise InvalidValue(f"unknown provider {each!r}: choose one of {', '.join(PROVIDERS)}")
        if len(model) > MODEL or len(models.get(name, ())) >= MODELS:
            raise InvalidValue(
                f"{name} can have at most {MODELS} models, and the name of a model at most "
                f"{MODEL} characters"
            )
        models[name] = (*models.get(name, ()), *([model.strip()] if model.strip() else ()))
    return InUse({name: models[name] for name in PROVIDERS if name in models})
