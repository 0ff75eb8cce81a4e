"""Core: ecosystems whose own tool builds and tests, so that little needs to be known about them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from posixpath import dirname, normpath
from typing import Any

from agents.recipes.recipe import Candidate, Rank, candidate
from agents.recipes.tree import Tree, table, then, words
from tasks.text.regex import regex


def _rank(index: int) -> Rank:
    """Return the rank of a way to test, given how many likelier ways there are."""
    return Rank.WIDER if index else Rank.DIRECT


# --- Rust and Go ------------------------------------------------------------------------------------------


def rust(tree: Tree) -> Iterator[Candidate]:
    """Propose Cargo, first with the lock file if there is one."""
    if "Cargo.toml" not in tree:
        return
    manifest = tree.toml("Cargo.toml")
    flags = " --workspace" if "workspace" in manifest else ""
    config = tree.text(".cargo/config.toml") + tree.text(".cargo/config")
    vendored = "vendored-sources" in config
    tested = bool(tree.matching(r"(.*/)?tests/.*\.rs", own=True)) or any(
        "#[test]" in tree.text(path) or "```" in tree.text(path)
        for path in tree.matching(r"(.*/)?src/.*\.rs", own=True)[:40]
    )
    for index, lock in enumerate([" --locked", ""] if "Cargo.lock" in tree else [""]):
        net = " --offline" if vendored else ""
        fetch = "" if vendored else f"cargo fetch{lock}"
        test = f"cargo test{flags}{lock}{net}" if tested else ""
        source = f"Cargo.toml{', Cargo.lock' if lock else ''}"
        yield candidate("rust", fetch, f"cargo build{flags}{lock}{net}", test, source, _rank(index))


def go(tree: Tree) -> Iterator[Candidate]:
    """Propose modules, with what they vendor, or packages of the old kind if there is no module file."""
    files = tree.matching(r"(.*/)?[^/]+\.go", own=True)
    inner = tuple(f"{dirname(path)}/" for path in tree.matching(r".+/go\.mod", own=True))
    tests = [path for path in files if path.endswith("_test.go")]
    own = [path for path in tests if not path.startswith(inner)]
    is_tested = bool(own if "go.mod" in tree else tests)
    # A workspace names its modules, and Go refuses to work in others below it.
    used = {normpath(path) for path in USED.findall(tree.above("go.work"))}
    if not files or (used and normpath(tree.folder or ".") not in used):
        return  # a site of Hugo names its themes in a go.mod, too
    if "go.mod" in tree or "go.work" in tree:
        for one in _go_modules(tree, is_tested=is_tested):
            yield replace(one, is_apart=len(tests) > len(own))
    elif any("/" not in path for path in files):
        yield from _go_packages(tree, files, is_tested=is_tested)


USED = regex(r"(?m)^[ \t]*(?:use[ \t]+)?\"?(\.[\w./-]{0,200})\"?[ \t]*(?://.*)?$")


def _go_modules(tree: Tree, *, is_tested: bool) -> Iterator[Candidate]:
    build, test = "go build ./...", "go test ./..." if is_tested else ""
    needs = re.search(r"(?m)^\s*require\b", tree.text("go.mod")) and not tree.is_folder("vendor")
    download = "go mod download" if needs else ""
    yield candidate("go", download, build, test, "go.mod")
    if is_tested and tree.is_folder("vendor"):
        # vendor/modules.txt may be older than the module file.
        build_anew, test_anew = "go build -mod=mod ./...", "go test -mod=mod ./..."
        yield candidate("go", "go mod download", build_anew, test_anew, "go.mod, not vendor/", Rank.WIDER)
    if is_tested:  # code that a newer `go vet` than its own finds fault with does not even build its tests
        without = "go test -vet=off ./..."
        yield candidate("go", download, build, without, "go.mod, without go vet", Rank.WIDER)


def _go_packages(tree: Tree, files: list[str], *, is_tested: bool) -> Iterator[Candidate]:
    build, test = "go build ./...", "go test ./..." if is_tested else ""
    if path := _import_path(tree, files):
        yield candidate("go", f"go mod init {path} && go mod tidy", build, test, f"import path {path}")
    old, source = "GO111MODULE=off ", "Go files without go.mod"
    yield candidate("go", "", f"{old}{build}", test and f"{old}{test}", source, Rank.GUESS)


# Where a repository from before Go modules says under which path it is imported.
IMPORT_PATHS = (
    (".travis.yml", regex(r"(?m)^go_import_path:\s*[\"']?(\w[\w./-]{2,199})[\"']?\s*$")),
    ("debian/control", regex(r"(?m)^XS-Go-Import-Path:\s*(\w[\w./-]{2,199})")),
)
IMPORT_COMMENT = regex(r'(?m)^package \w+ *// *import "(\w[\w./-]{2,199})"')


def _import_path(tree: Tree, files: list[str]) -> str:
    """Return the path by which the packages at the top import each other; empty if nothing says so."""
    for name, pattern in IMPORT_PATHS:
        if found := pattern.search(tree.text(name)):
            return found[1]
    for path in [path for path in files if "/" not in path][:20]:
        if found := IMPORT_COMMENT.search(tree.text(path)):
            return found[1]
    return ""


# --- Java and its relatives -------------------------------------------------------------------------------


JVM_FILE = r".*\.(java|kt|scala|groovy|clj)"


def jvm(tree: Tree) -> Iterator[Candidate]:
    """Propose Maven, Gradle and Ant, with their wrappers if these are complete."""
    is_tested = bool(tree.matching(rf"(.*/)?(src/test|tests?)/{JVM_FILE}"))
    # Code of Kotlin for several platforms has a folder of tests, and a task, for each platform.
    several = not is_tested and bool(tree.matching(rf"(.*/)?src/(common|jvm)Test/{JVM_FILE}"))
    if "pom.xml" in tree:
        calls = {"sh ./mvnw --batch-mode": "pom.xml, mvnw"} if "mvnw" in tree else {}
        calls["mvn --batch-mode"] = "pom.xml"
        yield from _wrapped(calls, "-DskipTests test-compile", "test", is_tested=is_tested)
    if gradle := tree.first("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"):
        is_whole = "gradlew" in tree and "gradle/wrapper/gradle-wrapper.jar" in tree
        calls = {"sh ./gradlew --no-daemon": f"{gradle}, gradlew"} if is_whole else {}
        calls["gradle --no-daemon"] = gradle
        task = "jvmTest" if several else "test"
        yield from _wrapped(calls, "assemble", task, is_tested=is_tested or several)
    if "build.xml" in tree:
        targets = re.findall(r"<target\b[^>]{0,200}\bname=\"([\w.-]+)\"", tree.text("build.xml"))
        target = next((name for name in ("test", "tests", "check", "junit") if name in targets), "")
        yield candidate("jvm", "", "ant", words("ant", target) if target else "", "build.xml")


def _wrapped(calls: dict[str, str], build: str, test: str, *, is_tested: bool) -> Iterator[Candidate]:
    """Propose the wrapper's call before the host's own program; `calls` maps each call to its source."""
    for index, (call, said) in enumerate(calls.items()):
        tested = f"{call} {test}" if is_tested else ""
        yield candidate("jvm", "", f"{call} {build}", tested, said, _rank(index))


# --- Ruby, PHP, Perl --------------------------------------------------------------------------------------

# The bundle is kept in the checkout, so that nothing is written to the system's gems.
BUNDLE = "BUNDLE_PATH=.bundle/gems bundle"


def ruby(tree: Tree) -> Iterator[Candidate]:
    """Propose Bundler first, then the runners themselves, for gems that are installed on the host."""
    specifications = tree.matching(r"[^/]+\.gemspec")
    if not (specifications or tree.first("Gemfile", "Rakefile")):
        return
    ways = _ruby_ways(tree)
    compiled = tree.matching(r"ext/.*extconf\.rb")
    build = "rake compile" if compiled and "compile" in tree.text("Rakefile").lower() else ""
    if "Gemfile" in tree:
        for index, (way, said) in enumerate(ways[:2]):
            built, tested = (f"{BUNDLE} exec {command}" if command else "" for command in (build, way))
            yield candidate("ruby", f"{BUNDLE} install", built, tested, f"Gemfile, {said}", _rank(index))
    for way, said in ways:
        yield candidate("ruby", "", build, way, f"{said}, without bundler", _rank("Gemfile" in tree))
    if not ways and specifications:
        yield candidate("ruby", "", words("gem", "build", specifications[0]), "", specifications[0])


def _ruby_ways(tree: Tree) -> list[tuple[str, str]]:
    """Return how the tests may be run, each with its source: rake's tasks, rspec, plain files."""
    rules = {
        "test": r"TestTask\.new|task[\s(]+[:\"']?test\b",
        "spec": r"RakeTask\.new|task[\s(]+[:\"']?spec\b",
    }
    tasks = [name for name, rule in rules.items() if re.search(rule, tree.text("Rakefile"))]
    tests = tree.matching(r"tests?/(.*/)?(test_[^/]+|[^/]+_test|ts_[^/]+|tc_[^/]+)\.rb")
    ways: list[tuple[str, str]] = []
    if tests and "test" in tasks:
        ways.append(("rake test", "Rakefile, test"))
    # A file of settings says by itself where else the tests are, such as in each of several gems.
    if tree.matching(r"(.*/)?spec/.*_spec\.rb" if ".rspec" in tree else r"spec/.*_spec\.rb", own=True):
        ways.append(("rspec", "spec/"))
    if tests:
        folder = tests[0].split("/")[0]
        pattern = f"./{folder}/**/{{test_*,*_test,ts_*,tc_*}}.rb"
        load = f"Dir.glob('{pattern}').sort.each {{ |file| require file }}"
        ways.append((words("ruby", "-Ilib", f"-I{folder}", "-I.", "-e", load), f"{folder}/"))
    if not ways and tasks:
        ways.append((f"rake {tasks[0]}", f"Rakefile, {tasks[0]}"))
    return ways


