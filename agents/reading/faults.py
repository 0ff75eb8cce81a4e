"""Core: signs that the environment of a build or test failed, and not the work.

A sign is only a suspicion: whoever acts on it tries the untouched base once more, and only what fails there
too is the environment's fault. Since the work's own output can print any of these words:

1. A reason or an exit code that the host itself saw always counts: a time limit, a program not found (127),
   an end by signal 9.
2. Words count only if no test failed by name: tests that ran and failed explain the end themselves.
3. Words count only near the end, in the last LINES lines that are not empty.
"""

import re

from agents.reading.output import plain, read_output
from agents.reading.results import UNPRINTABLE
from tasks.text.regex import regex

LINES = 60  # tools print more after the cause: advice, a chain of errors from make, the path of a log
THING_MAX = 80
TIME = {"timeout", "wall", "silent"}
KILLED = {137, -9}
NOT_FOUND = 127
OWN_SCRIPT = regex(r"\S/\S{0,200}: (?:not found|No such file or directory|cannot execute)")

PROGRAM = r"[A-Za-z0-9_][\w.+-]{0,60}"  # never a path: a missing script of the repository is the work's fault
IT = rf"[‘'\"`]?(?P<it>{PROGRAM})[’'\"`]?"
LACKS = regex(rf"The program `(?P<it>{PROGRAM})` is missing on this host\.")
NAME = r"[\w@./+:~^*=<>!-]{1,80}"
HOST = r"(?P<it>[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8})"
SHELL = r"(?:/\S{1,100}/)?(?:ba|da|z|k|a|)sh"


