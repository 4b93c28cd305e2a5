"""Operators of com.microsoft beside the recorded results of ONNX Runtime, and what they refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from tensorkiln.errors import InvalidGraphError, TensorkilnError, UnsupportedGraphError
from tensorkiln.frontends.onnx import DOMAINS, load
from tensorkiln.frontends.onnx.contributed.arity import ARITY
from tensorkiln.reference import evaluate
from tests import checked
from tests.frontends.onnx.contributed import float_cases, integer_cases, quantized_cases
from tests.frontends.onnx.contributed.case import Array, Case
from tests.frontends.onnx.contributed.recorded import results_of

CASES = [*float_cases.CASES, *integer_cases.CASES, *quantized_cases.CASES]
NAMED = {case.name: case for case in CASES}


def _assert_agrees(case: Case, actual: Sequence[Array], expected: Sequence[Array]) -> None:
    """Integers may be one step apart, because runtimes round at other places; most are equal."""
    for name, found, wanted in zip(filter(None, case.outputs), actual, expected, strict=True):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        if name in case.unspecified:
            found, wanted = found.copy(), wanted.copy()
            found[case.unspecified[name]] = wanted[case.unspecified[name]] = 0
        if found.dtype.kind in "iu":
            distance = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
            assert distance.max() <= 1
            assert np.mean(distance) <= 0.02
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=3e-6 * max(1.0, float(np.abs(wanted).max())))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_operator_agrees_with_onnx_runtime(case: Case):
    model = load(case.model(), symbols=case.symbols())
    _assert_agrees(case, evaluate(model.graph, *model.arguments(**case.inputs)), results_of(case))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_compiled_operator_of_symbolic_sizes_agrees_with_onnx_runtime(case: Case):
    sizes = case.symbols()
    model = load(case.model(), symbols=dict.fromkeys(sizes, (1, 64)))
    _assert_agrees(case, checked.run_graph(model.graph, *model.arguments(**case.inputs), **sizes), results_of(case))


def test_every_operator_has_a_case():
    # Those that ONNX Runtime lacks on CPUs have tests below.
    others = {"BiasAdd", "BiasSplitGelu", "FusedMatMulActivation", "GemmFastGelu", "GroupNorm", "NhwcConv"}
    same = {"SkipGroupNorm", "TransposeMatMul"}
    assert {case.op for case in CASES if case.domain} | others | same == DOMAINS["com.microsoft"].keys()
    assert {op for domain, op in ARITY if domain} == DOMAINS["com.microsoft"].keys()


def _evaluated(case: Case) -> list[Array]:
    model = load(case.model())
    return list(evaluate(model.graph, *model.arguments(**case.inputs)))


def test_packed_keys_and_values_are_those_of_three_inputs():
    random = np.random.default_rng(3)
    query, key, value = (random.standard_normal((2, 5, 2, 4)).astype(np.float32) for _ in range(3))
    flat = {name: array.reshape(2, 5, 8) for name, array in {"q": query, "k": key, "v": value}.items()}
    (expected,) = _evaluated(Case("three", "MultiHeadAttention", "q k v", flat, {}, {"num_heads": 2}))
    two = {"q": flat["q"], "k": np.stack([key, value], 3)}
    (actual,) = _evaluated(Case("two", "MultiHeadAttention", "q k", two, {}, {"num_heads": 2}))
    np.testing.assert_array_equal(actual, expected)
    one = {"q": np.stack([query, key, value], 3)}
    (actual,) = _evaluated(Case("one", "MultiHeadAttention", "q", one, {}, {"num_heads": 2}))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("channels_last", [0, 1])
def test_groups_of_channels_are_standardised(channels_last: int):
    random = np.random.default_rng(4)
    image = random.standard_normal((2, 4, 3, 5)).astype(np.float32)
    gamma, beta, bias = (random.standard_normal(4).astype(np.float32) for _ in range(3))
    skip = random.standard_normal((2, 4)).astype(np.float32)

    def expected(x: Array) -> Array:
        rows = x.reshape(2, 2, -1).astype(np.float64)
        normal = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
        scaled = normal.reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
        return scaled / (1 + np.exp(-scaled))

    def turned(x: Array) -> Array:
        return np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if channels_last else x

    weights = {"g": gamma, "b": beta, "s": skip, "c": bias}
    attributes: dict[str, Any] = {"groups": 2, "activation": 1, "channels_last": channels_last}
    inputs = {"x": turned(image)}
    (plain,) = _evaluated(Case("plain", "GroupNorm", "x g b", inputs, weights, attributes))
    np.testing.assert_allclose(plain, turned(expected(image)), rtol=1e-5, atol=1e-5)
    residual = Case("sum", "SkipGroupNorm", "x g b s c", inputs, weights, attributes, outputs=("y", "sum"))
    normal, total = _evaluated(residual)
    summed = image + skip[:, :, None, None] + bias[:, None, None]
    np.testing.assert_allclose(total, turned(summed), rtol=1e-6)
    np.testing.assert_allclose(normal, turned(expected(summed)), rtol=1e-5, atol=1e-5)


def test_a_convolution_of_channels_last_is_that_of_channels_first():
    random = np.random.default_rng(6)
    image = random.standard_normal((2, 4, 7, 6)).astype(np.float32)
    weight, bias = random.standard_normal((6, 2, 3, 3)).astype(np.float32), random.standard_normal(6).astype(np.float32)
    attributes: dict[str, Any] = {"group": 2, "strides": [2, 1], "pads": [1, 0, 2, 1]}
    first = Case("first", "Conv", "x w b", {"x": image}, {"w": weight, "b": bias}, attributes, domain="")
    (expected,) = _evaluated(first)
    turned = {"x": image.transpose(0, 2, 3, 1).copy()}
    weights = {"w": weight.transpose(0, 2, 3, 1).copy(), "b": bias}
    (actual,) = _evaluated(Case("last", "NhwcConv", "x w b", turned, weights, attributes))
    np.testing.assert_allclose(actual.transpose(0, 3, 1, 2), expected, rtol=1e-5, atol=1e-5)


def test_activations_after_sums_and_products():
    random = np.random.default_rng(5)
    x, skip = random.standard_normal((2, 2, 3, 4)).astype(np.float32)
    weight, bias = random.standard_normal((4, 4)).astype(np.float32), random.standard_normal(4).astype(np.float32)
    weights = {"w": weight, "b": bias, "s": skip}
    (total,) = _evaluated(Case("sum", "BiasAdd", "x b s", {"x": x}, weights))
    np.testing.assert_array_equal(total, x + bias + skip)
    (halves,) = _evaluated(Case("halves", "BiasSplitGelu", "x b", {"x": x}, weights))
    (gelu,) = _evaluated(Case("gelu", "Gelu", "x", {"x": (x + bias)[..., 2:]}))
    np.testing.assert_allclose(halves, (x + bias)[..., :2] * gelu, rtol=1e-6)
    (fast,) = _evaluated(Case("fast", "GemmFastGelu", "x w b", {"x": x}, weights))
    (wanted,) = _evaluated(Case("wanted", "FastGelu", "x", {"x": x @ weight + bias}))
    np.testing.assert_allclose(fast, wanted, rtol=1e-5, atol=1e-6)
    attributes: dict[str, Any] = {"activation": "LeakyRelu", "activation_alpha": 0.5, "alpha": 2.0}
    (leaky,) = _evaluated(Case("leaky", "FusedMatMulActivation", "x w", {"x": x}, weights, attributes))
    product = 2 * x @ weight
    np.testing.assert_allclose(leaky, np.where(product < 0, product / 2, product), rtol=1e-5, atol=1e-6)


def _changed(name: str, *, attributes: Mapping[str, Any] | None = None, **changes: Any) -> Case:
    """A case with fixed sizes, more attributes, and other fields."""
    case = NAMED[name]
    return replace(case, attributes={**case.attributes, **(attributes or {})}, dims={}, **changes)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (_changed("attention", attributes={"do_rotary": 1}), "do_rotary"),
        (_changed("attention", attributes={"unknown": 1}), "unknown"),
        (_changed("attention", operands="x w b - - - b"), "past_sequence_length"),
        (
            _changed("attention_mask_keys", inputs={**NAMED["attention"].inputs, "mask": np.ones((2, 4), np.int32)}),
            "mask",
        ),
        (_changed("multi_head", outputs=("y", "a", "b", "c")), "normalised scores"),
        (_changed("grouped_prompt", attributes={"qk_output": 1}), "qk_output"),
        (_changed("grouped_prompt", attributes={"k_quant_type": "PER_TENSOR"}), "k_quant_type"),
        (_changed("rotary_offset", attributes={"scale": 2.0}), "scale"),
        (_changed("rotary_offset", attributes={"is_packed_batching": 1}), "is_packed_batching"),
        (_changed("bits_4", attributes={"bits": 3}), "3 bits"),
        (_changed("bits_4", attributes={"weight_prepacked": 1}), "weight_prepacked"),
        (_changed("bits_4", attributes={"block_size": 24}), "block_size"),
        (_changed("bits_4", operands="x w s z b"), "g_idx"),
        (_changed("fused_conv_Relu", attributes={"activation": "Swish"}), "Swish"),
        (_changed("q_global_uint8", attributes={"channels_last": 1}), "channels_last"),
        (_changed("skip_norm", outputs=("y", "mean")), "mean"),
        (_changed("gelu", operands="x x"), "inputs"),
        (_changed("skip_norm", operands="x skip"), "inputs"),
        (_changed("old_norm", operands="x"), "inputs"),
    ],
    ids=lambda value: value.name if isinstance(value, Case) else value,
)
def test_an_unsupported_use_is_named(case: Case, message: str):
    with pytest.raises((UnsupportedGraphError, InvalidGraphError), match=message):
        load(case.model())


def test_a_number_of_tokens_that_is_computed_is_refused_with_the_input_to_fix():
    case = NAMED["grouped_step"]
    computed = replace(case, inputs={**case.inputs, "total": np.array(6, np.int32)}, weights={})
    with pytest.raises(UnsupportedGraphError, match=r"'total' in `constants`"):
        load(computed.model())
    model = load(computed.model(), constants={"total": 6})
    _assert_agrees(case, evaluate(model.graph, *model.arguments(**case.inputs)), results_of(case))


@pytest.mark.parametrize("name", ["grouped_prompt", "grouped_step_rotary", "grouped_step_ragged", "grouped_chunk"])
def test_a_cache_grows_by_symbols(name: str):
    """The lengths come from a mask, as in models for generation."""
    case = NAMED[name]
    proto = replace(
        case,
        inputs={each: array for each, array in case.inputs.items() if each != "last"},
        weights={each: array for each, array in case.weights.items() if each != "total"},
        dims={
            **{each: ("batch", "tokens", case.inputs[each].shape[2]) for each in "qkv"},
            **{each: ("batch", 2, "past", 16) for each in ("pk", "pv") if each in case.inputs},
        },
    ).model()
    proto.graph.input.append(helper.make_tensor_value_info("mask", TensorProto.INT64, ["batch", "total"]))
    lengths = parser.parse_graph(
        "g (int64[batch, total] mask) => (int32[batch] last, int32 total) {"
        "one = Constant<value_int = 1>() axis = Constant<value_ints = [1]>() shape = Shape(mask) "
        "size = Gather(shape, one) total = Cast<to = 6>(size) "
        "count = ReduceSum<keepdims = 0>(mask, axis) past = Sub(count, one) last = Cast<to = 6>(past) }"
    )
    nodes = [*lengths.node, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    last, total = case.inputs["last"], int(case.weights["total"])
    mask = (np.arange(total) <= last[:, None]).astype(np.int64)
    inputs = {**{each: array for each, array in case.inputs.items() if each != "last"}, "mask": mask}
    batch, tokens, _ = case.inputs["q"].shape
    sizes = {"batch": batch, "tokens": tokens, "total": total}
    if "pk" in inputs:
        sizes["past"] = inputs["pk"].shape[2]
    model = load(proto, symbols=dict.fromkeys(sizes, (1, 16)))
    for run in (evaluate, checked.run_graph):
        _assert_agrees(case, run(model.graph, *model.arguments(**inputs), **sizes), results_of(case))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operands_of_wrong_shapes_are_refused_by_a_typed_error(case: Case):
    for name, array in case.inputs.items():
        for wrong in (array[..., None], array[..., :1], array.reshape(-1)):
            if wrong.shape == array.shape:
                continue
            try:
                load(_changed(case.name, inputs={**case.inputs, name: wrong}).model())
            except TensorkilnError:
                continue
