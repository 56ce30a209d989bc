from __future__ import annotations

import pytest


@pytest.fixture(scope="package")
def documents() -> dict:
    """The OpenAPI document, which takes a while to make."""
    return {}


@pytest.fixture
def document(api, documents) -> dict:
    if not documents:
        documents |= api.get("/api/v1/schema/?format=json").json()
    return documents
