"""Servers behind consistent hashing: which bank is where, how long calls wait, how many servers are needed."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Keys = NDArray[np.uint64]

# Points of each server on the ring: the fullest of ten has a tenth more than its share.
POINTS = 256
# A bank that would take more of a server than this is answered by several, each with its own index of it.
MOST_OF_A_SERVER = 0.1
# Banks that take more of a server than this go past servers that are full; hashing is even enough for the rest.
HOT_OF_A_SERVER = 0.01
# A server is full for them at so many times the mean, as with HAProxy's `hash-balance-factor 125`.
FULL = 1.25
# Behind every server in the order of a share.
LAST = np.iinfo(np.uint64).max
# A step in the search for the number of servers.
GROWTH = 1.03


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured costs of one server process.

    Attributes:
        recall_ms, retain_ms: Processor time of the server for a call.
        recall_statements, retain_statements: Statements of a call at the database; of a retain alone in its group.
        statement_ms: Processor time of the database for a statement of a recall.
        retain_database_ms: Processor time of the database for a retain.
        load_ms: Processor time of the server for reading a bank of which it has no index, beside the recall.
        bank_kb: Memory of the index of a bank.
        process_mb: Memory of a server without banks.
        variation: Standard deviation of the time of a call, divided by its mean.
    """

    recall_ms: float
    retain_ms: float
    recall_statements: float
    retain_statements: float
    statement_ms: float
    retain_database_ms: float
    load_ms: float
    bank_kb: float
    process_mb: float
    variation: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """Calls of all banks.

    Attributes:
        recalls: In a second, of all banks.
        retain_share: Retains for each recall.
        banks: Their number.
        exponent: Of Zipf's law: the k-th bank is called in proportion to 1 / k ** exponent.
        hot_banks: Banks of hot tenants, anywhere among the banks.
        hot_share: Their share of the calls, in addition to Zipf's.
        keep_seconds: An index of a bank that was not called for so long is let go.
    """

    recalls: float
    retain_share: float = 0.1
    banks: int = 1_000_000
    exponent: float = 1.0
    hot_banks: int = 20
    hot_share: float = 0.1
    keep_seconds: float = 3_600.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A number of servers, and how they fare.

    Attributes:
        servers: Their number.
        busiest: Share of its processor that the busiest server uses; with one server lost, `busiest_after_loss`.
        p50_ms, p99_ms: Of calls at the busiest server, with waiting; after the loss `p99_after_loss_ms`.
        gigabytes: Memory of all servers; of the fullest one `fullest_gigabytes`.
        moved: Share of the calls that reach another server after the loss.
        statements: At the database in a second; its processors in use are `database_processors`.
        retains: In a second.
        cold: Recalls in a second that must read their bank first.
    """

    servers: int
    busiest: float
    busiest_after_loss: float
    p50_ms: float
    p99_ms: float
    p99_after_loss_ms: float
    gigabytes: float
    fullest_gigabytes: float
    moved: float
    statements: float
    database_processors: float
    retains: float
    cold: float


def mixed(keys: Keys) -> Keys:
    """A hash of each key, shape (n,): the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        state = keys + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


class Ring:
    """Consistent hashing: a key belongs to the server of the first point at or after its hash.

    Args:
        servers: Numbers of the servers.
        points: Of each server.
    """

    def __init__(self, servers: NDArray[np.int64], points: int = POINTS) -> None:
        names = np.repeat(servers.astype(np.uint64) << np.uint64(20), points)
        places = mixed(names + np.tile(np.arange(points, dtype=np.uint64), len(servers)) + np.uint64(1 << 63))
        order = np.argsort(places, kind="stable")
        self._places = places[order]
        self._servers = np.repeat(servers, points)[order]

    def owners(self, hashes: Keys) -> NDArray[np.int64]:
        """The server of each hash, shape (n,)."""
        found: NDArray[np.int64] = self._servers[np.searchsorted(self._places, hashes) % len(self._places)]
        return found


def waits(arrivals: Numbers, services: Numbers, channels: int = 1) -> Numbers:
    """Seconds for which each call waits for one of several channels, first come, first served.

    Args:
        arrivals: Times, ascending, shape (n,).
        services: Seconds that each call takes once begun, shape (n,).
        channels: Calls at a time.
    """
    if channels == 1:
        # Lindley: a wait is the work that came so far, less the least that it had been, less the time since.
        slack = np.concatenate(([0.0], np.cumsum(services[:-1] - np.diff(arrivals))))
        waiting: Numbers = slack - np.minimum.accumulate(slack)
        return waiting
    free = [0.0] * channels
    found = np.empty(len(arrivals))
    for place, (arrival, service) in enumerate(zip(arrivals.tolist(), services.tolist(), strict=True)):
        begin = max(arrival, free[0])
        found[place] = begin - arrival
        heapq.heapreplace(free, begin + service)
    return found


def rates_of(traffic: Traffic, seed: int) -> Numbers:
    """Recalls in a second of each bank, shape (banks,)."""
    ranks = np.arange(1, traffic.banks + 1, dtype=np.float64) ** -traffic.exponent
    rates: Numbers = ranks / ranks.sum() * traffic.recalls * (1 - traffic.hot_share)
    hot = np.random.default_rng(seed).choice(traffic.banks, traffic.hot_banks, replace=False)
    rates[hot] += traffic.recalls * traffic.hot_share / traffic.hot_banks
    return rates


