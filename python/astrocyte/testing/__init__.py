"""The contract tests of external stores, for authors of implementations; they need pytest.

Subclass the contract of your kind of store in a test module of yours, and say how an empty one is opened:

    class TestMyStore(VectorStoreContract):
        @asynccontextmanager
        async def open(self) -> AsyncIterator[VectorStore]:
            store = MyStore(...)
            yield store
            await store.close()
"""

from astrocyte.testing.documents import DocumentStoreContract
from astrocyte.testing.graphs import GraphStoreContract
from astrocyte.testing.vectors import VectorStoreContract

__all__ = ["DocumentStoreContract", "GraphStoreContract", "VectorStoreContract"]
