"""Core: ecosystems that one row describes: a file that shows them, and the commands of their tool."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agents.recipes.recipe import Candidate, candidate
from agents.recipes.tree import Tree


@dataclass(frozen=True, slots=True)
class Ecosystem:
    """An ecosystem; `manifest` and `tests` are regular expressions for whole paths.

    If `tests` is empty, no file tells whether there are tests, and the tool is asked to run them. `holds` is
    a regular expression for what the text of the manifest must hold. `source` says to people where the
    commands come from, if that is not the manifest's name.
    """

    kind: str
    manifest: str
    prepare: str
    build: str
    test: str
    tests: str = ""
    holds: str = ""
    source: str = ""


SHARDS = r"^(?:development_)?dependencies:"  # what Crystal's own program, without shards, cannot bring
FLUTTER = r"\bsdk:\s*flutter\b"
DEPS_TEST = r"\A(?>[\s\S]*?:test\s)"  # up to the first alias of that name, and no other
ROWS = (
    Ecosystem(
        "elixir", r"mix\.exs", "mix local.hex --force && mix deps.get", "mix compile", "mix test",
        r"(.*/)?test/.*\.exs",
    ),
    Ecosystem("erlang", r"rebar\.config", "rebar3 get-deps", "rebar3 compile", "rebar3 eunit"),
    Ecosystem("ocaml", r"dune-project", "", "dune build", "dune runtest", r"(.*/)?tests?/.*\.mli?"),
    Ecosystem(
        "haskell", r"stack\.yaml", "stack setup", "stack build --test --no-run-tests", "stack test",
        r"(.*/)?tests?/.*\.l?hs",
    ),
    Ecosystem(
        "haskell", r"[^/]+\.cabal|cabal\.project", "cabal update", "cabal build --enable-tests all",
        "cabal test all", r"(.*/)?tests?/.*\.l?hs", source="cabal",
    ),
    Ecosystem(
        "swift", r"Package\.swift", "swift package resolve", "swift build", "swift test", r"Tests/.*\.swift",
    ),
    Ecosystem(
        "dotnet", r"[^/]+\.(sln|slnx|csproj|fsproj)", "dotnet restore", "dotnet build --no-restore",
        "dotnet test --no-build", r"(.*/)?[^/]*[Tt]ests?[^/]*\.(cs|fs|vb)(proj)?", source="the .NET project",
    ),
    Ecosystem("zig", r"build\.zig", "", "zig build", "zig build test"),
    Ecosystem(
        "julia", r"Project\.toml", "julia --project=. -e 'using Pkg; Pkg.instantiate()'", "",
        "julia --project=. -e 'using Pkg; Pkg.test()'", r"test/runtests\.jl",
    ),
    Ecosystem(
        "dart", r"pubspec\.yaml", "dart pub get", "", "dart test", r"test/.*_test\.dart",
        holds=rf"\A(?![\s\S]*{FLUTTER})",
    ),
    Ecosystem(
        "dart", r"pubspec\.yaml", "flutter pub get", "", "flutter test", r"test/.*_test\.dart", holds=FLUTTER,
    ),
    Ecosystem(
        "jvm", r"project\.clj", "lein deps", "lein compile", "lein test", r"(src/)?test/.*\.clj[cs]?",
    ),
    Ecosystem(
        "jvm", r"deps\.edn", "clojure -P -X:test", "", "clojure -X:test", r"(src/)?test/.*\.clj[cs]?",
        holds=rf"{DEPS_TEST}[\s\S]*:exec-fn\b",
    ),
    Ecosystem(
        "jvm", r"deps\.edn", "clojure -P -M:test", "", "clojure -M:test", r"(src/)?test/.*\.clj[cs]?",
        holds=rf"{DEPS_TEST}(?![\s\S]*:exec-fn\b)[\s\S]*:main-opts\b",
    ),
    Ecosystem("scala", r"build\.sbt", "sbt update", "sbt compile", "sbt test", r"(.*/)?src/test/.*\.scala"),
    Ecosystem(
        "scala", r"mill", "", "sh ./mill __.compile", "sh ./mill __.test", r"(.*/)?test/.*\.(scala|java)",
        holds=r"MILL_VERSION",
    ),
    Ecosystem(
        "scala", r"build\.(mill|sc)", "", "mill __.compile", "mill __.test", r"(.*/)?test/.*\.(scala|java)",
        source="the build of Mill",
    ),
    Ecosystem(
        "crystal", r"shard\.yml", "shards install", "", "crystal spec", r"spec/.*\.cr",
        holds=rf"(?m){SHARDS}",
    ),
    Ecosystem(
        "crystal", r"shard\.yml", "", "", "crystal spec", r"spec/.*\.cr",
        holds=rf"(?m)\A(?![\s\S]*{SHARDS})",
    ),
    Ecosystem(
        "nim", r"[^/]+\.nimble", "nimble install --depsOnly -y", "nimble build", "nimble test",
        r"tests/.*\.nim", source="the nimble file",
    ),
    Ecosystem("lua", r"\.busted|spec/.*_spec\.lua", "", "", "busted", r"spec/.*\.lua", source="spec/"),
    Ecosystem("gleam", r"gleam\.toml", "gleam deps download", "gleam build", "gleam test", r"test/.*\.gleam"),
    Ecosystem("solidity", r"foundry\.toml", "", "forge build", "forge test", r"test/.*\.t\.sol"),
    Ecosystem(
        "powershell", r"(.*/)?[^/]+\.Tests\.ps1", "", "",
        "pwsh -NoProfile -NonInteractive -Command 'Invoke-Pester -CI'", source="*.Tests.ps1",
    ),
    Ecosystem("ada", r"alire\.toml", "", "alr build", ""),
    Ecosystem("d", r"dub\.(json|sdl)", "dub upgrade --missing-only", "dub build", "dub test", source="dub"),
    Ecosystem("native", r"fpm\.toml", "", "fpm build", "fpm test", r"test/.*\.[fF]\d*"),
    Ecosystem("node", r"elm\.json", "", "", "npx --yes -p elm -p elm-test elm-test", r"tests/.*\.elm"),
    Ecosystem("node", r"elm\.json", "", "npx --yes elm make", "", holds=r'"type":\s*"package"'),
    Ecosystem("racket", r"info\.rkt", "raco pkg install --auto --batch --no-docs", "", "raco test ."),
    # Its own tests would create what they describe.
    Ecosystem(
        "terraform", r"[^/]+\.tf", "terraform init -backend=false -input=false", "terraform validate", "",
        source="*.tf",
    ),
    Ecosystem("nix", r"flake\.nix", "", "nix flake check", ""),
    Ecosystem(
        "bazel", r"MODULE\.bazel|WORKSPACE(\.bazel)?", "", "bazel build //...", "bazel test //...",
        source="bazel",
    ),
    Ecosystem("shell", r"tests/[^/]+\.bats", "", "", "bats --recursive tests", source="tests/*.bats"),
    Ecosystem("shell", r"test/[^/]+\.bats", "", "", "bats --recursive test", source="test/*.bats"),
    Ecosystem(
        "r", r"DESCRIPTION", "", "R CMD build --no-build-vignettes .", "R CMD check --no-manual *.tar.gz",
        r"tests/.*\.R",
    ),
)  # fmt: skip


def rows(tree: Tree) -> Iterator[Candidate]:
    """Yield what could build and test a project of one of these ecosystems."""
    for row in ROWS:
        manifest = tree.matching(row.manifest)
        if not manifest or not re.search(row.holds, tree.text(manifest[0]) if row.holds else ""):
            continue
        test = row.test if not row.tests or tree.matching(row.tests) else ""
        if test or row.build:
            source = row.source or row.manifest.replace("\\", "")
            yield candidate(row.kind, row.prepare, row.build, test, source)
