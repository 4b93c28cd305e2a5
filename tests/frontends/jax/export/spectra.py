"""`jax.numpy.fft` and complex numbers."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.frontends.jax.export.recipe import Draw, Function, key, normal, positive


def numbers(*dims: int | str, dtype: type = np.complex64) -> Draw:
    """Complex values around 0."""
    return Draw(dims, dtype, lambda source, shape: source.standard_normal(shape) + 1j * source.standard_normal(shape))


def _power_spectrum(x):
    return jnp.abs(jnp.fft.rfft(x * jnp.hanning(x.shape[-1]))) ** 2


def _filtered(x):
    bins = jnp.fft.rfft(x)
    return jnp.fft.irfft(jnp.where(jnp.arange(bins.shape[-1]) < 5, bins, 0), n=x.shape[-1])


def _long_convolution(x, kernel):
    length = 2 * x.shape[-1]
    return jnp.fft.irfft(jnp.fft.rfft(x, n=length) * jnp.fft.rfft(kernel, n=length))[..., : x.shape[-1]]


def _by_modes(x, weights):
    """A layer of a Fourier neural operator: the first modes have weights, the others are 0."""
    bins = jnp.fft.rfft(x)
    kept = jnp.einsum("bcm,cdm->bdm", bins[..., : weights.shape[-1]], weights)
    return jnp.fft.irfft(jnp.zeros_like(bins).at[..., : weights.shape[-1]].set(kept), n=x.shape[-1])


def _rotated(x, angles):
    pairs = lax.complex(x[..., 0::2], x[..., 1::2]) * jnp.exp(1j * angles)
    return jnp.stack([pairs.real, pairs.imag], -1).reshape(x.shape)


def _state_space(poles, x):
    def step(state, u):
        state = poles * state + u
        return state, state.sum().real

    return lax.scan(step, jnp.zeros_like(poles), x)


FUNCTIONS: Final = (
    Function("fft", jnp.fft.fft, (numbers(3, 12),)),
    Function("fft_of_1000", jnp.fft.fft, (numbers(1000),)),
    Function("ifft", jnp.fft.ifft, (numbers(3, 12),)),
    Function("rfft", jnp.fft.rfft, (normal(3, 15),)),
    Function("irfft", jnp.fft.irfft, (numbers(3, 9),)),
    Function("fft2", jnp.fft.fft2, (numbers(2, 4, 6),)),
    Function("rfftn", jnp.fft.rfftn, (normal(4, 3, 6),)),
    Function("irfftn", jnp.fft.irfftn, (numbers(4, 3, 4),)),
    Function("hfft", jnp.fft.hfft, (numbers(5),)),
    Function("fft_wide", jnp.fft.fft, (numbers(24, dtype=np.complex128),), wide=True),
    Function("n_rfft", jnp.fft.rfft, (normal("n", 8),), ({"n": 1}, {"n": 5})),
    Function("grad_of_a_spectrum", jax.grad(lambda x: (_power_spectrum(x) ** 0.5).sum()), (normal(16),)),
    Function("power_spectrum", _power_spectrum, (normal(2, 32),)),
    Function("filtered", _filtered, (normal(2, 20),)),
    Function("long_convolution", _long_convolution, (normal(2, 24), normal(24))),
    Function("weights_of_modes", _by_modes, (normal(2, 3, 20), numbers(3, 3, 4))),
    Function(
        "complex_updates",
        lambda x, y: (x.at[jnp.array([4, 0, 9, 4])].add(y), x.at[jnp.array([1, 1, -1, 2])].set(y)),
        (numbers(6, 2), numbers(4, 2)),
    ),
    Function("rotary_by_complex_numbers", _rotated, (normal(2, 3, 8), normal(3, 4))),
    Function("state_space_of_complex_poles", _state_space, (numbers(4), normal(6))),
    Function("complex_arithmetic", lambda x, y: (x * y - x / y + 2, x == y, -x, x.conj()), (numbers(5), numbers(5))),
    Function("complex_functions", lambda x: (jnp.exp(x), jnp.log(x), jnp.sqrt(x), jnp.abs(x)), (numbers(9),)),
    Function("complex_angles", lambda x: (jnp.angle(x), x.real, x.imag, jnp.sin(x), jnp.cos(x)), (numbers(9),)),
    Function("complex_powers", lambda x: (x**3, x**-1, x**0.5), (numbers(9),)),
    Function("complex_products", lambda x, y: (x @ y, jnp.vdot(x, x), x.mean(0)), (numbers(3, 4), numbers(4, 2))),
    Function("complex_indices", lambda x: (x[1:, ::2], x.T, jnp.flip(x), x[jnp.array([2, 0])]), (numbers(3, 4),)),
    Function("complex_of_reals", lambda x, y: lax.complex(x, y) * (1 - 2j), (normal(4), positive(4))),
    Function("bit_generator", lambda k: lax.rng_bit_generator(jnp.tile(k, 2), (3, 5)), (key(),)),
)
