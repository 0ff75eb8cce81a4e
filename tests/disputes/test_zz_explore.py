from collections import Counter
import time, os, re
from tests.disputes import test_walks as W
from tests.disputes.test_walks import Walk, take, check, begun, transaction


def test_explore(begun):
    tally = Counter()
    example = {}
    t = time.time()
    n = int(os.environ.get("N", "300"))
    avoid = frozenset(filter(None, os.environ.get("AVOID", "").split(",")))
    steps = 0
    seen = Counter()
    for seed in range(n):
        try:
            with transaction.atomic():
                walk = Walk(*begun, seed, avoid)
                for _ in range(
                    int(os.environ.get("L", "0")) or W.SHORTEST + seed * (W.LONGEST - W.SHORTEST) // n
                ):
                    take(walk)
                    steps += 1
                    seen[
                        walk.done[-1].split(": ")[1].split(" (")[0]
                        + (" R" if "(refused" in walk.done[-1] else "")
                    ] += 1
                    check(walk)
                transaction.set_rollback(True)
        except Exception as e:
            msg = str(e).split("\n")[0]
            key = (type(e).__name__, re.sub(r"\d+", "#", msg)[:110], walk.done[-1].split(" (")[0])
            tally[key] += 1
            if key not in example or len(walk.done) < len(example[key]):
                example[key] = walk.done[:]
    print(f"\n{n} walks {steps} steps {time.time() - t:.1f}s")
    print(seen)
    for k, v in tally.most_common():
        print(v, k)
        print("     ", example[k])
