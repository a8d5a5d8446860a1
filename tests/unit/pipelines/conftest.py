from collections.abc import AsyncIterator

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.policy.gate import Gate


@pytest.fixture
async def app() -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    yield app
    await app.close()


@pytest.fixture
def gate(app: App) -> Gate:
    return app.gate
