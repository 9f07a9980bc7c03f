"""The shared model behind an OpenAI-compatible endpoint on this machine, for systems that take no other: `POST /v1/embeddings`."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from embedder import Embedder


def serve_embeddings() -> str:
    """Starts the endpoint in a thread and gives its address. Prefixes for questions are the caller's business."""
    embedder = Embedder()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [given["input"]] if isinstance(given["input"], str) else given["input"]
            data = [
                {"object": "embedding", "index": at, "embedding": vector}
                for at, vector in enumerate(embedder.documents(texts))
            ]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            answer = {"object": "list", "data": data, "model": given.get("model"), "usage": usage}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