FEW = 10


def _tests_something(text: str) -> bool:
    abstract = re.search(r"(?m)^abstract class\b", text)
    return (
        not abstract
        and re.search(r"(?i)function\s+test|@test\b|#\[Test\b|--TEST--|\bit\(|\btest\(", text) is not None
    )


PHP_RUNNERS = {
    "phpunit/phpunit": "vendor/bin/phpunit",
    "pestphp/pest": "vendor/bin/pest",
    "symfony/phpunit-bridge": "vendor/bin/simple-phpunit",
    "nette/tester": "vendor/bin/tester tests",
}


PHPUNIT_FILES = ("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
# The check for projects without tests.
PHP_SYNTAX = "find . -name '*.php' -not -path './vendor/*' -print0 | xargs -0 -n1 php -l"


def php(tree: Tree) -> Iterator[Candidate]:
    """Propose Composer's packages with their runner, and the host's PHPUnit in case they cannot be had."""
    if "composer.json" not in tree and not tree.first(*PHPUNIT_FILES):
        return
    tests = tree.matching(r"(.*/)?[^/]*Test\.php|(.*/)?[Tt]ests?/.*\.phpt?", own=True)
    if len(tests) <= FEW:  # which may all be there for others to build theirs on
        tests = [path for path in tests if _tests_something(tree.text(path))]
    if not tests:
        yield candidate("php", "", PHP_SYNTAX, "", "PHP files, no tests found")
        return
    composer = tree.json("composer.json")
    needed = {**table(composer.get("require")), **table(composer.get("require-dev"))}
    runner = next((command for package, command in PHP_RUNNERS.items() if package in needed), "")
    if "composer.json" in tree:
        yield from _composer(table(composer.get("scripts")), runner)
    if runner in ("", "vendor/bin/phpunit", "vendor/bin/simple-phpunit"):
        yield _phpunit(tree, tests)


def _composer(scripts: dict[str, Any], runner: str) -> Iterator[Candidate]:
    """Propose what Composer's packages allow: their runner, and a script of the project's own."""
    install = "composer install --no-interaction --no-progress"
    if runner:
        yield candidate("php", install, "", runner, f"composer.json, {runner}")
    if name := next((name for name in ("test", "tests", "phpunit", "unit") if name in scripts), ""):
        source = f"composer.json, script {name}"
        yield candidate("php", install, "", f"composer {name}", source, _rank(bool(runner)))


def _phpunit(tree: Tree, tests: list[str]) -> Candidate:
    configured = tree.first(*PHPUNIT_FILES)
    arguments = [] if configured else [tests[0].split("/")[0]]
    dump = ""
    if "composer.json" in tree:
        # Composer can write its map of classes even if it cannot fetch anything.
        dump = "composer dump-autoload --dev"
        if "bootstrap=" not in tree.text(configured):
            arguments[:0] = ["--bootstrap", "vendor/autoload.php"]
    return candidate("php", dump, "", words("phpunit", *arguments), "phpunit of the host", Rank.WIDER)


def perl(tree: Tree) -> Iterator[Candidate]:
    """Propose CPAN's build scripts, which do not need CPAN if the host has the modules."""
    tested = bool(tree.matching(r"(x?t/.*|test)\.(t|pl)"))
    quiet = "PERL_MM_USE_DEFAULT=1 PERL_USE_UNSAFE_INC=1"
    made: list[tuple[str, str, str]] = []
    if "Build.PL" in tree:
        made.append((f"{quiet} perl Build.PL && ./Build", "./Build test", "Build.PL"))
    if "Makefile.PL" in tree:
        made.append((f"{quiet} perl Makefile.PL && make", f"{quiet} make test", "Makefile.PL"))
    if not made and tested and tree.is_folder("lib"):
        made.append(("", "prove -lr t", "t/"))
    for index, (build, test, said) in enumerate(made):
        yield candidate("perl", "", build, test if tested else "", said, _rank(index))
    if made and tested:
        build, test, said = made[0]
        install = "cpanm --notest --local-lib-contained .local --installdeps ."
        include = 'PERL5LIB="$PWD/.local/lib/perl5"'
        build, test = (then(f"export {include}", command) for command in (build, test))
        yield candidate("perl", install, build, test, f"{said}, cpanm", Rank.WIDER)


LANGUAGES: tuple[Callable[[Tree], Iterator[Candidate]], ...] = (rust, go, jvm, ruby, php, perl)
