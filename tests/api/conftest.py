from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from chatmemory.api.authentication import create_token


@pytest.fixture
def api(db) -> APIClient:
    """A client with a bearer token."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {create_token('tests')}")
    return client