class Fleet:
    """The calls of all banks, divided over servers.

    Args:
        costs: Of a server.
        traffic: Of the banks.
        seed: Of what is drawn.
    """

    def __init__(self, costs: Costs, traffic: Traffic, seed: int) -> None:
        self._costs, self._traffic, self._seed = costs, traffic, seed
        rates = rates_of(traffic, seed)
        self._call_ms = costs.recall_ms + traffic.retain_share * costs.retain_ms
        # One that is called by itself would fill a server is divided into shares, which have hashes of their own.
        self._shares = np.maximum(1, np.ceil(rates * self._call_ms / 1_000 / MOST_OF_A_SERVER)).astype(np.int64)
        banks = np.repeat(np.arange(traffic.banks, dtype=np.uint64), self._shares)
        first = np.repeat(np.cumsum(self._shares) - self._shares, self._shares)
        number = np.arange(len(banks), dtype=np.uint64) - first.astype(np.uint64)
        self._hashes = mixed(mixed(banks) + number)
        self._rates = np.repeat(rates / self._shares, self._shares)
        # With calls at random times: it is loaded if one came within the time, and cold if the one before came earlier.
        absent = np.exp(-self._rates * traffic.keep_seconds)
        self._loaded = 1 - absent
        self._cold = self._rates * absent
        self._work = (self._rates * self._call_ms + self._cold * costs.load_ms) / 1_000

    def owners(self, servers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The server of each share of a bank: by the ring, and past full ones where it is hot.

        Source:
            Mirrokni, Thorup and Zadimoghaddam, Consistent Hashing with Bounded Loads, SODA 2018.
        """
        owners = Ring(servers).owners(self._hashes)
        hot = np.flatnonzero(self._work > HOT_OF_A_SERVER)
        size = int(servers.max()) + 1
        used = np.bincount(owners, self._work, size) - np.bincount(owners[hot], self._work[hot], size)
        limit = FULL * self._work.sum() / len(servers)
        names = mixed(servers.astype(np.uint64))
        for share in hot[np.argsort(-self._work[hot], kind="stable")]:
            # Each share has an order of the servers of its own, from which the loss of one takes that one only.
            order = mixed(names ^ self._hashes[share])
            full = used[servers] + self._work[share] > limit
            order[full] = LAST
            chosen = servers[np.argmin(used[servers] if full.all() else order)]
            owners[share] = chosen
            used[chosen] += self._work[share]
        return owners

    def plan(self, target: float, after_loss: float) -> Plan:
        """The fewest servers that keep to two limits.

        Args:
            target: Most of its processor that a server may use.
            after_loss: The same after the server with the most calls was lost.
        """
        servers = max(2, int(np.ceil(self._work.sum() / target)))
        while True:
            owners = self.owners(np.arange(servers, dtype=np.int64))
            used = np.bincount(owners, self._work, servers).astype(np.float64)
            lost = int(used.argmax())
            later = self.owners(np.delete(np.arange(servers, dtype=np.int64), lost))
            used_later = np.bincount(later, self._work, servers).astype(np.float64)
            if used.max() <= target and used_later.max() <= after_loss:
                return self._described(servers, owners, used, later, used_later)
            servers = max(servers + 1, int(servers * GROWTH))

    def _described(
        self,
        servers: int,
        owners: NDArray[np.int64],
        used: Numbers,
        later: NDArray[np.int64],
        used_later: Numbers,
    ) -> Plan:
        costs, traffic = self._costs, self._traffic
        banks = np.bincount(owners, self._loaded, servers)
        gigabytes = costs.process_mb / 1_024 + banks * costs.bank_kb / 1_024**2
        before = self.seconds_of(self._rates[owners == used.argmax()].sum())
        after = self.seconds_of(self._rates[later == used_later.argmax()].sum())
        retains = traffic.recalls * traffic.retain_share
        statements = traffic.recalls * costs.recall_statements
        database_ms = statements * costs.statement_ms + retains * costs.retain_database_ms
        return Plan(
            servers=servers,
            busiest=float(used.max()),
            busiest_after_loss=float(used_later.max()),
            p50_ms=float(np.percentile(before, 50)) * 1_000,
            p99_ms=float(np.percentile(before, 99)) * 1_000,
            p99_after_loss_ms=float(np.percentile(after, 99)) * 1_000,
            gigabytes=float(gigabytes.sum()),
            fullest_gigabytes=float(gigabytes.max()),
            moved=float(self._rates[owners != later].sum() / self._rates.sum()),
            statements=statements + retains * costs.retain_statements,
            database_processors=database_ms / 1_000,
            retains=retains,
            cold=float(self._cold.sum()),
        )

    def seconds_of(self, recalls: float, calls: int = 400_000) -> Numbers:
        """Seconds of calls at one server with so many recalls in a second: waiting and work, shape (calls,)."""
        chosen = np.random.default_rng(self._seed)
        costs, share = self._costs, self._traffic.retain_share
        arrivals = np.cumsum(chosen.exponential(1 / (recalls * (1 + share)), calls))
        means = np.where(chosen.random(calls) < share / (1 + share), costs.retain_ms, costs.recall_ms) / 1_000
        # The gamma distribution of the measured mean and deviation.
        shape = 1 / max(costs.variation, 1e-3) ** 2
        services = means * chosen.gamma(shape, 1 / shape, calls)
        services += (chosen.random(calls) < self._cold.sum() / self._rates.sum()) * costs.load_ms / 1_000
        found: Numbers = waits(arrivals, services) + services
        return found
