"""Operators on floats."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import case
from .case import Case

_random = np.random.RandomState(7)
normal = partial(case.normal, _random)


def _attention_cases() -> list[Case]:
    """Self-attention of 2 sequences of 5 tokens with 8 features, by 2 heads."""
    x, w, bias = normal(2, 5, 8), normal(8, 24) * 0.5, normal(24)
    past = normal(2, 2, 2, 3, 4)
    masks = {
        "lengths": np.array([3, 5], np.int32),
        "ends_and_starts": np.array([3, 5, 1, 0], np.int32),
        "keys": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32),
        "queries": (_random.uniform(size=(2, 5, 5)) > 0.3).astype(np.int32),
    }
    weights = {"w": w, "b": bias}
    tokens = {"x": ("batch", "tokens", 8)}
    cases = [
        Case("attention", "Attention", "x w b", {"x": x}, weights, {"num_heads": 2}, tokens),
        Case(
            *("attention_causal", "Attention", "x w b", {"x": x}, weights),
            {"num_heads": 2, "unidirectional": 1, "scale": 0.3},
            tokens,
        ),
        Case(
            *("attention_past", "Attention", "x w b - past", {"x": x, "past": past}, weights),
            {"num_heads": 2, "unidirectional": 1},
            {**tokens, "past": (2, "batch", 2, "past", 4)},
            ("y", "present"),
        ),
        Case(
            *("attention_past_mask", "Attention", "x w b mask past"),
            {"x": x, "mask": np.array([[0, 0, 1, 1, 1, 1, 1, 1], [1] * 8], np.int32), "past": past},
            weights,
            {"num_heads": 2, "unidirectional": 1},
            outputs=("y", "present"),
        ),
        Case(
            *("attention_bias", "Attention", "x w b - - bias", {"x": x, "bias": normal(1, 2, 5, 5)}, weights),
            {"num_heads": 2},
        ),
        Case(
            *("attention_value_width", "Attention", "x w b", {"x": x}, {"w": normal(8, 20) * 0.5, "b": normal(20)}),
            {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]},
            tokens,
        ),
    ]
    for name, mask in masks.items():
        attributes: dict[str, Any] = {"num_heads": 2, "unidirectional": int(name == "keys")}
        dims = {**tokens, "mask": {1: ("batch",), 2: ("batch", "tokens"), 3: ("batch", "tokens", "tokens")}[mask.ndim]}
        inputs = {"x": x, "mask": mask}
        cases.append(
            Case(
                *(f"attention_mask_{name}", "Attention", "x w b mask", inputs, weights, attributes),
                {} if name == "ends_and_starts" else dims,
            )
        )
    return cases


def _multi_head_cases() -> list[Case]:
    query, key, value = normal(2, 5, 8), normal(2, 7, 8), normal(2, 7, 12)
    past = {"pk": normal(2, 2, 3, 4), "pv": normal(2, 2, 3, 4)}
    three = {"q": query, "k": key, "v": value}
    dims = {"q": ("batch", "tokens", 8), "k": ("batch", "keys", 8), "v": ("batch", "keys", 12)}
    heads = {"num_heads": 2}
    own = {"q": query, "k": normal(2, 5, 8), "v": normal(2, 5, 8)}
    return [
        Case("multi_head", "MultiHeadAttention", "q k v", three, {}, heads, dims),
        Case("multi_head_bias", "MultiHeadAttention", "q k v b", three, {"b": normal(28)}, heads, dims),
        Case(
            *("multi_head_cross", "MultiHeadAttention", "q k v"),
            {"q": query, "k": normal(2, 2, 7, 4), "v": normal(2, 2, 7, 4)},
            {},
            heads,
        ),
        Case(
            *("multi_head_mask", "MultiHeadAttention", "q k v - mask"),
            {**three, "mask": np.array([[1] * 4 + [0] * 3, [1] * 7], np.int32)},
            {},
            heads,
            {**dims, "mask": ("batch", "keys")},
        ),
        Case(
            *("multi_head_lengths", "MultiHeadAttention", "q k v - mask"),
            {**three, "mask": np.array([4, 7], np.int32)},
            {},
            {**heads, "mask_filter_value": -100.0},
        ),
        Case(
            *("multi_head_past", "MultiHeadAttention", "q k v - - bias pk pv"),
            {**own, "bias": normal(1, 2, 5, 8), **past},
            {},
            {**heads, "scale": 0.4},
            {"q": ("batch", "tokens", 8), "k": ("batch", "tokens", 8), "v": ("batch", "tokens", 8)},
            ("y", "keys", "values"),
        ),
        Case(
            *("multi_head_causal", "MultiHeadAttention", "q k v - - - pk pv", {**own, **past}, {}),
            {**heads, "unidirectional": 1},
            {
                **dict.fromkeys("qkv", ("batch", "tokens", 8)),
                **dict.fromkeys(("pk", "pv"), ("batch", 2, "past", 4)),
            },
            ("y", "keys", "values"),
        ),
    ]


def _grouped_cases() -> list[Case]:
    """Four heads in two groups, of 16 features."""
    angles = np.outer(np.arange(16), 0.5 ** np.arange(8))
    tables = {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    heads = {"num_heads": 4, "kv_num_heads": 2}
    prompt = {"q": normal(2, 6, 64), "k": normal(2, 6, 32), "v": normal(2, 6, 32)}
    step = {"q": normal(2, 1, 64), "k": normal(2, 1, 32), "v": normal(2, 1, 32)}
    chunk = {"q": normal(1, 3, 64), "k": normal(1, 3, 32), "v": normal(1, 3, 32)}
    past = {"pk": normal(2, 2, 5, 16), "pv": normal(2, 2, 5, 16)}
    of_one = {name: array[:1] for name, array in past.items()}
    room = {"pk": normal(2, 2, 9, 16), "pv": normal(2, 2, 9, 16)}
    full, ragged = {"last": np.array([5, 5], np.int32)}, {"last": np.array([5, 3], np.int32)}
    everything = ("y", "keys", "values")
    total = {"total": np.array(6, np.int32)}
    rotary = {**heads, "do_rotary": 1}
    plain, turned = "q k v pk pv last total", "q k v pk pv last total cos sin"
    first, rotated = "q k v - - last total", "q k v - - last total cos sin"
    op = "GroupQueryAttention"
    return [
        Case("grouped_prompt", op, first, {**prompt, **full}, total, heads, outputs=everything),
        Case(
            *("grouped_prompt_ragged", op, rotated, {**prompt, **ragged}, {**total, **tables}, rotary),
            outputs=everything,
            # The second sequence has 4 tokens, then padding.
            unspecified={"y": (1, slice(4, None))},
        ),
        Case("grouped_step", op, plain, {**step, **past, **full}, total, heads, outputs=everything),
        Case(
            "grouped_step_rotary", op, turned, {**step, **past, **full}, {**total, **tables}, rotary, outputs=everything
        ),
        Case(
            "grouped_step_ragged",
            op,
            turned,
            {**step, **past, **ragged},
            {**total, **tables},
            rotary,
            outputs=everything,
        ),
        Case(
            "grouped_step_paired",
            op,
            turned,
            {**step, **past, **full},
            {**total, **tables},
            {**rotary, "rotary_interleaved": 1},
            outputs=everything,
        ),
        Case("grouped_room", op, turned, {**step, **room, **full}, {**total, **tables}, rotary, outputs=everything),
        Case(
            *("grouped_chunk", op, turned, {**chunk, **of_one, "last": np.array([7], np.int32)}),
            {"total": np.array(8, np.int32), **tables},
            rotary,
            outputs=everything,
        ),
        Case("grouped_window", op, first, {**prompt, **full}, total, {**heads, "local_window_size": 3}),
        Case(
            "grouped_window_step",
            op,
            plain,
            {**step, **past, **full},
            total,
            {**heads, "local_window_size": 3},
            outputs=everything,
        ),
        Case("grouped_softcap", op, first, {**prompt, **full}, total, {**heads, "softcap": 2.0, "scale": 0.5}),
        Case("grouped_smooth", op, first, {**prompt, **full}, total, {**heads, "smooth_softmax": 1}),
        Case("grouped_sink", op, f"{first} - - - - sink", {**prompt, **full}, {**total, "sink": normal(4)}, heads),
        Case(
            *("grouped_bias", op, f"{first} - - - bias", {**prompt, **full, "bias": normal(1, 4, 6, 6)}, total),
            {**heads, "softcap": 2.0},
        ),
        Case(
            "grouped_packed",
            op,
            "q - - - - last total",
            {"q": normal(2, 6, 128), **full},
            total,
            heads,
            outputs=everything,
        ),
        Case("grouped_all", op, first, {**prompt, **full}, total, {**heads, "causal": 0}),
    ]


def _normalised_cases() -> list[Case]:
    x, skip = normal(2, 5, 8), normal(2, 5, 8)
    gamma, beta, bias = normal(8), normal(8), normal(8)
    tokens = {"x": ("batch", "tokens", 8), "skip": ("batch", "tokens", 8)}
    both = {"x": x, "skip": skip}
    weights = {"g": gamma, "b": beta, "bias": bias}
    sums = ("y", "", "", "sum")
    return [
        Case("skip_norm", "SkipLayerNormalization", "x skip g b", both, weights, {"epsilon": 1e-5}, tokens),
        Case("skip_norm_bias", "SkipLayerNormalization", "x skip g b bias", both, weights, {}, tokens, sums),
        Case("skip_norm_rows", "SkipLayerNormalization", "x skip g", {"x": x, "skip": skip[0]}, weights),
        Case("skip_simple", "SkipSimplifiedLayerNormalization", "x skip g bias", both, weights, {}, tokens, sums),
        Case(
            "simple", "SimplifiedLayerNormalization", "x g", {"x": x}, weights, {"epsilon": 1e-6}, domain="", opset=17
        ),
        Case("old_norm", "LayerNormalization", "x g b", {"x": x}, weights, {"epsilon": 1e-5}, domain="", opset=14),
        Case(
            *("embed", "EmbedLayerNormalization", "ids segments words places parts g b mask"),
            {
                "ids": np.array([[1, 2, 3], [4, 5, 0]], np.int32),
                "segments": np.array([[0, 0, 1], [0, 1, 1]], np.int32),
                "mask": np.array([[1, 1, 1], [1, 1, 0]], np.int32),
            },
            {**weights, "words": normal(6, 8), "places": normal(4, 8), "parts": normal(2, 8)},
            {},
            dict.fromkeys(("ids", "segments", "mask"), ("batch", "tokens")),
            ("y", "lengths"),
        ),
        Case(
            *("embed_plain", "EmbedLayerNormalization", "ids - words places - g b"),
            {"ids": np.array([[1, 2, 3], [4, 5, 0]], np.int32)},
            {**weights, "words": normal(6, 8), "places": normal(4, 8)},
            outputs=("y", "lengths"),
        ),
        *(
            Case(
                f"rotary_{name}",
                "RotaryEmbedding",
                "x at cos sin",
                {"x": normal(2, 5, 16), "at": at},
                {"cos": normal(12, pairs), "sin": normal(12, pairs)},
                attributes,
            )
            for name, at, pairs, attributes in [
                ("offset", np.array([3]), 4, {}),
                ("places", np.arange(10).reshape(2, 5), 4, {"interleaved": 1}),
                ("part", np.arange(10).reshape(2, 5), 2, {"num_heads": 2, "rotary_embedding_dim": 4}),
            ]
        ),
        Case(
            *("rotary_heads", "RotaryEmbedding", "x at cos sin", {"x": normal(2, 2, 5, 8), "at": np.array([3])}),
            {"cos": normal(12, 4), "sin": normal(12, 4)},
            {},
            {"x": ("batch", 2, "tokens", 8)},
        ),
    ]


def _elementwise_cases() -> list[Case]:
    x, a, b = normal(2, 5, 8), normal(3, 4, 6), normal(3, 6, 5)
    image, kernel = normal(1, 3, 6, 6), {"w": normal(4, 3, 3, 3), "b": normal(4)}
    rows = {"x": ("batch", "tokens", 8)}
    activations: list[tuple[str, dict[str, Any]]] = [
        ("Relu", {}),
        ("LeakyRelu", {"activation_params": [0.2]}),
        ("Clip", {"activation_params": [-0.5, 1.5]}),
        ("HardSigmoid", {"activation_params": [0.3, 0.4]}),
        ("Sigmoid", {}),
        ("Tanh", {}),
    ]
    return [
        Case("gelu", "Gelu", "x", {"x": x}, dims=rows),
        Case("bias_gelu", "BiasGelu", "x b", {"x": x}, {"b": normal(8)}, dims=rows),
        Case("fast_gelu", "FastGelu", "x b", {"x": x}, {"b": normal(8)}, dims=rows),
        Case("quick_gelu", "QuickGelu", "x", {"x": x}, {}, {"alpha": 1.5}, rows),
        Case("fused_matmul", "FusedMatMul", "a b", {"a": a, "b": b}, {}, {"alpha": 0.5}),
        Case(
            "fused_matmul_turned", "FusedMatMul", "a b", {"a": a, "b": normal(3, 5, 4)}, {}, {"transA": 1, "transB": 1}
        ),
        Case(
            *("fused_matmul_batch", "FusedMatMul", "a b", {"a": normal(4, 2, 3, 6), "b": normal(2, 3, 6, 5)}, {}),
            {"transBatchA": 1},
        ),
        Case(
            "fused_gemm",
            "FusedGemm",
            "x w c",
            {"x": x[0]},
            {"w": normal(8, 3), "c": normal(3)},
            {"activation": "Relu", "alpha": 0.5},
        ),
        *(
            Case(
                *(f"fused_conv_{kind}", "FusedConv", "x w b", {"x": image}, kernel),
                {"activation": kind, "pads": [1, 1, 1, 1], **parameters},
                {"x": ("batch", 3, 6, 6)},
            )
            for kind, parameters in activations
        ),
        Case(
            *("fused_conv_sum", "FusedConv", "x w b z", {"x": image, "z": normal(1, 4, 4, 4)}, kernel),
            {"activation": "Relu"},
        ),
    ]


CASES = [
    *_attention_cases(),
    *_multi_head_cases(),
    *_grouped_cases(),
    *_normalised_cases(),
    *_elementwise_cases(),
]
