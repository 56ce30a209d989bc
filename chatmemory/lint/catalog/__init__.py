"""The rules of providers as data: wording of errors, sources, and two examples each."""

from __future__ import annotations

from chatmemory.lint.catalog.fields import FIELDS
from chatmemory.lint.catalog.own import OWN
from chatmemory.lint.catalog.shape import SHAPE

__all__ = ["RULES"]

RULES = {rule.id: rule for rule in (*SHAPE, *FIELDS, *OWN)}