def _any(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(regex(pattern, re.MULTILINE) for pattern in patterns)


# A missing program, in the words of shells and env,
BY_SHELL = _any(
    rf"^{SHELL}: (?:line )?(?:\d+: )?(?:{PROGRAM}: )?{IT}: (?:command )?not found$",
    rf"^[^\s:]{{1,200}}: (?:line )?\d+: {IT}: (?:command )?not found$",
    rf"^(?:/\S{{1,100}}/)?env: {IT}: No such file or directory$",
)
# and in those of make, npm and other tools that start programs, too.
MISSING = BY_SHELL + _any(
    rf"^g?make(?:\[\d+\])?: {IT}: (?:No such file or directory|Command not found)$",
    rf"\bspawn {IT} ENOENT\b",
    rf"FileNotFoundError: \[Errno 2\] No such file or directory: {IT}$",
    rf"exec: {IT}: executable file not found in \$PATH",
    rf"^(?:autoreconf: )?Can't exec {IT}: No such file or directory",
    r"^ *No (?P<it>CMAKE_\w{1,20}_COMPILER) could be found",
    rf"compiler set in environment variable \w{{1,20}}:\s{{1,20}}{IT}$",
    rf"The CMAKE_\w{{1,20}}_COMPILER:\s{{1,20}}{IT}\s{{1,20}}is not a full path and was not found",
    rf"ERROR: Unknown compiler\(s\): \[{{1,2}}{IT}",
    rf"failed to find tool {IT}",
    rf"error: command {IT} failed: No such file or directory",
    rf"error: linker {IT} not found",
    rf"ERROR: Program {IT} not found or not executable",
    rf"^(?:[\w./-]{{1,100}}: )?(?:[Ee]rror: )?{IT} (?:is |was )?not (?:found|installed)\W{{1,3}}"
    r"(?:[Pp]lease )?[Ii]nstall (?:(?P=it)|it)\b",
    rf"^configure: error: (?:cannot find |no acceptable ){IT}",
    rf"\bCould not find cmd \({IT}\) in path",
    rf"^Cannot locate the {IT} executable$",
    rf"^error: {IT} is not installed for the toolchain ",
    rf"^error: no such command: `(?P<of_cargo>{PROGRAM})`$",
)

NOT_REACHED = "A package registry or another server could not be reached"
NOT_THERE = "The package registry does not have"
# All other faults: the sentence, and the patterns that mean it. The group `it` is what the sentence names.
_BY_FAULT: dict[str, tuple[str, ...]] = {
    "The disk of this host is full.": (r"No space left on device", r"\bENOSPC\b", r"Disk quota exceeded"),
    "A process ran out of memory, or the host ended it for lack of memory.": (
        r"Cannot allocate memory",
        r"\bENOMEM\b",
        r"JavaScript heap out of memory",
        r"java\.lang\.OutOfMemoryError",
        r"fatal error: runtime: out of memory",
        r"virtual memory exhausted",
        r"Killed signal terminated program",
        r"\(signal: 9, SIGKILL",
        r"^(?:.{0,200}: line \d+: +\d+ )?Killed\b",
        r"^g?make.*\] (?:Killed|Error 137)$",
    ),
    "Rust has no default toolchain on this host.": (
        r"rustup could not choose a version of",
        r"^error: no (?:default|override) toolchain",
        r"^error: toolchain '[^'\n]{1,80}' is not installed",
    ),
    "Rust's toolchain {it} lacks what the repository asks of it, and a run may not add that; where the"
    " repository lies, `rustup toolchain install` does, as the user who runs the work.": (
        r"^info: syncing channel updates for (?P<it>[\w.-]{1,80})\n(?:info: [^\n]{0,200}\n){0,20}"
        r"error: could not create temp file",
    ),
    "This host's Python does not fit what is required ({it}).": (
        r"requires a different Python: (?P<it>[^\n]{1,80})",
        r"(?P<it>[^\s]{1,60}) requires Python [^\n]{1,60} but the running Python is",
        # A version that the registry has is wanted, and pip passed it over.
        r"^ERROR: Ignored the following versions that require a different python version: [^\n]{0,1900}?"
        r"(?<![^\s])(?P<version>[\w.]{1,30}) Requires-Python (?P<it>[^;\n]{1,40})[^\n]{0,1900}\n"
        r"ERROR: Could not find a version that satisfies the requirement [^\s=]{1,100}==(?P=version) ",
        r"current Python version \([^)\n]{1,40}\) is not allowed by the project \((?P<it>[^)\n]{1,40})\)",
    ),
    "This host's Node.js or its package manager does not fit what is required ({it}).": (
        r"^npm (?:ERR!|error) notsup Required: *(?P<it>[^\n]{1,80})",
        r"^npm (?:ERR!|error) (?:code EBADENGINE|engine Unsupported engine)",
        r"The engine \"(?P<it>[^\"\n]{1,60})\" is incompatible",
        r"ERR_PNPM_UNSUPPORTED_ENGINE",
        r"requires at least Node\.js v?(?P<it>[\d.]{1,12})",
        r"No such built-in module: node:\w",
    ),
    "This host's Go is older than is required ({it}).": (
        r"note: module requires Go (?P<it>[\d.]{1,12})",
        r"requires go >= (?P<it>[\d.]{1,12})",
        r"invalid go version '(?P<it>[^'\n]{1,20})'",
        r"go: download (?P<it>go[\d.]{1,12})[^\n]{0,80}: toolchain not available",
    ),
    "This host's Rust is older than is required ({it}).": (
        r"requires rustc (?P<it>[\d.]{1,20})(?: or newer)?",
        r"rustc [\d.]{1,20} is not supported by",
        r"feature `(?P<it>edition20\d\d)` is required",
        r"lock file version `?(?P<it>\d)`? (?:was found, but this version|requires)",
    ),
    "This host's Java does not fit what is required ({it}).": (
        r"invalid target release: (?P<it>[\d.]{1,10})",
        r"release version (?P<it>\d{1,3}) not supported",
        r"UnsupportedClassVersionError",
        r"JAVA_HOME (?:is not set|environment variable is not defined)",
        r"No compiler is provided in this environment",
    ),
    "A tool of this host is older than is required ({it}).": (
        r"^ *(?P<it>CMake [\d.]{1,12}) or higher is required",
        r"Meson version is [\d.]{1,12} but project requires (?P<it>[^\n]{1,20})",
        r"Your Ruby version is [\d.]{1,12}, but your Gemfile specified (?P<it>[^\n]{1,20})",
        r"require[sd]? (?P<it>php [^\s]{1,20}) [^\n]{0,60}your php version",
        r"^Installed [\w.-]{1,60} [^\n]{0,60}does not comply with (?P<it>[^\n]{1,80})",
        r"^\*\* \(Mix\) You're trying to run [^\n]{1,200} supports only (?P<it>Elixir [^\n]{1,60})",
    ),
    "The clojure of this host knows no option {it}: it is Clojure's library, as Debian packages it, and not"
    " its command line, which Clojure's own installer brings.": (
        r"^(?P<it>-[A-Z][\w:/.-]{0,60}) \(No such file or directory\)$",
    ),
    "Docker does not answer here. In the sandbox no run reaches it: leave out of the commands what starts"
    " containers.": (
        r"Cannot connect to the Docker daemon|[Ff]ailed to connect to the [Dd]ocker API",
        r"permission denied while trying to connect to the Docker daemon",
        r"Could not find a valid Docker environment",
        r"DockerException: Error while fetching server API version",
    ),
    "PHP's extension {it} is missing on this host.": (
        r"\brequires? (?:PHP extension )?ext-(?P<it>[\w-]{1,40})",
    ),
    "A library of the system is missing on this host: {it}.": (
        r"Package '?(?P<it>[\w.+-]{1,80})'?, required by '[^'\n]{1,80}', not found",
        r"^(?:.{0,40} )?No package '(?P<it>[\w.+-]{1,80})' found",
        r"Package (?P<it>[\w.+-]{1,80}) was not found in the pkg-config search path",
        # The first of the names that a build asked for.
        r"^ *Trying pkg-config --exists (?P<it>[\w.+-]{1,80})\n(?:[^\n]*\n){0,40}?"
        r"[^\n]*Can not find valid pkg-config",
        r"ERROR: [Dd]ependency \"(?P<it>[\w.+-]{1,80})\" not found",
        r"ERROR: Dependency lookup for (?P<it>[\w.+-]{1,80}) with method",
        r"^ {1,4}Could NOT find (?P<it>[\w.+-]{1,80})",
        r"package configuration file provided by \"(?P<it>[\w.+-]{1,80})\"",
        r"cannot find -l(?P<it>[\w.+-]{1,80})",
        # Only headers in <…>: one in quotes is mostly the repository's own.
        r"fatal error: '?(?P<it>[\w./+-]{1,120})'?(?:: No such file or directory| file not found)\n"
        r"(?: *\d+ \|)? *# *include <",
        r"fatal error: '?(?P<it>(?:Python|ruby|jni|node_api)\.h)'?(?::| file not found)",
    ),
    "The certificate of a server is not trusted on this host ({it}).": (
        rf"unable to access 'https://{HOST}[^'\n]{{0,300}}': (?:SSL|server) certificate",
        rf"request to https://{HOST}\S{{0,300}} failed, reason: [^\n]{{0,60}}certificate",
        rf'"https://{HOST}[^"\n]{{0,400}}": (?:tls: failed to verify certificate|x509: )',
        r"CERTIFICATE_VERIFY_FAILED|(?i:certificate verif\w{0,8} failed)|SSL certificate problem",
        r"unable to get local issuer certificate|UNABLE_TO_(?:GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)",
        r"SELF_SIGNED_CERT|CERT_HAS_EXPIRED|invalid peer certificate|x509: certificate",
        r"PKIX path building failed",
    ),
    f"{NOT_REACHED} ({{it}}).": (
        rf"Could not resolve host: {HOST}",
        rf"\bdial tcp: lookup {HOST}",
        rf"host='{HOST}', port=\d{{1,5}}\): Max retries exceeded",
        rf"\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT) {HOST}",
        rf"Failed to connect to {HOST}",
        rf"unable to access 'https?://{HOST}[^'\n]{{0,300}}': CONNECT tunnel failed",
        rf"https?://{HOST}\S{{0,300}}: tunneling socket could not be established",
        rf"failed to download from `https?://{HOST}",
        rf"UnknownHostException: {HOST}",
        rf'^go: .{{1,300}}: Get "https?://{HOST}[^"\n]{{0,400}}": (?:Bad Gateway|Service Unavailable)$',
        rf"^gyp ERR! stack Error: 50[234] response downloading https?://{HOST}",
        r"Temporary failure in name resolution",
        r"Could not resolve host",
        r"Name or service not known",
        r"\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT)\b",
        r"Connection (?:refused|timed out|reset by peer)",
        r"Network is unreachable",
        r"No route to host",
        r"\bdial tcp\b",
        r"Max retries exceeded with url",
        r"^WARNING: Retrying \(Retry\(total=0\b",  # pip's last try, before it says that it found nothing
        r"NewConnectionError|ReadTimeoutError|ConnectTimeoutError",
        r"^error: failed to (?:download|get `|fetch)",
        r"spurious network error",
        r"Could not transfer artifact",
        r"Cannot access \S+ \(\S+\) in offline mode",
        r"UnknownHostException",
        r"Failed to connect to",
        r"TLS handshake timeout",
        r"module lookup disabled by GOPROXY=off",
        r"Could not fetch specs from",
        r"error sending request for url",
        r"502 Bad Gateway|503 Service Unavailable",
    ),
    f"{NOT_THERE} {{it}}.": (
        r"No matching distribution found for (?P<it>[^\n;]{1,80})",
        rf"Could not find a version that satisfies the requirement (?P<it>{NAME})",
        r"Because (?P<it>[\w.-]{1,60}) was not found in the package registry",
        rf"^npm (?:ERR!|error) 404 +[A-Za-z ]{{0,40}}'(?P<it>{NAME})' (?:is not in|could not be)",
        r"^npm (?:ERR!|error) notarget No matching version found for (?P<it>\S{1,80}?)\.?$",
        r"ERR_PNPM_FETCH_404[^\n]{0,200}/(?P<it>[\w.%@-]{1,80})",
        r"ERR_PNPM_NO_MATCHING_VERSION[^\n]{0,60} for (?P<it>[^\s]{1,80})",
        r"Couldn't find package \"(?P<it>[^\"\n]{1,80})\"",
        r"^error Error: https?://\S{1,300}/(?P<it>[\w.@+-]{1,80}): Request failed \"404",
        r"^error: no matching package (?:named|found)(?: `(?P<it>[\w-]{1,80})` found)?",
        r"Could not find (?:a valid )?gem '(?P<it>[^'\n]{1,80})'",
        r"Could not find artifact (?P<it>[^\s]{1,80})",
        r"Could not find (?:a matching version of )?package (?P<it>[\w./-]{1,80})",
        r"Failed to find any versions for package (?P<it>[\w.:-]{1,80})",
    ),
    "The command does not fit what is in its folder: there is no {it} for it.": (
        r"^ninja: error: loading '(?P<it>[^'\n]{1,80})': No such file or directory",
        r"^g?make: \*\*\* No targets specified and no (?P<it>makefile) found",
        # A target that is needed by another one is a fault of the makefile.
        r"^g?make: \*\*\* No rule to make (?P<it>target [‘'`][^’'\n]{1,80}[’'])\. +Stop",
        r"CMake Error: The source directory .{1,300} does not appear to contain (?P<it>CMakeLists.txt)",
        r"contains? a build file (?P<it>meson\.build)",
        r"^npm (?:ERR!|error) Missing (?P<it>script: \"[^\"\n]{1,80}\")",
        r"^error: could not find `(?P<it>Cargo\.toml)` in ",
        r"^go: (?P<it>go\.mod) file not found",
        r"\bthere is no (?P<it>POM) in this directory",
        r"^error: No (?P<it>justfile) found",
        r"^No (?P<it>Rakefile) found",
        r"^Don't know how to build (?P<it>task '[^'\n]{1,80}')",
        r"^ERROR: file or directory not found: (?P<it>[^\n]{1,80})",
    ),
    "A program is built for another kind of machine than this host.": (
        r"Exec format error",
        r"cannot execute binary file",
    ),
    "The interpreter {it} is missing on this host.": (
        r"(?P<it>/(?:usr|bin|opt)[^\s:]{0,80}): bad interpreter: No such file",
    ),
    "This host has reached a limit of open files or processes.": (
        r"Too many open files",
        r"\bEMFILE\b",
        r"fork: (?:retry: )?Resource temporarily unavailable",
    ),
    "The user of a run may not use {it} on this host.": (
        r"\[Errno 13\] Permission denied: '(?P<it>/(?![^'\n]*/clone/)[^'\n]{1,200})'",
        r"EACCES: permission denied, \w{1,20} '(?P<it>/(?![^'\n]*/clone/)[^'\n]{1,200})'",
    ),
    "A folder that the command writes to is read-only on this host.": (
        r"Read-only file system",
        r"\bEROFS\b",
    ),
}
FAULTS = {says: _any(*patterns) for says, patterns in _BY_FAULT.items()}


# These faults come and go by themselves: no change of the work causes or mends them.
PASSING = (
    "The disk of this host is full.",
    NOT_REACHED,
    "This host has reached a limit of open files or processes.",
)


def is_passing(fault: str) -> bool:
    """Whether a fault named by `environment_fault` may be gone the next time, whatever work is tried."""
    return fault.startswith(PASSING)


def environment_fault(output_tail: str, exit_code: int | None, reason: str = "") -> str:
    """Return a sentence about what failed in the environment; empty if the work itself seems at fault.

    `reason` is why the host ended the run, such as `timeout`; empty if the host did not end it.
    """
    if reason in TIME:
        is_silent = reason == "silent"
        return "It printed nothing for too long." if is_silent else "It took longer than its time limit."
    if reason or exit_code == 0:
        return ""
    if exit_code in KILLED:
        return "It was ended by signal 9, most often because the host ran out of memory."
    end = "\n".join([line for line in plain(output_tail).split("\n") if line.strip()][-LINES:])
    if exit_code == NOT_FOUND:
        return _missing(end) or _said(end) or _unnamed(end)
    tests = read_output(output_tail)
    if tests.failed or tests.failed_count:
        return ""
    return _missing(end) or _said(end)


HERE = r"(?:localhost|127\.0\.0\.1|\[?::1\]?)"
# What programs print that asked a server of their own machine, such as a database, where none is.
SILENT = _any(
    rf"\b(?:ECONNREFUSED|dial tcp) {HERE}:(?P<it>\d{{2,5}})\b",
    rf"{HERE}[\"')]?(?: \({HERE}\))?(?::|, port )(?P<it>\d{{2,5}})\b[^\n]{{0,80}}(?i:refused)",
    rf"{HERE}[\"')]?(?: \({HERE}\))?, port (?P<it>\d{{2,5}}) failed",
)


def silent_port(output: str) -> str:
    """The port of this machine at which what was run found nobody; empty where it says of none."""
    found = _last(SILENT, output)
    return found["it"] if found else ""


def program_not_found(output_tail: str, exit_code: int | None) -> str:
    """Return the program for lack of which a shell ended the command; empty if the shell does not say so.

    Only the last line counts: a script that went on after a missing program ended for another reason.
    """
    last = [line for line in plain(output_tail).split("\n") if line.strip()][-1:]
    found = _last(BY_SHELL, last[0]) if last and exit_code == NOT_FOUND else None
    return _thing(found)


def missing_program(fault: str) -> str:
    """Return the program that the fault says is missing; empty for any other. More may be said after it."""
    found = LACKS.match(fault)
    return found["it"] if found else ""


def without_network(fault: str) -> str:
    """Return the fault of a run that could reach no server, given the fault read from its output.

    No registry can have answered such a run, so "the registry does not have it" becomes "could not be
    reached".
    """
    return f"{NOT_REACHED}." if not fault or fault.startswith(NOT_THERE) else fault


def missing_in(text: str) -> str:
    """Return the program that the text names as missing, however the run ended; empty if it names none."""
    return _thing(_last(MISSING, text))


def _missing(end: str) -> str:
    found = _last(MISSING, end)
    return f"The program `{_thing(found)}` is missing on this host." if found else ""


def _said(end: str) -> str:
    for says, patterns in FAULTS.items():
        found = _last(patterns, end)
        if found:
            thing = _thing(found) or _thing(_last(patterns, end, is_named=True))
            return says.replace("{it}", thing) if thing else says.replace(" ({it})", "").replace("{it}", "it")
    return ""


def _unnamed(end: str) -> str:
    """Return the fault for exit code 127 if no program is named.

    It is empty if the end names a path: that is a script which the repository itself lacks.
    """
    if OWN_SCRIPT.search(end):
        return ""
    return "A program that the commands call is missing on this host (exit code 127)."


def _last(patterns: tuple[re.Pattern[str], ...], end: str, *, is_named: bool = False) -> re.Match[str] | None:
    """Return the match nearest to the end, where the cause is.

    With `is_named`, only a match that names something counts.
    """
    found = [match for pattern in patterns for match in pattern.finditer(end)]
    found = [match for match in found if _thing(match) or not is_named]
    return max(found, key=lambda match: match.start(), default=None)


def _thing(match: re.Match[str] | None) -> str:
    """Return what a match names, short and on one line; empty if it names nothing."""
    if match is None:
        return ""
    groups = match.groupdict()
    named = f"cargo-{groups['of_cargo']}" if groups.get("of_cargo") else groups.get("it") or ""
    return UNPRINTABLE.sub(" ", named).strip(" .`")[:THING_MAX]
