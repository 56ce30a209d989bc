"""A page of a site as a request asks for it."""

from __future__ import annotations

from dataclasses import dataclass

Form = dict[str, str | bytes | list[str]]


@dataclass(frozen=True)
class State:
    """A request of an operator, a viewer or a stranger. A `form` is sent by POST; bytes are a file.

    Its text is the title and the main element of the page, or with `whole` all that it has.
    """

    url: str
    by: str = "operator"
    form: Form | None = None
    htmx: bool = False
    whole: bool = False
