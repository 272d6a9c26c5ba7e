# SPDX-License-Identifier: BSD-3-Clause
# The rank that keys.c is, with torch's store.
import datetime
import os
import sys
import time

import torch.distributed as dist


def main():
    rank = int(os.environ["RANK"])
    size = int(os.environ["WORLD_SIZE"])
    agent = os.environ["TORCHELASTIC_USE_AGENT_STORE"] == "True"
    base = dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=rank == 0 and not agent,
        wait_for_workers=False,
        timeout=datetime.timedelta(seconds=60),
    )
    prefix = "keys/{TORCHELASTIC_RUN_ID}/{TORCHELASTIC_RESTART_COUNT}"
    store = dist.PrefixStore(prefix.format(**os.environ), base)
    store.set(f"rank/{rank}", str(rank))
    total = sum(int(store.get(f"rank/{i}")) for i in range(size))
    if store.add("count", 1) == size:
        store.set("all", "")
    store.wait(["all"])
    gone = store.add("gone", 1)
    while rank == 0 and gone < size:
        time.sleep(0.01)
        gone = store.add("gone", 0)
    node = os.environ["GROUP_RANK"]
    sys.stdout.write(f"rank {rank} of {size} on node {node}: {total}\n")
    sys.stdout.flush()


main()
