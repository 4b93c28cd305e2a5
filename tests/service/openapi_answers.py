"""The answers in the OpenAPI document: `python -m tests.service.openapi_answers` asks a service for all of them.

They belong together: the digest of one is the path of the next.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from service.http.openapi import ANSWERS_FILE, BODIES
from tests.service.server import Server

COMPILE = BODIES["CompileBody"]["graph"]["value"]


def answers(server: Server) -> dict[str, Any]:
    """The answer of each route that answers with JSON, by method, path and status; nothing is compiled before."""

    def ask(method: str, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
        answer = server.http.request(method, path, json=body, headers=headers)
        assert answer.status_code == status, (method, path, answer.text)
        return answer.json()

    explained = ask("POST", "/explain", COMPILE)
    begun = ask("POST", "/compile", COMPILE, 202, Prefer="respond-async")
    compiled = ask("POST", "/compile", COMPILE)
    digest = compiled["programs"][0]["digest"]
    ended = ask("GET", f"/jobs/{begun['id']}")
    other = {**COMPILE, "target": "cuda:sm_80"}
    cancelled = ask("DELETE", f"/jobs/{ask('POST', '/compile', other, 202, Prefer='respond-async')['id']}")
    return {
        "POST /compile 200": compiled,
        "POST /compile 202": begun,
        "POST /jobs:batch 200": ask("POST", "/jobs:batch", BODIES["BatchBody"]["two"]["value"]),
        "GET /jobs/{job} 200": ended,
        "DELETE /jobs/{job} 200": cancelled,
        "POST /explain 200": explained,
        "POST /validate 200": ask("POST", "/validate", BODIES["ValidateBody"]["graph"]["value"]),
        "POST /translate 200": ask("POST", "/translate", BODIES["TranslateBody"]["builder"]["value"]),
        "GET /programs/{digest} 200": ask("GET", f"/programs/{digest}"),
        "GET /programs/{digest}/signature 200": ask("GET", f"/programs/{digest}/signature"),
        "GET /keys 200": ask("GET", "/keys"),
        "GET /capabilities 200": ask("GET", "/capabilities"),
        "GET /whoami 200": ask("GET", "/whoami"),
        "GET /healthz 200": ask("GET", "/healthz"),
        "GET /readyz 200": ask("GET", "/readyz"),
    }


def main() -> None:
    with TemporaryDirectory() as folder, Server(Path(folder) / "kiln") as server:
        found = answers(server)
    with ANSWERS_FILE.open("w", encoding="utf-8") as file:
        json.dump(found, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
