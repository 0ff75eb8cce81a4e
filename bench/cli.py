"""How much time and memory one call of the `steroids` command takes, apart from the server.

    python bench/cli.py [CALLS]

The server is a stub in this process that answers at once, and the command is started as agents find it. The
floor is a bare `python` that does nothing. Wanted: a median of 60 ms, and 20 MB.
"""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from agents.hosts.processes import words_of  # noqa: E402

CLI = ROOT / "agents" / "cli.py"
WANTED_MS, WANTED_MB = 60.0, 20.0
# A new process counts what the one that begins it held, so memory is asked for by one that holds little.
MOST_HELD = """
import os, sys
quiet = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[quiet])
_, status, used = os.wait4(pid, 0)
print(used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
REPLY = b'{"kind": "person", "name": "Ann"}'


class Stub(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(REPLY)))
        self.end_headers()
        self.wfile.write(REPLY)

    def log_message(self, *words: object) -> None:
        pass


def main(calls: int) -> int:
    server = HTTPServer(("127.0.0.1", 0), Stub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with TemporaryDirectory() as folder:
        context = Path(folder, "context.json")
        context.write_text(json.dumps({"url": f"http://127.0.0.1:{server.server_port}", "token": "stx_x"}))
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "STEROIDS_CONTEXT": str(context)}
        words = {"steroids": [*words_of(sys.executable, CLI), "whoami"]}
        words["floor"] = [sys.executable, "-I", "-S", "-c", "pass"]
        took: dict[str, list[float]] = {name: [] for name in words}
        for name in [*words] * calls:
            begun = time.perf_counter()
            call = subprocess.Popen(words[name], env=environment, stdout=subprocess.DEVNULL)
            assert call.wait() == 0, name
            took[name].append((time.perf_counter() - begun) * 1000)
        held = {name: most_held(words[name], environment) for name in words}
    for name, each in took.items():
        times = f"median {median(each):.0f} ms ({min(each):.0f} to {max(each):.0f})"
        print(f"{name:9} {times}, {held[name]:.0f} MB at most")
    print(f"{median(took['steroids']) / median(took['floor']):.1f} floors")
    return int(median(took["steroids"]) > WANTED_MS or held["steroids"] > WANTED_MB)


def most_held(words: list[str], environment: dict[str, str]) -> float:
    """Return the most memory that a command held, in MB."""
    small = [sys.executable, "-I", "-S", "-c", MOST_HELD, *words]
    asked = subprocess.run(small, env=environment, capture_output=True, check=True)
    return int(asked.stdout) / 1024


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
