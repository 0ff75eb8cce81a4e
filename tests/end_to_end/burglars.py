"""The part of the zoo that only lives in a sandbox: what turns against the host and against other runs.

Where one of them gets what it is after, it says so by `attempt`, and that is an escape.
"""

from dataclasses import replace

from tests.end_to_end.creatures import KEEPERS, Creature

MIB = 1024 * 1024
# What one run may take in the burglars' house; each of the three that want more is ended by name.
LIMITS = {"RUN_PROCESSES_MAX": 200, "RUN_DISK_MAX_BYTES": 300 * MIB, "RUN_FILES_MAX": 10_000}

BURGLARS = [
    Creature(
        "steals secrets",
        """
        secrets = [HOME / "secret-key", HOME / "steroids.sqlite3", pathlib.Path("/etc/shadow")]
        secrets += [HOME / "runs" / str(n) / "context.json" for n in range(60) if n != CONTEXT["run"]]
        secrets += [RUN / name for name in ("job.json", "exit.json", "pid", "lock")]
        for path in secrets:
            attempt("reads", path.read_bytes)
        attempt("looks into the data folder", lambda: (HOME / "host").exists() and os.listdir(HOME / "host"))
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            attempt("reads the host's environment", lambda: b"SECRET_KEY" in path.read_bytes())
        for path in pathlib.Path("/proc").glob("[0-9]*/root"):
            attempt("reads by another's root", (path / HOME.relative_to("/") / "secret-key").read_bytes)
        """,
        "nothing",
    ),
    Creature(
        "forges a session",
        """
        import hashlib, hmac, sqlite3
        def answer(path, cookie):
            url = urllib.parse.urlsplit(CONTEXT["url"])
            connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
            connection.request("GET", path, headers={"Cookie": cookie, "X-Forwarded-For": "127.0.0.1"})
            return connection.getresponse().status
        forged = hmac.new(b"", b"1", hashlib.sha256).hexdigest()[:32]
        for path in ("/", "/admin/", "/api/v1/tasks/", "/api/v1/../../admin/", "//admin/", "/metrics"):
            for session in (forged, STOLEN):
                told = answer(path, f"sessionid={session}")
                attempt(f"is let in at {path}: {told}", lambda: told < 400)
        def write_row():
            with sqlite3.connect(HOME / "steroids.sqlite3") as database:
                return database.execute("INSERT INTO django_session VALUES (?, '', '2099-01-01')", (forged,))
        try:
            attempt("writes a session", write_row)
        except sqlite3.Error as error:
            print(error)
        """,
        "nothing",
    ),
    Creature(
        "writes to mirrors",
        """
        objects = pathlib.Path(pathlib.Path(".git/objects/info/alternates").read_text().strip())
        mirror = objects.parent
        for path in (objects / "x", mirror / "config", mirror / "packed-refs", mirror / "HEAD",
                     mirror / "refs/heads/main", mirror / "hooks/post-update", objects / "info/alternates"):
            def write():
                path.parent.mkdir(parents=True, exist_ok=True)
                return path.write_text("PLANTED")
            attempt("writes there", write)
        commit()
        def move():
            git("-C", str(mirror), "update-ref", "refs/steroids/target/main", "HEAD")
            return True
        attempt("moves a ref", move)
        attempt("pushes", lambda: git("push", "--quiet", str(mirror), "HEAD:refs/heads/main") is None)
        """,
        "nothing", is_saved=True,
    ),
    Creature(
        "signals everybody",
        """
        import contextlib
        note()
        family = {int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*/task/[0-9]*")}
        def is_struck(pid):
            with contextlib.suppress(ProcessLookupError):
                return os.kill(pid, signal.SIGSTOP) is None
        attempt("signals strangers", lambda: any([is_struck(pid) for pid in set(range(1, 40_000)) - family]))
        os.kill(-1, signal.SIGKILL)  # its first process is among them
        time.sleep(600)
        """,
        "crash", "ended with 137",
    ),
    Creature(
        "reaches for loopback",
        """
        import socket
        def connects(*target):
            with socket.create_connection(target, 2):
                return True
        def tunnels(host):
            url = urllib.parse.urlsplit(CONTEXT["url"])
            with socket.create_connection((url.hostname, url.port), 5) as line:
                line.sendall(f"CONNECT {host} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
                return b" 200 " in line.recv(99)
        def speaks_to(path):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
                return line.sendto(b"x", str(path))
        for port in (PORT, 22, 5432, 6379, 8000, 11434):
            attempt("reaches this machine", lambda: connects("127.0.0.1", port))
        for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "2130706433", "[::ffff:7f00:1]"):
            attempt("is led to this machine", lambda: tunnels(f"{host}:{PORT}"))
        for path in (HOME / "host" / "bell", HOME / "bell", "/run/dbus/system_bus_socket"):
            attempt("speaks to a socket", lambda: speaks_to(path))
        """,
        "nothing",
    ),
    Creature(
        "forks without end",
        """
        while True:
            try:
                os.fork()
            except OSError:
                time.sleep(0.05)
        """,
        "limits", "too many processes", is_saved=None,
    ),
    Creature(
        "writes five gigabytes",
        """
        note()
        block = bytes(1024 * 1024)
        for number in range(5):
            with open(f"big-{number}", "wb", buffering=0) as file:
                try:
                    for _ in range(1024):
                        file.write(block)
                except OSError as error:
                    print(error, flush=True)
        time.sleep(600)
        """,
        "limits", "too much of the disk", is_saved=None,
    ),
    Creature(
        "makes 200,000 files",
        """
        note()
        for folder in range(200):
            os.mkdir(f"many-{folder}")
            for number in range(1000):
                os.mknod(f"many-{folder}/{number}")
            print(".", end="", flush=True)
        time.sleep(600)
        """,
        "limits", "too many files", is_saved=None,
    ),
    Creature(
        "plants bad refs",
        """
        commit(f"{CONTEXT['task']}.txt")
        sha = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        names = ["refs/heads/../../../x", "refs/heads/--upload-pack=touch", "refs/tags/.lock", "HEAD",
                 "refs/heads/a..b", "refs/replace/" + sha, "refs/steroids/target/main"]
        names += [f"refs/heads/many/{number:05}" for number in range(20_000)]
        pathlib.Path(".git/packed-refs").write_text("".join(f"{sha} {name}\\n" for name in sorted(names)))
        os.symlink(HOME / "secret-key", ".git/refs/heads/secret")
        os.symlink("../" * 9 + "etc/passwd", ".git/refs/heads/passwd")
        os.symlink(".", ".git/refs/heads/circle")
        pathlib.Path(".git/refs/heads/long").write_text(sha * 100_000)
        pathlib.Path(".git/HEAD").write_text("ref: refs/heads/../../../../../secret-key\\n")
        post("submit", {"sha": sha, "response": "Done."})
        """,
        "handed_in",
    ),
    Creature(
        "leaves pipes in its clone",
        """
        commit("half.txt")
        for name in (".git/config", ".git/packed-refs", ".git/index", ".git/objects/info/alternates",
                     ".git/shallow", ".gitignore", ".gitattributes", "half.txt", "pipe", ".git/info/exclude"):
            pathlib.Path(name).unlink(missing_ok=True)
            os.mkfifo(name)
        """,
        "nothing", is_saved=None,
    ),
    Creature(
        "hands in out of pipes",
        """
        commit(f"{CONTEXT['task']}.txt")
        sha = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        for name in (".git/HEAD", ".git/config"):
            pathlib.Path(name).unlink()
            os.mkfifo(name)
        post("submit", {"sha": sha, "response": "Done."})
        """,
        "handed_in", "cannot be taken",
    ),
    Creature(
        "edits its context",
        """
        attempt("writes its context", lambda: (RUN / "context.json").write_text("{}"))
        for edit in ({"task": "small-1"}, {"role": "reviewer"}, {"run": 1}, {"token": "stx_x"}):
            own = pathlib.Path("edited.json")
            own.write_text(json.dumps(CONTEXT | edit))
            words = ["steroids", "tasks", "approve", "--notes", "Fine."]
            environment = os.environ | {"STEROIDS_CONTEXT": str(own.resolve())}
            done = subprocess.run(words, env=environment, timeout=60)
            attempt("approves", lambda: done.returncode == 0)
        """,
        "nothing", is_saved=None,
    ),
    Creature(
        "works beside them",
        """
        for _ in range(200):
            subprocess.run(["git", "status", "--short"], check=True)
            print("Nothing changed so far.", flush=True)
            time.sleep(0.04)
        commit(f"{CONTEXT['task']}.txt")
        sys.exit(hand_in())
        """,
        "handed_in",
    ),
]  # fmt: skip

# What becomes of those who turn against their keeper where its files are not theirs, or not to be seen.
NOT_THEIRS = ("crash", "ended with 1")
BY_NAME = {
    "kills its keeper": ("crash", "ended with 137"),  # its own first process
    "stops its keeper": ("silent", "silent"),
    "forges its own end": NOT_THEIRS,
    "hides its keeper": NOT_THEIRS,
    "takes its lease away": ("wall", "wall"),
    "stops itself": ("silent", "silent"),
    "empties its context": NOT_THEIRS,
    "puts pipes in the place of files": NOT_THEIRS,
    "removes its run's folder": ("silent", "silent"),
}
ENCLOSED_KEEPERS = [
    replace(each, outcome=BY_NAME[each.name][0], reason=BY_NAME[each.name][1]) for each in KEEPERS
]
