"""Core: ecosystems that one row describes: a file that shows them, and the commands of their tool."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agents.recipes.recipe import Candidate, Rank, Recipe
from agents.recipes.tree import Tree


@dataclass(frozen=True, slots=True)
class Ecosystem:
    """An ecosystem; `manifest` and `tests` are regular expressions for whole paths.

    If `tests` is empty, no file tells whether there are tests, and the tool is asked to run them. `holds` is
    a regular expression for what the text of the manifest must hold.
    """

    kind: str
    manifest: str
    recipe: Recipe
    tests: str = ""
    holds: str = ""


FLUTTER = r"\bsdk:\s*flutter\b"
ROWS = (
    Ecosystem(
        "elixir",
        r"mix\.exs",
        Recipe("mix local.hex --force && mix deps.get", "mix compile", "mix test", "mix.exs"),
        r"(.*/)?test/.*\.exs",
    ),
    Ecosystem(
        "erlang",
        r"rebar\.config",
        Recipe("rebar3 get-deps", "rebar3 compile", "rebar3 eunit", "rebar.config"),
    ),
    Ecosystem(
        "ocaml",
        r"dune-project",
        Recipe("", "dune build", "dune runtest", "dune-project"),
        r"(.*/)?tests?/.*\.mli?",
    ),
    Ecosystem(
        "haskell",
        r"stack\.yaml",
        Recipe("stack setup", "stack build --test --no-run-tests", "stack test", "stack.yaml"),
        r"(.*/)?tests?/.*\.l?hs",
    ),
    Ecosystem(
        "haskell",
        r"[^/]+\.cabal|cabal\.project",
        Recipe("cabal update", "cabal build --enable-tests all", "cabal test all", "cabal"),
        r"(.*/)?tests?/.*\.l?hs",
    ),
    Ecosystem(
        "swift",
        r"Package\.swift",
        Recipe("swift package resolve", "swift build", "swift test", "Package.swift"),
        r"Tests/.*\.swift",
    ),
    Ecosystem(
        "dotnet",
        r"[^/]+\.(sln|slnx|csproj|fsproj)",
        Recipe("dotnet restore", "dotnet build --no-restore", "dotnet test --no-build", "the .NET project"),
        r"(.*/)?[^/]*[Tt]ests?[^/]*\.(cs|fs|vb)(proj)?",
    ),
    Ecosystem("zig", r"build\.zig", Recipe("", "zig build", "zig build test", "build.zig")),
    Ecosystem(
        "julia",
        r"Project\.toml",
        Recipe(
            "julia --project=. -e 'using Pkg; Pkg.instantiate()'",
            "",
            "julia --project=. -e 'using Pkg; Pkg.test()'",
            "Project.toml",
        ),
        r"test/runtests\.jl",
    ),
    Ecosystem(
        "dart",
        r"pubspec\.yaml",
        Recipe("dart pub get", "", "dart test", "pubspec.yaml"),
        r"test/.*_test\.dart",
        rf"\A(?![\s\S]*{FLUTTER})",
    ),
    Ecosystem(
        "dart",
        r"pubspec\.yaml",
        Recipe("flutter pub get", "", "flutter test", "pubspec.yaml"),
        r"test/.*_test\.dart",
        FLUTTER,
    ),
    Ecosystem(
        "clojure",
        r"project\.clj",
        Recipe("lein deps", "lein compile", "lein test", "project.clj"),
        r"test/.*\.cljc?",
    ),
    Ecosystem(
        "scala",
        r"build\.sbt",
        Recipe("sbt update", "sbt compile", "sbt test", "build.sbt"),
        r"(.*/)?src/test/.*\.scala",
    ),
    Ecosystem(
        "crystal", r"shard\.yml", Recipe("shards install", "", "crystal spec", "shard.yml"), r"spec/.*\.cr"
    ),
    Ecosystem(
        "nim",
        r"[^/]+\.nimble",
        Recipe("nimble install --depsOnly -y", "nimble build", "nimble test", "the nimble file"),
        r"tests/.*\.nim",
    ),
    Ecosystem("lua", r"\.busted|spec/.*_spec\.lua", Recipe("", "", "busted", "spec/"), r"spec/.*\.lua"),
    Ecosystem(
        "gleam",
        r"gleam\.toml",
        Recipe("gleam deps download", "gleam build", "gleam test", "gleam.toml"),
        r"test/.*\.gleam",
    ),
    Ecosystem(
        "solidity",
        r"foundry\.toml",
        Recipe("", "forge build", "forge test", "foundry.toml"),
        r"test/.*\.t\.sol",
    ),
    Ecosystem(
        "powershell",
        r"(.*/)?[^/]+\.Tests\.ps1",
        Recipe("", "", "pwsh -NoProfile -NonInteractive -Command 'Invoke-Pester -CI'", "*.Tests.ps1"),
    ),
    Ecosystem("ada", r"alire\.toml", Recipe("", "alr build", "", "alire.toml")),
    # Its own tests would create what they describe.
    Ecosystem(
        "terraform",
        r"[^/]+\.tf",
        Recipe("terraform init -backend=false -input=false", "terraform validate", "", "*.tf"),
    ),
    Ecosystem("nix", r"flake\.nix", Recipe("", "nix flake check", "", "flake.nix")),
    Ecosystem(
        "bazel",
        r"MODULE\.bazel|WORKSPACE(\.bazel)?",
        Recipe("", "bazel build //...", "bazel test //...", "bazel"),
    ),
    Ecosystem("shell", r"tests/[^/]+\.bats", Recipe("", "", "bats --recursive tests", "tests/*.bats")),
    Ecosystem("shell", r"test/[^/]+\.bats", Recipe("", "", "bats --recursive test", "test/*.bats")),
    Ecosystem(
        "r",
        r"DESCRIPTION",
        Recipe("", "R CMD build --no-build-vignettes .", "R CMD check --no-manual *.tar.gz", "DESCRIPTION"),
        r"tests/.*\.R",
    ),
)


def rows(tree: Tree) -> Iterator[Candidate]:
    """Yield what could build and test a project of one of these ecosystems."""
    for row in ROWS:
        manifest = tree.matching(row.manifest)
        if not manifest or not re.search(row.holds, tree.text(manifest[0]) if row.holds else ""):
            continue
        if row.recipe.test and (not row.tests or tree.matching(row.tests)):
            yield Candidate(Rank.DIRECT, row.kind, row.recipe)
        elif row.recipe.build:
            yield Candidate(Rank.BUILD, row.kind, replace(row.recipe, test=""))
