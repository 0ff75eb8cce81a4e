"""How long one call of the `steroids` command takes, the server left out: best and median of some calls.

    python bench/cli.py [CALLS]

The server is a stub in this process that answers at once. A call is fast enough below 80 ms.
"""

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

CLI = Path(__file__).resolve().parents[1] / "agents" / "cli.py"
REPLY = b'{"kind": "person", "name": "Ann"}'


class Stub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(REPLY)))
        self.end_headers()
        self.wfile.write(REPLY)

    def log_message(self, *words: object) -> None:
        pass


def main(calls: int) -> None:
    server = HTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with TemporaryDirectory() as folder:
        context = Path(folder, "context.json")
        context.write_text(json.dumps({"url": f"http://127.0.0.1:{server.server_port}", "token": "stx_x"}))
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "STEROIDS_CONTEXT": str(context)}
        took = []
        for _ in range(calls):
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-I", "-S", str(CLI), "whoami"], env=environment, check=True,
                           stdout=subprocess.DEVNULL)  # fmt: skip
            took.append((time.perf_counter() - begun) * 1000)
    print(f"{calls} calls: best {min(took):.0f} ms, median {statistics.median(took):.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
