"""Build time, memory and lookup of the words of a bank of 100,000 memories."""
import random, time
from astrocyte.core import Core, Row, RecallRequest
chance = random.Random(3)
syl = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "on", "us")]
vocab = sorted({"".join(chance.choices(syl, k=chance.randint(2, 4))) for _ in range(100_000)})
chance.shuffle(vocab)
weights = [1 / (n + 10) for n in range(len(vocab))]
N = 100_000
texts = [" ".join(w) for w in (chance.choices(vocab, weights, k=18) for _ in range(N))]
texts = [t + " " + vocab[n % len(vocab)] for n, t in enumerate(texts)]
bank = Core().bank(8, "english")
rows = [Row(n + 1, n.to_bytes(16, "big"), n.to_bytes(16, "big"), t, None, tokens=20, known_from=1) for n, t in enumerate(texts)]
s = time.perf_counter()
for f in range(0, N, 4096):
    bank.apply(f // 4096 + 1, rows[f:f + 4096])
print(f"index {time.perf_counter() - s:.2f} s, {len(vocab)} words")
before = bank.stats()["bytes"]
s = time.perf_counter(); c = time.thread_time()
g = bank.begin_spellings()
for f in range(0, N, 1000):
    assert bank.add_spellings(g, texts[f:f + 1000])
assert bank.finish_spellings(g)
print(f"words {time.perf_counter() - s:.2f} s wall, {time.thread_time() - c:.2f} s cpu, {(bank.stats()['bytes'] - before) / 1e6:.1f} MB counted")
for length in (3, 4, 5):
    spans, totals = [], []
    for _ in range(300):
        p = chance.choice(vocab)[:length]
        if len(p) < length: continue
        s = time.perf_counter(); found = bank.expand(p, 64); spans.append(time.perf_counter() - s); totals.append(found[1])
    spans.sort(); totals.sort()
    print(f"prefix of {length}: median {spans[len(spans)//2]*1e6:.0f} us, p99 {spans[int(len(spans)*.99)]*1e6:.0f} us, words median {totals[len(totals)//2]}, most {totals[-1]}")
one = RecallRequest(text=vocab[50], k=10)
def timed(r):
    b = []
    for _ in range(50):
        s = time.perf_counter(); bank.recall(r); b.append(time.perf_counter() - s)
    return sorted(b)[25] * 1e3
print(f"recall of one word {timed(one):.2f} ms; of a prefix of 64 words {timed(RecallRequest(unions=[bank.expand('ba', 64)[0]], k=10)):.2f} ms")
