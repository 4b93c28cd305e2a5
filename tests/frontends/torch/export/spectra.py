"""Fourier transforms, and complex numbers between real arguments and results."""

from __future__ import annotations

import torch
from torch import Tensor, fft

from .case import Case, drawn, of, whole

X = drawn(4, 18)
SIGNAL = drawn(3, 40)
PAIRS = drawn(4, 6, 2)
OTHERS = drawn(4, 6, 2, seed=4)


def real(x: Tensor) -> Tensor:
    return torch.view_as_real(x.resolve_conj())


def whole_numbers(x: Tensor) -> Tensor:
    return torch.view_as_complex(x)


def short_time(x: Tensor) -> Tensor:
    return torch.stft(x, 8, hop_length=3, window=torch.hann_window(8), return_complex=True).abs()


def restored(x: Tensor) -> Tensor:
    window = torch.hann_window(8)
    spectrum = torch.stft(x, 8, hop_length=2, window=window, return_complex=True)
    return torch.istft(spectrum, 8, hop_length=2, window=window)


def filtered(x: Tensor) -> Tensor:
    response = torch.complex(torch.linspace(1, 0, 10), torch.arange(10.0))
    return fft.irfft(fft.rfft(x, norm="ortho") * response, norm="ortho")


def rotary(x: Tensor) -> Tensor:
    turns = torch.polar(torch.ones(4, 3), torch.outer(torch.arange(4.0), torch.tensor([1.0, 0.1, 0.01])))
    return real(whole_numbers(x.unflatten(-1, (3, 2))) * turns).flatten(-2)


CASES: dict[str, Case] = {
    "rfft": of(lambda x: (real(fft.rfft(x)), fft.rfft(x, n=25, norm="forward").abs(), fft.rfft(x, n=7).angle()), X),
    "irfft": of(lambda x: (fft.irfft(fft.rfft(x)), fft.irfft(fft.rfft(x), n=13), fft.irfft(fft.rfft(x), n=30)), X),
    "fft": of(lambda x: (real(fft.fft(x, dim=0)), fft.ifft(fft.fft(x)).real, fft.fftshift(fft.fft(x)).imag), X),
    "fft_norms": of(
        lambda x: tuple(real(fft.ifft(fft.fft(x, norm=a), norm=b)) for a in ("ortho", None) for b in ("forward",)), X
    ),
    "fft2": of(lambda x: (fft.ifft2(fft.fft2(x) * 2).real, fft.irfft2(fft.rfft2(x), s=x.shape[-2:])), X),
    "hfft": of(lambda x: (fft.hfft(fft.ihfft(x)), real(fft.ihfft(x))), X),
    "fft_double": of(lambda x: real(fft.rfft(x)), X.double()),
    "short_time": of(short_time, SIGNAL, more=[(drawn(5, 40),)], dynamic=({0: (2, 8)},)),
    "restored": of(restored, SIGNAL),
    "filtered": of(filtered, X),
    "rotary": of(rotary, drawn(2, 4, 6)),
    "complex_arithmetic": of(
        lambda a, b: tuple(
            real(each)
            for x, y in [(whole_numbers(a), whole_numbers(b))]
            for each in (
                x + y,
                x - y,
                x * y,
                x / y,
                -x,
                x.conj(),
                2 * x,
                x + 1.5,
                1 / x,
                x**2,
                torch.add(x, y, alpha=2),
            )
        ),
        PAIRS,
        OTHERS,
    ),
    "complex_scalars": of(lambda a: real((whole_numbers(a) * 1j + (2 - 1j)).masked_fill(a[..., 0] > 0, 3j)), PAIRS),
    "complex_functions": of(
        lambda a: tuple(
            real(each)
            for x in [whole_numbers(a)]
            for each in (x.exp(), x.log(), x.sqrt(), x.sin(), x.cos(), x.sgn(), x.rsqrt(), x.reciprocal())
        ),
        PAIRS,
    ),
    "complex_movement": of(
        lambda a, b, n: tuple(
            real(each)
            for x, y in [(whole_numbers(a), whole_numbers(b))]
            for each in (
                x.t(),
                x[1:, ::2],
                torch.cat([x, y], 1),
                x[n],
                x.sum(1),
                x.mean(),
                x @ y.mT,
                x.flip(0),
            )
        ),
        PAIRS,
        OTHERS,
        whole(3, low=0, high=4),
    ),
    "complex_and_real": of(
        lambda a, n: tuple(
            each
            for z in [torch.where(n > 1, whole_numbers(a), 0)]
            for each in (
                real(torch.sum(n, 0, dtype=torch.complex64)),
                real(torch.mean(n, 0, dtype=torch.complex64)),
                real(z.clone().copy_(n)),
                a.mean(-1).copy_(z).abs(),
                z.to(torch.bool),
                (1j * n).to(torch.bool),
                z.to(torch.float32),
                z == 0,
                z != n,
                real(torch.where(n > 2, z, n)),
                real(torch.gather(z, 0, n)),
                real(z[n[0], n[1]]),
            )
        ),
        PAIRS,
        whole(4, 6, low=0, high=4),
    ),
    "complex_choice": of(
        lambda a, b: (
            real(torch.where(a[..., 0] > 0, whole_numbers(a), whole_numbers(b))),
            whole_numbers(a) == whole_numbers(a.clone()),
            whole_numbers(a) != whole_numbers(b),
        ),
        PAIRS,
        OTHERS,
    ),
}
