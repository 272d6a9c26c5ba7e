# SPDX-License-Identifier: BSD-3-Clause
"""1-bit compression as NumPy, or PyTorch, does it: milliseconds, in one thread.

codecs.py [numpy|torch] [-c float16|bfloat16|topk] [ELEMENTS...]

To be compared with tests/bench/codecs. PyTorch packs no bits on a processor; a
sum of eight bits with their weights stands for that. With -c: a cast to memory
that is there, as it is the library's, or the hundredth of the elements with the
largest magnitudes and their places. NumPy has no bfloat16."""

import statistics
import sys
import time

CODECS = {"numpy": ("float16", "topk"),
          "torch": ("float16", "bfloat16", "topk")}


def numpy_steps(count):
    import numpy as np

    rng = np.random.default_rng(1)
    x = rng.standard_normal(count).astype(np.float32)
    e = np.zeros(count, np.float32)

    def compress():
        u = x + e
        scale = np.float32(np.linalg.norm(u) / np.sqrt(count))
        positive = u >= 0
        e[:] = u - scale * np.where(positive, np.float32(1), np.float32(-1))
        return np.packbits(positive), scale

    bits, scale = compress()

    def decompress():
        signs = np.unpackbits(bits).astype(np.float32)
        return (signs * 2 - 1) * scale

    return compress, decompress


def torch_steps(count):
    import torch

    torch.set_num_threads(1)
    x = torch.randn(count)
    e = torch.zeros(count)
    weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8)

    def compress():
        u = x + e
        scale = torch.linalg.norm(u) / count ** 0.5
        positive = u.sign().add_(1).bool()
        e.copy_(u - scale * (positive.float() * 2 - 1))
        bytes_ = positive.view(-1, 8).to(torch.uint8) * weights
        return bytes_.sum(1, dtype=torch.uint8), scale

    bits, scale = compress()

    def decompress():
        signs = (bits.view(-1, 1) & weights).bool().float()
        return (signs.view(-1) * 2 - 1) * scale

    return compress, decompress


def numpy_codec(codec, count):
    import numpy as np

    rng = np.random.default_rng(1)
    x = rng.standard_normal(count).astype(np.float32)
    half = np.zeros(count, np.float16)
    k = count // 100

    def topk():
        places = np.argpartition(np.abs(x), count - k)[count - k:]
        return places, x[places]

    return {"float16": lambda: np.copyto(half, x, casting="same_kind"),
            "topk": topk}[codec]


def torch_codec(codec, count):
    import torch

    torch.set_num_threads(1)
    x = torch.randn(count)
    if codec == "topk":
        def topk():
            places = torch.topk(x.abs(), count // 100, sorted=False).indices
            return places, x[places]

        return topk
    out = torch.zeros(count, dtype=getattr(torch, codec))
    return lambda: out.copy_(x)


def median_ms(step, rounds):
    times = []
    for _ in range(rounds + 1):
        begin = time.thread_time()
        step()
        times.append(time.thread_time() - begin)
    return 1e3 * statistics.median(times[1:])


def main(words):
    steps = {"numpy": numpy_steps, "torch": torch_steps}
    who = words.pop(0) if words and words[0] in steps else "numpy"
    if words == ["-c"]:
        sys.exit("codecs.py: -c needs the name of a codec")
    codec = words[1] if words and words[0] == "-c" else None
    if codec:
        words = words[2:]
        if codec not in CODECS[who]:
            sys.exit(f"codecs.py: {who} has no codec '{codec}'; it has "
                     + ", ".join(CODECS[who]))
    for count in [int(w, 0) for w in words] or [1 << 20, 1 << 22, 1 << 24]:
        rounds = max(5, min(50, (1 << 26) // count))
        if codec:
            step = (numpy_codec if who == "numpy" else torch_codec)(codec,
                                                                   count)
            print(f"{count:10d}  {who}  {codec} {median_ms(step, rounds):9.3f}"
                  " ms")
            continue
        compress, decompress = steps[who](count)
        print(f"{count:10d}  {who}  compress {median_ms(compress, rounds):9.3f}"
              f" ms  decompress {median_ms(decompress, rounds):9.3f} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
