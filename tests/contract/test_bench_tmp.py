import time, statistics, random, threading
from contract.kit import *
from holdfast.store import *
from holdfast.model import *
def test_bench(store, scope):
    def timed(name, n, f):
        ts=[]
        for i in range(n):
            t=time.perf_counter(); f(i); ts.append((time.perf_counter()-t)*1e3)
        ts.sort(); print(f"{type(store).__name__} {name}: median {ts[n//2]:.2f} ms, p95 {ts[int(n*.95)]:.2f}")
    rnd=random.Random(1); vocab=[f"w{rnd.randrange(10**6)}x" for _ in range(5000)]
    text=lambda: " ".join(rnd.choice(vocab) for _ in range(40))
    t=time.time(); store.load(scope,[note(f"note_{i}", text(), NOON+i, ("Tag",)) for i in range(10000)],[]); print("load 10k", round(time.time()-t,2),"s")
    timed("add note", 300, lambda i: put(store, scope, None, text(), tags=("Tag",), now=NOON+20000+i))
    timed("edit notepad", 300, lambda i: put(store, scope, "s", f"pad {i}", kind=NOTEPAD))
    timed("read", 500, lambda i: store.read(scope, NOTE, f"note_{i}"))
    timed("list 20", 200, lambda i: store.list(scope, NOTES._replace(limit=20)))
    timed("containing rare", 200, lambda i: store.containing(scope, NOTES._replace(limit=20), vocab[i]))
    timed("containing 2 chars", 20, lambda i: store.containing(scope, NOTES._replace(limit=20), "w1"))
    timed("matching", 200, lambda i: store.matching(scope, NOTES._replace(limit=20), Words(((vocab[i],),(vocab[i+1],)), every=False)))
    timed("events 50", 100, lambda i: store.events(scope, EventQuery()))
    t=time.time(); n=len(list(store.dump(scope))); print("dump", n, round(time.time()-t,2),"s")
    t=time.time(); print(store.check()); print("check", round(time.time()-t,2),"s")
    assert 0
