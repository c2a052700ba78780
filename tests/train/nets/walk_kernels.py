"""Triton's walks against the plain ones; run as a script it does so in Triton's interpreter."""

import torch

from dragoman.train.nets import walk, walk_triton


def check(device, units, states, ratio, kind, close):
    torch.manual_seed(0)
    groups = -(-states // ratio)
    energy, grad = (4 * torch.randn(3, units, groups, device=device) for _ in range(2))
    soft, back = (4 * torch.randn(3, units, states, device=device) for _ in range(2))
    energy, soft, back = energy.to(kind), soft.to(kind), back.to(kind)
    lengths = torch.tensor([states, max(1, states - 2), (states + 1) // 2], device=device)
    counts = -(-lengths // ratio)
    a = walk.align(energy, counts)
    for name, arguments in (
        ("align", (energy, counts)),
        ("align_backward", (grad, energy, a, counts)),
        ("look_back", (a, soft, lengths, ratio)),
        ("look_back_backward", (back, a, soft, lengths, ratio)),
    ):
        plain, kernel = (getattr(walks, name)(*arguments) for walks in (walk, walk_triton))
        both = [(plain, kernel)] if torch.is_tensor(plain) else zip(plain, kernel, strict=True)
        for x, y in both:
            if name == "look_back_backward" and x.shape[-1] == groups:  # padding's goes nowhere
                real = torch.arange(groups, device=device) < counts.view(-1, 1, 1)
                x, y = x * real, y * real
            torch.testing.assert_close(x, y, atol=close, rtol=close)


if __name__ == "__main__":
    for states, ratio in ((1, 1), (37, 1), (20, 3), (21, 7)):
        check("cpu", 3, states, ratio, torch.float32, 2e-5)
    check("cpu", 3, 20, 3, torch.bfloat16, 1e-2)
