"""The calls about memories, as the isolation machine makes them."""

from __future__ import annotations

import asyncio
from typing import Any

from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    Explain,
    Forget,
    History,
    ListMemories,
    Recall,
    Reflect,
    Retain,
    StreamReflect,
    StreamRetain,
    UndeleteMemory,
    UpdateMemory,
    Watch,
)
from astrocyte.errors import AstrocyteError
from astrocyte.model import (
    ALSO_RELEVANT_TO,
    Caller,
    ExplainQuery,
    ForgetSelector,
    MemoryUpdate,
    Permission,
    RecallQuery,
    ReflectQuery,
    RetainItem,
)
from astrocyte.pipelines.query.time_windows import from_ms
from oracles.isolation_checks import Checks, text_of
from oracles.isolation_model import BANKS

LATER = from_ms(4_000_000_000_000)


class MemoryCalls(Checks):
    """One method for each RPC of the service, by its name."""

    # Whether calls come over the wire, by generated stubs, or to the gate.
    wire = False

    async def _retain(self, caller: Caller, bank: str, number: int) -> None:
        await self._keep(caller, bank, number, BANKS[number % len(BANKS)] if number % 3 == 0 else None)

    async def _keep(self, caller: Caller, bank: str, number: int, names: str | None) -> None:
        """Retain something that may be relevant to another bank."""
        canary = self.model.canary((caller.tenant, bank))
        relevant = () if names is None else (names,)
        metadata = {"note": canary, **({ALSO_RELEVANT_TO: relevant[0]} if relevant else {})}
        item = RetainItem(text_of(canary), tags=(f"t{number % 3}",), metadata=metadata)
        result = await self._held_to(caller, "Retain", bank, self.gate.call(caller, Retain(bank, item)))
        if result is not None:
            self._kept(caller, bank, result.memory_id, canary, relevant)

    async def _batchretain(self, caller: Caller, bank: str, number: int) -> None:
        del number
        canaries = [self.model.canary((caller.tenant, bank)) for _ in range(2)]
        work = self.gate.call(caller, BatchRetain(bank, [RetainItem(text_of(canary)) for canary in canaries]))
        for result, canary in zip(await self._held_to(caller, "BatchRetain", bank, work) or (), canaries, strict=False):
            self._kept(caller, bank, result.memory_id, canary)

    async def _streamretain(self, caller: Caller, bank: str, number: int) -> None:
        # The same line everywhere: whether it is a duplicate is a matter of its own bank alone.
        del number
        place = (caller.tenant, bank)
        holds = any(self.model.memories[memory].canary == "" for memory in self.model.visible(place))

        async def each() -> list[Any]:
            results = await self.gate.call(caller, StreamRetain(bank, [RetainItem("One line that everybody keeps.")]))
            # A stream tells each item what the gate tells the whole.
            if isinstance(results[0], AstrocyteError):
                raise results[0]
            return list(results)

        results = await self._held_to(caller, "StreamRetain", bank, each())
        if results is not None:
            assert results[0].deduplicated is holds
            if not holds:
                self._kept(caller, bank, results[0].memory_id, "")

    async def _listmemories(self, caller: Caller, bank: str, number: int) -> None:
        del number
        page = await self._held_to(
            caller, "ListMemories", bank, self.gate.call(caller, ListMemories(bank, page_size=1_000))
        )
        if page is not None:
            expected = self.model.visible((caller.tenant, bank))
            assert {memory.memory_id for memory in page.memories} == expected
            assert page.total_size == len(expected)

    async def _updatememory(self, caller: Caller, bank: str, number: int) -> None:
        memory = self._any_memory(number)
        canary = self.model.canary((caller.tenant, bank))
        update = MemoryUpdate(memory, frozenset({"content"}), content=text_of(canary))
        work = self.gate.call(caller, UpdateMemory(bank, update))
        if await self._held_to(caller, "UpdateMemory", bank, work, sent=memory) is not None:
            self.model.memories[memory].canary = canary
            self.model.relevant[canary] = self.model.memories[memory].relevant

    async def _recall(self, caller: Caller, bank: str, number: int) -> None:
        query = RecallQuery(f"sesame {self._any_canary(number)}", bank, max_results=200, include_sources=True)
        await self._held_to(caller, "Recall", bank, self.gate.call(caller, Recall(query)))

    async def _batchrecall(self, caller: Caller, bank: str, number: int) -> None:
        query = RecallQuery("sesame", bank, memory_ids=(self._any_memory(number),))
        queries = [query, RecallQuery("sesame", bank, tags=("t1",))]
        await self._held_to(caller, "BatchRecall", bank, self.gate.call(caller, BatchRecall(queries)))

    async def _history(self, caller: Caller, bank: str, number: int) -> None:
        del number
        query = RecallQuery("sesame", bank, as_of=LATER, max_results=200)
        await self._held_to(caller, "History", bank, self.gate.call(caller, History(query)))

    async def _explain(self, caller: Caller, bank: str, number: int) -> None:
        memory = self._any_memory(number)
        question = f"sesame {self._any_canary(number)}"
        query = ExplainQuery(RecallQuery(question, bank), (memory,))

        async def explained() -> str:
            # What would have returned the memory is the caller's own question in another form, and so repeats it.
            return repr(await self.gate.call(caller, Explain(query))).replace(f"query={question!r}", "")

        await self._held_to(caller, "Explain", bank, explained(), sent=memory)

    async def _reflect(self, caller: Caller, bank: str, number: int) -> None:
        query = ReflectQuery(f"What about sesame {self._any_canary(number)}?", bank)
        await self._held_to(caller, "Reflect", bank, self.gate.call(caller, Reflect(query)))

    async def _streamreflect(self, caller: Caller, bank: str, number: int) -> None:
        del number

        async def pieces() -> list[object]:
            return [
                piece
                async for piece in self.gate.stream(caller, StreamReflect(ReflectQuery("What about sesame?", bank)))
            ]

        await self._held_to(caller, "StreamReflect", bank, pieces())

    async def _forget(self, caller: Caller, bank: str, number: int) -> None:
        memory = self._any_memory(number)
        place = (caller.tenant, bank)
        everything = number % 50 == 0
        selector = ForgetSelector(scope="all") if everything else ForgetSelector(memory_ids=(memory,))
        needed = frozenset({Permission.ADMIN if everything else Permission.FORGET})
        work = self.gate.call(caller, Forget(bank, selector, compliance=number % 4 == 0))
        result = await self._held_to(caller, "Forget", bank, work, sent=memory, needed=needed)
        if result is None:
            return
        chosen = self.model.visible(place) if everything else self.model.visible(place) & {memory}
        if number % 4:
            assert result.deleted_count == len(chosen)
            for gone in chosen:
                self.model.memories[gone].visible = False
        else:
            for gone, kept in list(self.model.memories.items()):
                if kept.place == place and (everything or gone == memory):
                    del self.model.memories[gone]

    async def _undeletememory(self, caller: Caller, bank: str, number: int) -> None:
        memory = self._any_memory(number)
        work = self.gate.call(caller, UndeleteMemory(bank, memory))
        if await self._held_to(caller, "UndeleteMemory", bank, work, sent=memory) is not None:
            self.model.memories[memory].visible = True

    async def _watch(self, caller: Caller, bank: str, number: int) -> None:
        del number
        # Over the wire an answer takes its time; only where none will come is it not waited for.
        place = (caller.tenant, bank)
        comes = not self.model.reads(caller, bank) or any(kept.place == place for kept in self.model.memories.values())
        seconds = 0.0 if not self.wire else 20.0 if comes else 0.02

        async def first() -> object:
            stream: Any = self.gate.stream(caller, Watch(bank, after_position=0))
            try:
                async with asyncio.timeout(seconds):
                    return await anext(stream)
            except TimeoutError:
                return "nothing yet"
            finally:
                await stream.aclose()

        await self._held_to(caller, "Watch", bank, first())
