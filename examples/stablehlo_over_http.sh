#!/bin/sh
# Compile a StableHLO module over plain HTTP. KILN_URL is the URL of a service, for example one of `kiln serve`.
set -eu

curl --silent --show-error --fail-with-body "${KILN_URL:-http://127.0.0.1:8080}/compile" \
    --header 'Content-Type: application/json' --data-binary @- <<'END'
{
  "target": "cpu",
  "dims": {"0.0": {"min": 1, "max": 4096}},
  "stablehlo": {
    "text": "func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> { %0 = stablehlo.tanh %x : tensor<?x4xf32> return %0 : tensor<?x4xf32> }"
  }
}
END
