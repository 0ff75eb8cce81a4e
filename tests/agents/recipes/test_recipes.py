"""Which commands are proposed for a repository, and what a hostile one cannot do with them."""
# ruff: noqa: E501 (a row of a table stays in one line)

import json
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.recipes import beside
from agents.recipes.candidates import LONGEST, MOST, candidates
from agents.recipes.python import THIS_PYTHON
from agents.recipes.recipe import Recipe, needs_pytest, needs_python
from agents.recipes.toolchains import missing, programs
from agents.recipes.tree import Tree, words


class Files:
    """A repository that is a table of texts."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    @property
    def names(self) -> Sequence[str]:
        return list(self.texts)

    def read(self, path: str) -> str | None:
        return self.texts.get(path)


def of(texts: dict[str, str]) -> list[Recipe]:
    return candidates(Files(texts))


def first(texts: dict[str, str]) -> tuple[str, str, str]:
    found = of(texts)
    assert found, texts
    return found[0].commands


PROJECT = '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "thing"\n'
A_TEST = {"tests/test_thing.py": "def test_it():\n    assert True\n"}
NEWER = "pip install --upgrade 'pip>=25.1' && "
PYTEST = "python -m pytest"


def test_python_installs_what_the_tests_are_said_to_need() -> None:
    table = [
        # what lies there beside one test, what is installed first
        ({"pyproject.toml": PROJECT}, "pip install -e ."),
        ({"pyproject.toml": PROJECT + '[project.optional-dependencies]\ndocs = ["x"]\ntests = ["y"]\ndev = ["z"]'},
         "pip install -e '.[tests]'"),
        ({"pyproject.toml": PROJECT + '[dependency-groups]\nlint = ["ruff"]\ntests = ["y"]'},
         f"{NEWER}pip install -e . --group tests"),
        # No name says tests, but one of them holds what runs them.
        ({"pyproject.toml": PROJECT + '[dependency-groups]\nmain = ["z"]\nwork = [{include-group = "b"}]\nb = ["pytest"]'},
         f"{NEWER}pip install -e . --group work"),
        ({"pyproject.toml": PROJECT, "requirements/tests.txt": "pytest\n", "requirements/docs.txt": "sphinx\n"},
         "pip install -e . -r requirements/tests.txt"),
        ({"pyproject.toml": PROJECT, "requirements.txt": "-e .[all]\npytest\n"},
         "pip install -e . -r requirements.txt"),
        ({"requirements.txt": "flask\n"}, "pip install -r requirements.txt"),
        # What pip cannot install as a package brings nothing along that its code needs.
        ({"requirements.txt": "flask\n", "requirements-dev.txt": "mypy\n"},
         "pip install -r requirements-dev.txt -r requirements.txt"),
        ({"requirements.txt": "flask\n", "requirements-dev.txt": "-r requirements.txt\nmypy\n"},
         "pip install -r requirements-dev.txt"),
        ({"setup.cfg": "[options.extras_require]\ntest =\n    y\n", "setup.py": "import setuptools"},
         "pip install -e '.[test]'"),
        ({"setup.py": "E = {'testing': ['y']}\nsetup(extras_require=E)"}, "pip install -e '.[testing]'"),
        ({"pyproject.toml": '[tool.poetry]\nname = "thing"\n[tool.poetry.group.dev.dependencies]\nresponses = "^0.2"'},
         "pip install -e . responses"),
        ({"pyproject.toml": PROJECT + '[tool.pytest.ini_options]\naddopts = "--cov=thing"'},
         "pip install -e . pytest-cov"),
        ({"tests/test_other.py": "import hypothesis\nimport nobody_knows\n", "setup.py": ""},
         "pip install -e . hypothesis"),
        ({"tests/test_other.py": "def test_a(mocker, fs): ...\ndef fs(): ...\n", "setup.py": ""},
         "pip install -e . pytest-mock"),
        ({"pyproject.toml": '[build-system]\nbuild-backend = "mesonpy"'}, "pip install ."),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 99"}, ""),  # nothing that pip could install
    ]  # fmt: skip
    for texts, prepare in table:
        assert first(texts | A_TEST) == (prepare, "", PYTEST), texts


def test_a_recipe_names_each_file_that_it_was_read_from_once() -> None:
    poetry = '[tool.poetry]\nname = "thing"\n[tool.poetry.group.dev.dependencies]\npytest = "^8"'

    assert of({"pyproject.toml": poetry} | A_TEST)[0].source == "pyproject.toml, poetry: dev, pytest"


def test_files_that_pytest_does_not_find_or_should_not_are_told_to_it() -> None:
    others = {"setup.py": "", "a/__init__.py": "", "check/spec_tests.py": ""}

    aside = A_TEST | {"setup.py": "", "extra/test_hypothesis.py": ""}
    assert first(aside)[2] == f"{PYTEST} tests"
    assert first(aside | {"thing/test_b.py": ""})[2] == PYTEST
    assert first(others)[2] == "python -m pytest check/spec_tests.py"
    assert first(others | {"pytest.ini": "[pytest]\npython_files = *_tests.py"})[2] == PYTEST


def test_a_django_project_whose_pages_name_collected_files_collects_them() -> None:
    settings = {
        "shop/settings.py": "STORAGES = {'staticfiles': 'whitenoise.CompressedManifestStaticFilesStorage'}"
    }
    project = {"requirements.txt": "Django", "manage.py": "", "shop/tests.py": ""}
    collect, test = "python manage.py collectstatic --noinput", "python manage.py test"

    assert first(project) == ("pip install -r requirements.txt", "", test)
    assert first(project | settings) == ("pip install -r requirements.txt", collect, test)


def test_python_has_other_ways_behind_the_first() -> None:
    found = of(
        A_TEST
        | {
            "pyproject.toml": PROJECT
            + '[dependency-groups]\ntest = ["pytest"]\ndev = ["mypy"]\n[tool.hatch.envs.default.scripts]\ntest = "x"',
            "tox.ini": "[testenv]\ndeps = pytest",
            "noxfile.py": "@nox.session(python=['3.9'])\ndef lint(s): ...\n\n@nox.session\ndef tests(s): ...\n",
            "uv.lock": "",
        }
    )

    tests = [recipe.test for recipe in found]
    members = of({**A_TEST, "uv.lock": "", "pyproject.toml": "[tool.uv.workspace]\nmembers = ['a']"})
    assert members[0].commands == ("pip install uv && uv sync --all-packages", "", "uv run --no-sync pytest")
    assert tests[:3] == [PYTEST, PYTEST, PYTEST]
    assert "--group dev" in found[1].prepare
    assert found[2].prepare == "pip install -e ."
    assert {"tox -e py", "nox --force-python python3 -s tests", "uv run --no-sync pytest"} <= set(tests)
    assert all(needs_python(" ".join(recipe.commands)) for recipe in found)


def test_without_tests_a_package_is_installed_and_imported() -> None:
    assert first({"pyproject.toml": PROJECT, "src/thing/__init__.py": "", "setup.py": ""}) == (
        "",
        "pip install .",
        "python -I -c 'import thing'",
    )
    # A green import must not win over tests of which some are red.
    assert all(
        PYTEST in one.test for one in of({"pyproject.toml": PROJECT, "thing/__init__.py": ""} | A_TEST)
    )


NODE_TEST = {"test/a.test.js": ""}


def test_examples_in_the_code_are_tests_where_the_project_runs_them() -> None:
    module = '"""Double.\n\n>>> double(2)\n4\n"""\n'
    main = "import doctest\ndoctest.testmod()\n"
    for extra, test in (
        ({"thing/run.py": main}, f"{PYTEST} --doctest-modules thing/double.py"),
        (
            {"pytest.ini": "[pytest]\naddopts = --doctest-modules\n"},
            f"{PYTEST} --doctest-modules thing/double.py",
        ),
        ({"thing/run.py": "import this\n"}, "python -I -c 'import thing'"),
        (A_TEST | {"thing/run.py": main}, PYTEST),
    ):
        files = {"pyproject.toml": PROJECT, "thing/__init__.py": "", "thing/double.py": module}
        assert first(files | extra)[2] == test, extra


def test_node_takes_the_manager_of_the_lock_file_and_the_scripts_that_there_are() -> None:
    script = '"scripts": {"test": "mocha", "build": "tsc"}'
    table = [
        ({"package.json": f"{{{script}}}"},
         ("npm install --no-audit --no-fund", "npm run build", "npm test")),
        ({"package.json": f"{{{script}}}", "package-lock.json": ""},
         ("npm ci --no-audit --no-fund", "npm run build", "npm test")),
        ({"package.json": f'{{"packageManager": "pnpm@8.1.2+sha1.ab", {script}}}', "pnpm-lock.yaml": ""},
         ("npx --yes pnpm@8.1.2 install --frozen-lockfile", "npx --yes pnpm@8.1.2 run build",
          "npx --yes pnpm@8.1.2 run test")),
        ({"package.json": '{"scripts": {"test": "ava"}}', "pnpm-lock.yaml": "lockfileVersion: '6.0'"},
         ("npx --yes pnpm@8 install --frozen-lockfile", "", "npx --yes pnpm@8 run test")),
        ({"package.json": '{"scripts": {"test": "ava"}}', "yarn.lock": "# yarn lockfile v1"},
         ("npx --yes yarn@1.22.22 install --frozen-lockfile", "", "npx --yes yarn@1.22.22 run test")),
        ({"package.json": '{"scripts": {"test": "jest --watch"}}'},
         ("npm install --no-audit --no-fund", "", "CI=true npm test")),
        ({"package.json": '{"workspaces": ["p/*"]}', "p/a/package.json": '{"scripts": {"test": "ava"}}'},
         ("npm install --no-audit --no-fund", "", "npm test --workspaces --if-present")),
    ]  # fmt: skip
    for texts, commands in table:
        assert first(texts | NODE_TEST) == commands, texts

    for scripts in ('"test": "xo && ava && tsd"', '"test": "ava", "posttest": "npm run lint", "lint": "xo"'):
        found = [one.test for one in of({"package.json": f'{{"scripts": {{{scripts}}}}}'} | NODE_TEST)]
        assert found[:2] == ["npm test", "npx ava"], scripts


def test_the_same_commands_are_tried_once_though_one_of_them_says_less() -> None:
    texts = {
        "package.json": '{"scripts": {"test": "xo && ava"}, "devDependencies": {"ava": "1"}}', "test.js": "",
        ".github/workflows/main.yml": "jobs: {test: {steps: [{run: npm install}, {run: npm test}]}}",
    }  # fmt: skip
    assert [recipe.commands for recipe in of(texts)] == [
        ("npm install --no-audit --no-fund", "", "npm test"),
        ("npm install --no-audit --no-fund", "", "npx ava"),
        (
            "npm install --no-audit --no-fund --no-package-lock --legacy-peer-deps --ignore-scripts",
            "",
            "npm test",
        ),
    ]


def test_node_without_tests_loads_its_entry() -> None:
    none = '"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}'
    assert first({"package.json": f'{{"main": "lib/a", {none}}}', "lib/a.js": ""}) == (
        "",
        "node --check lib/a.js",
        "node -e 'import(\"./lib/a.js\")'",
    )
    # What was published is built already.
    assert not of({"package.json": '{"scripts": {"build": "echo Not implemented."}}', "a.js": ""})
    built = '{"main": "dist/a.js", "scripts": {"build": "tsc"}}'
    assert [one.test for one in of({"package.json": built, "dist/a.js": ""})][:1] == [
        "node -e 'import(\"./dist/a.js\")'"
    ]
    # A published tarball names its runner of tests, but has none of them.
    lost = '{"scripts": {"test": "mocha"}, "devDependencies": {"mocha": "1"}, "dependencies": {"a": "1"}}'
    assert first({"package.json": lost, "index.js": ""})[0].startswith(
        "npm install --no-audit --no-fund --omit=dev"
    )


CMAKE = 'cmake -S . -B build{} && cmake --build build --parallel "$(nproc)"'
CTEST = "ctest --test-dir build --output-on-failure --no-tests=error"


def test_native_projects_are_built_by_what_describes_them() -> None:
    table = [
        ({"Makefile": "all: a\n\ncheck: all\n\t./a\n"}, ("", "make", "make check")),
        ({"Makefile": "all: a\n\ntest-it := 1\n", "a.c": ""}, ("", "make", "")),  # a variable is no target
        ({"Makefile": "a-test: a.c\n\tcc -o $@\n", "a.c": ""}, ("", "make a-test", "./a-test")),
        ({"tests/Makefile": "run_tests: all\n", "a.h": "", "package.json": '{"name": "a"}'},
         ("", "", "make -C tests run_tests")),
        ({"CMakeLists.txt": "option(A_BUILD_TESTS \"x\" OFF)\nenable_testing()"},
         ("", CMAKE.format(" -DA_BUILD_TESTS=ON"), CTEST)),
        ({"CMakeLists.txt": "project(a)", "tests/CMakeLists.txt": "add_test(a b)", "package.json": "{}"},
         ("", CMAKE.format(""), CTEST)),
        ({"CMakeLists.txt": "enable_testing()", "cmake/a.cmake": "option(BUILD_TESTS \"x\" OFF)"},
         ("", CMAKE.format(" -DBUILD_TESTS=ON"), CTEST)),
        ({"CMakeLists.txt": "project(a)"}, ("", CMAKE.format(""), "")),
        # Programs of tests that nothing tells CTest of.
        ({"CMakeLists.txt": "option(A_TESTS \"x\" OFF)", "test/CMakeLists.txt": "ADD_EXECUTABLE(A_TESTS main.cpp)"},
         ("", CMAKE.format(" -DA_TESTS=ON"),
          'red=0; for program in $(find build -type f -executable -iname "*test*" ! -name "*.*"); do "$program"'
          " || red=$?; done; exit $red")),
        ({"meson.build": "project('a', 'c')\ntest('a', exe)"},
         ("", "meson setup build && meson compile -C build", "meson test -C build --print-errorlogs")),
        # A configure of the project's own making; automake serves only what was contributed.
        ({"configure": "", "Makefile.in": "check: test\n", "contrib/Makefile.am": ""},
         ("", "sh ./configure && make -j\"$(nproc)\"", "make check")),
        ({"configure.ac": "", "Makefile.am": "SUBDIRS = src", "autogen.sh": "#!/bin/sh"},
         ("", "NOCONFIGURE=1 sh ./autogen.sh && sh ./configure && make -j\"$(nproc)\"", "")),
        ({"configure.ac": "", "Makefile.am": "TESTS = a", "autogen.sh": "#!/bin/sh"},
         ("", "NOCONFIGURE=1 sh ./autogen.sh && sh ./configure && make -j\"$(nproc)\"", "make check")),
        ({"Cargo.toml": "[workspace]", "Cargo.lock": "", "src/lib.rs": "#[test]\nfn a() {}"},
         ("cargo fetch --locked", "cargo build --workspace --locked", "cargo test --workspace --locked")),
        ({"go.mod": "module a\nrequire b v1", "a_test.go": ""},
         ("go mod download", "go build ./...", "go test ./...")),
        ({"a.go": "package a // import \"example.org/a\"", "a_test.go": "package a"},
         ("go mod init example.org/a && go mod tidy", "go build ./...", "go test ./...")),
        ({"go.mod": "module a\nrequire b v1", "vendor/b/b.go": "", "a_test.go": ""},
         ("", "go build ./...", "go test ./...")),
        ({"pom.xml": "", "mvnw": "", "src/test/java/A.java": ""},
         ("", "sh ./mvnw --batch-mode -DskipTests test-compile", "sh ./mvnw --batch-mode test")),
        ({"build.gradle.kts": "", "a/src/commonTest/kotlin/A.kt": "", "a/src/jvmMain/kotlin/B.kt": ""},
         ("", "gradle --no-daemon assemble", "gradle --no-daemon jvmTest")),
        ({"Gemfile": "", "Rakefile": "Rake::TestTask.new", "test/test_a.rb": ""},
         ("BUNDLE_PATH=.bundle/gems bundle install", "", "BUNDLE_PATH=.bundle/gems bundle exec rake test")),
        ({"composer.json": '{"require-dev": {"phpunit/phpunit": "9"}}', "tests/ATest.php": "function testA"},
         ("composer install --no-interaction --no-progress", "", "vendor/bin/phpunit")),
        ({"Makefile.PL": "", "t/a.t": ""},
         ("", "PERL_MM_USE_DEFAULT=1 PERL_USE_UNSAFE_INC=1 perl Makefile.PL && make",
          "PERL_MM_USE_DEFAULT=1 PERL_USE_UNSAFE_INC=1 make test")),
        # Its settings of rspec say where the tests of its gems are.
        ({"Gemfile": "", ".rspec": "--pattern '*/spec/**_spec.rb'", "a/a.gemspec": "", "a/spec/a_spec.rb": ""},
         ("BUNDLE_PATH=.bundle/gems bundle install", "", "BUNDLE_PATH=.bundle/gems bundle exec rspec")),
        ({"mix.exs": "", "test/a_test.exs": ""},
         ("mix local.hex --force && mix deps.get", "mix compile", "mix test")),
        ({"spec/a_spec.lua": "", "rockspecs/a-1.rockspec": ""}, ("", "", "busted")),
        ({"gleam.toml": "", "test/a_test.gleam": ""}, ("gleam deps download", "gleam build", "gleam test")),
        ({"foundry.toml": "", "src/A.sol": "", "test/A.t.sol": ""}, ("", "forge build", "forge test")),
        ({"src/A.ps1": "", "tst/A.Tests.ps1": "", "lib/a.csproj": "", "lib/a.cs": ""},
         ("", "", "pwsh -NoProfile -NonInteractive -Command 'Invoke-Pester -CI'")),
        ({"main.tf": "", "modules/a/main.tf": ""},
         ("terraform init -backend=false -input=false", "terraform validate", "")),
        ({"flake.nix": "", "a.nix": ""}, ("", "nix flake check", "")),
        ({"alire.toml": "", "src/a.adb": ""}, ("", "alr build", "")),
        ({"dub.sdl": "", "source/a.d": ""}, ("dub upgrade --missing-only", "dub build", "dub test")),
        ({"fpm.toml": "", "test/check.F90": ""}, ("", "fpm build", "fpm test")),
        ({"elm.json": '{"type": "package"}', "src/A.elm": ""}, ("", "npx --yes elm make", "")),
        ({"elm.json": '{"type": "package"}', "src/A.elm": "", "tests/A.elm": ""},
         ("", "", "npx --yes -p elm -p elm-test elm-test")),
        ({"shard.yml": "name: a\ndependencies:\n  b:\n", "spec/a_spec.cr": ""}, ("shards install", "", "crystal spec")),
        ({"shard.yml": "name: a\n", "spec/a_spec.cr": ""}, ("", "", "crystal spec")),
        ({"a/info.rkt": "", "a/a.rkt": ""},
         ("cd a && raco pkg install --auto --batch --no-docs", "", "cd a && raco test .")),
        ({"a/info.rkt": "", "a/a.rkt": "", "b/info.rkt": ""},
         ("raco pkg install --auto --batch --no-docs a/ b/", "",
          "red=0; (cd a && raco test .) || red=$?; (cd b && raco test .) || red=$?; exit $red")),
        ({"mill": "MILL_VERSION=1", "build.mill": "", "a/test/src/A.scala": ""}, ("", "sh ./mill __.compile", "sh ./mill __.test")),
        ({"build.sc": "", "a/test/src/A.scala": ""}, ("", "mill __.compile", "mill __.test")),
        ({"pom.xml": "", "src/test/clojure/a.clj": ""},
         ("", "mvn --batch-mode -DskipTests test-compile", "mvn --batch-mode test")),
        ({"project.clj": "", "src/test/clojure/a.clj": ""}, ("lein deps", "lein compile", "lein test")),
        ({"deps.edn": "{:aliases {:test {:exec-fn a/b}}}", "test/a.cljc": ""},
         ("clojure -P -X:test", "", "clojure -X:test")),
        ({"deps.edn": '{:aliases {:test\n{:main-opts ["-m" "a"]}}}', "test/a.clj": ""},
         ("clojure -P -M:test", "", "clojure -M:test")),
    ]  # fmt: skip
    for texts, commands in table:
        assert first(texts) == commands, texts
    rules = "x:\n\tdh_auto_configure -- -DA=ON \\\n\t\t-DLIB=$(X) '-DB=;id'\n"
    assert " -DA=ON &&" in of({"CMakeLists.txt": "enable_testing()", "debian/rules": rules})[1].build
    assert of({"go.mod": "module a", "a_test.go": ""})[0].tools == ("go",)
    assert of({"CMakeLists.txt": "enable_testing()"})[0].tools == ("cmake", "cc", "ctest")
    assert of({"composer.json": "{}"})[0].tools == ("php",)  # called by xargs
    assert of({"Gemfile": "", "Rakefile": "RakeTask.new", "spec/a_spec.rb": ""})[0].tools == ("bundle",)
    assert of({"build.gradle": "", "gradlew": "", "gradle/wrapper/gradle-wrapper.jar": ""})[0].tools == (
        "java",
    )


def test_the_language_with_most_of_the_code_comes_first_and_a_small_part_does_not_count() -> None:
    python = {"pyproject.toml": PROJECT, **{f"thing/m{n}.py": "" for n in range(9)}} | A_TEST
    site = {"package.json": '{"scripts": {"test": "prettier --check ."}}', "web/a.js": ""}

    assert all("npm" not in one.test for one in of(python | site))
    assert of(python | {"Makefile": "test:\n\tpytest"})[-1].test == "make test"  # a guess, never the first


def test_a_build_of_a_small_part_does_not_stand_for_the_whole() -> None:
    addon = {f"addons/{n}.gd": "" for n in range(7)} | {"A.csproj": "<Project/>", "b/c.cs": ""}
    assert of(addon) == []
    assert first(addon | {"Makefile": "all:\n\tgodot --headless --import\n"}) == ("", "make", "")
    assert first(addon | {f"b/{n}.cs": "" for n in range(3)})[1] == "dotnet build --no-restore"


def test_make_that_only_helps_or_looks_at_style_builds_nothing() -> None:
    for idle in (
        "help: ## This\n\t@awk 1 Makefile\n",
        "cpplint:\n\tcpplint src\n",
        "check-style: lint-py\nlint-py:\n\truff check\n",
    ):
        assert of({"Makefile": idle, "a.c": ""}) == [], idle
        assert first({"Makefile": f"{idle}test:\n\t./t\n", "a.c": ""}) == ("", "", "make test")
        assert first({"Makefile": f"{idle}build:\n\tcc a.c\ntest:\n\t./t\n", "a.c": ""})[1] == "make build"
        assert of({"Makefile": f"{idle}build:\n\tssh a.example ./b\n", "a.c": ""}) == []
    assert first({"Makefile": "all: lint app\nlint:\n\tlint a.c\napp:\n\tcc a.c\n", "a.c": ""})[1] == "make"


def test_several_main_languages_are_tried_together_before_each_alone() -> None:
    python = {"pyproject.toml": PROJECT} | A_TEST
    pages = {
        "package.json": '{"scripts": {"build": "tsc", "test": "vitest run"}}',
        "src/a.test.ts": "",
        "src/b.ts": "",
    }
    both, *rest = of(python | pages)
    npm = "npm install --no-audit --no-fund"

    assert both.commands == (
        f"{npm} && pip install -e .",
        "npm run build",
        # What is red in one of them keeps no other from being run, and the whole is red.
        f"red=0; (npm test) || red=$?; ({PYTEST}) || red=$?; exit $red",
    )
    assert both.source == "package.json, script test; pyproject.toml, pytest"
    assert both.tools == ("npm",)
    assert [one.commands for one in rest[:2]] == [
        (npm, "npm run build", "npm test"),
        ("pip install -e .", "", PYTEST),
    ]
    assert len(of(python | pages | {f"m{n}.py": "" for n in range(9)})[0].source.split("; ")) == 1
    # A build in Python may call the manager of packages by its name, which otherwise only npx knows.
    locked = of(python | pages | {"pnpm-lock.yaml": ""})[0].prepare
    assert locked.startswith(
        'npm --prefix "$VIRTUAL_ENV" install --global pnpm@10 && npx --yes pnpm@10 install '
    )
    guessed = python | {"package.json": '{"devDependencies": {"mocha": "1"}}', "test/a.js": ""}
    assert all("; " not in one.source for one in of(guessed))  # only tests that are declared
    three = python | pages | {"Cargo.toml": "", "src/lib.rs": "#[test]"}
    sources = [one.source for one in candidates(Files(three), lambda tool: "" if tool == "cargo" else tool)]
    assert [source.count("; ") for source in sources[:3]] == [2, 1, 0]
    assert "Cargo.toml" not in sources[1], "what this host can run of it"
    folders = {f"server/{name}": text for name, text in python.items()}
    folders |= {f"web/{name}": text for name, text in pages.items()}
    assert of(folders)[0].commands == (
        f"(cd web && {npm}) && (cd server && pip install -e .)",
        "(cd web && npm run build)",
        f"red=0; (cd web && npm test) || red=$?; (cd server && {PYTEST}) || red=$?; exit $red",
    )


def test_several_packages_of_one_language_below_the_top_are_tried_together_too() -> None:
    modules = {
        f"{name}/{file}": "" for name in ("ansi", "term", "exp/open") for file in ("go.mod", "a_test.go")
    }
    both, *rest = of(modules | {"ansi/b.go": "", "exp/open/b.go": "", "exp/open/c.go": ""})

    assert both.build == (
        "(cd exp/open && go build ./...) && (cd ansi && go build ./...) && (cd term && go build ./...)"
    )
    assert both.test == (
        "red=0; (cd exp/open && go test ./...) || red=$?; (cd ansi && go test ./...) || red=$?;"
        " (cd term && go test ./...) || red=$?; exit $red"
    )
    assert rest[0].test == "cd exp/open && go test ./..."
    # What the top declares of a language holds for all of it; but Go runs no tests of modules within a module.
    nested = {f"{folder}/{name}": "" for folder in ("a", "a/b") for name in ("setup.py", "test_a.py")}
    assert of(nested)[0].test == f"cd a && {PYTEST}"
    crates = {
        f"{folder}{name}": "#[test]" for folder in ("", "term/") for name in ("Cargo.toml", "src/lib.rs")
    }
    assert of(crates)[0].test == "cargo test"
    whole = modules | {
        "go.mod": "module a",
        "a_test.go": "",
        "exp/open/v2/go.mod": "",
        "exp/open/v2/a_test.go": "",
    }
    assert of(whole)[0].test == (
        "red=0; (go test ./...) || red=$?; (cd exp/open && go test ./...) || red=$?; (cd ansi && go test ./...)"
        " || red=$?; (cd term && go test ./...) || red=$?; (cd exp/open/v2 && go test ./...) || red=$?; exit $red"
    )
    # A workspace names its modules, and refuses to work in others.
    for work, test in (
        ("go 1.22\n\nuse (\n\t./ansi // colours\n\t./exp/open\n)\n",
         "red=0; (cd exp/open && go test ./...) || red=$?; (cd ansi && go test ./...) || red=$?; exit $red"),
        ("go 1.22\nuse ./term\nuse .\n", "red=0; (go test ./...) || red=$?; (cd term && go test ./...) || red=$?; exit $red"),
        ("use ./term", "cd term && go test ./..."),
    ):  # fmt: skip
        assert of(whole | {"go.work": work})[0].test == test, work
    # A phone's packages are another program's.
    phone = {"app/pubspec.yaml": "dependencies:\n  flutter:\n    sdk: flutter\n", "app/test/a_test.dart": ""}
    assert of(phone)[0].test == "cd app && flutter test"
    shown = {path.replace("app/", "app_example/"): text for path, text in phone.items()}
    plain = {"lib/pubspec.yaml": "name: lib\n", "lib/test/a_test.dart": "", "lib/lib/a.dart": ""}
    assert of(phone | plain)[0].test.startswith("red=0; (cd lib && dart test) || red=$?; (cd app && flutter")
    assert of(shown | plain)[0].test == "cd lib && dart test"
    many = {f"m{n}/{file}": "" for n in range(90) for file in ("go.mod", "a_test.go")}
    assert all(len(command) <= LONGEST for one in of(many) for command in one.commands)
    held = of(many)[0].test.count("|| red=$?")
    assert held > 20, "as many as a command holds"
    assert of(many)[0].source.endswith(f"m13/go.mod; {held - 6} more, without {90 - held} others")


def test_a_makefile_whose_goal_leaves_the_machine_is_not_called() -> None:
    for makefile in (
        "deploy: site\n\trsync -a site/ example.org:/srv\nsite:\n\thugo\n",
        ".PHONY: all\nall: build publish\nbuild:\n\tcc a.c\npublish:\n\tnpm publish\n",
        "SHELL = bash\ndefault: up\nup:\n\t@cd infra && \\\n\t  terraform apply -auto-approve\n",
        ".DEFAULT_GOAL := push\nall:\n\tcc a.c\npush: all\n\tdocker push a\n",
        "all: ; ssh example.org ./restart\n",
    ):
        assert all(not one.build for one in of({"Makefile": makefile, "a.c": ""})), makefile
        tested = of({"Makefile": f"{makefile}test:\n\t./check\n", "a.c": ""})
        assert [one.commands for one in tested] == [("", "", "make test")], makefile
    script = {"ci/all.sh": "#!/bin/sh\nfor one in */; do\n\tdocker push $one\ndone\n", "a.c": ""}
    tested = of({"Makefile": "build:\n\t@$(CURDIR)/ci/all.sh -j2\ntest:\n\t./ci/all.sh\n", **script})
    assert [one.commands for one in tested] == [("", "", "make test")]
    package = {"package.json": '{"scripts": {"build": "bash ci/all.sh", "test": "node --test"}}', "a.js": ""}
    assert all("build" not in one.build for one in of(package | script))
    lone = "test: build\n\t./check\n\tkubectl apply -f a.yaml\nbuild:\n\tcc a.c\n"
    assert of({"Makefile": lone, "a.c": ""}) == []
    for makefile in ("all: a\ndeploy:\n\tscp a example.org:\n", "all: release\nrelease:\n\tcc -O2 a.c\n"):
        assert of({"Makefile": makefile, "a.c": ""})[0].build == "make", makefile
    scripts = {"build": "webpack && aws s3 sync dist s3://a", "test": "vitest run"}
    package = {"package.json": json.dumps({"scripts": scripts}), "a.js": ""}
    assert all(not one.build for one in of(package))
    scripts = {"build": "webpack", "test": "vitest run && npm run ship", "ship": "netlify deploy --prod"}
    assert all(not one.test for one in of({"package.json": json.dumps({"scripts": scripts}), "a.js": ""}))


def test_a_project_below_the_top_is_found() -> None:
    found = of({"backend/pyproject.toml": PROJECT, "backend/tests/test_a.py": "", "docs/index.md": ""})

    assert found[0].prepare == "cd backend && pip install -e ."
    assert found[0].test == "cd backend && python -m pytest"
    table = [
        ({"server/requirements.txt": "Django", "server/manage.py": "", "server/a/tests.py": ""},
         "cd server && python manage.py test"),
        ({"gem/a.gemspec": "", "gem/spec/a_spec.rb": ""}, "cd gem && rspec"),
        ({"app/pubspec.yaml": "", "app/test/a_test.dart": ""}, "cd app && dart test"),
    ]  # fmt: skip
    for texts, test in table:
        assert of(texts | {"README.md": ""})[0].test == test


def test_a_project_of_documents_has_no_recipe() -> None:
    hugo = {"go.mod": "module a\nrequire example.org/theme v1", "hugo.toml": "", "content/a.md": ""}
    for texts in ({}, {"README.md": "", "docs/a.md": "", "LICENSE": ""}, {"TODO.md": "make test"}, hugo):
        assert of(texts) == []


# --- Continuous integration -------------------------------------------------------------------------------

WORKFLOW = """
on: {push: {branches: [main]}}
jobs:
  windows:
    runs-on: windows-latest
    steps: [{run: pytest -m windows}]
  test:
    runs-on: ubuntu-latest
    env: {DATABASE_URL: "sqlite:///x", API_TOKEN: abc}
    steps:
      - uses: actions/checkout@v4
      - name: Install
        run: |
          sudo apt-get install -y libfoo   # what the system needs is not ours
          python -m pip install -e .[ci] \\
            tox
      - run: echo "${{ secrets.KEY }}" | pip install --extra-index-url=- thing
      - if: matrix.os == 'windows'
        run: pytest -m other
      - if: runner.os != 'Linux'
        run: pytest -m elsewhere
      - name: Run tests
        if: matrix.os != 'windows'
        working-directory: lib
        run: |
          set -e
          python setup.py build_ext
          pytest -x
      - run: twine upload dist/*
"""


def ci(path: str, text: str) -> list[Recipe]:
    """What comes of one file of a service, beside a project that says nothing itself."""
    folders = {f"{name}/a.txt": "" for name in ("lib", "tests", "web", "dart")}
    return [one for one in of({path: text, **folders}) if path in one.source]


def test_what_the_own_files_of_continuous_integration_say_is_proposed() -> None:
    found = ci(".github/workflows/ci.yml", WORKFLOW)
    assert [one.commands for one in found] == [
        (
            "(export DATABASE_URL=sqlite:///x && python -m pip install -e .[ci] tox)",
            "",
            "(cd lib && export DATABASE_URL=sqlite:///x && python setup.py build_ext && pytest -x)",
        )
    ]
    assert found[0].source == ".github/workflows/ci.yml, step Run tests"
    table = [
        (".gitlab-ci.yml", "t: {extends: .b, script: [make check]}\n.b: {before_script: [./configure, make]}",
         ("", "./configure && make", "make check")),
        (".gitlab-ci.yml", "a: !reference [x]\nt: {script: !reference [a, b]}\nu: {script: tox}",
         ("pip install tox", "", "tox -e py")),
        (".gitlab-ci.yml", "t: {script: [pipx run nox -s tests]}", ("pip install nox", "", "nox -s tests")),
        (".gitlab-ci.yml", "t: {script: [./mill -i __.test]}", ("", "", "./mill -i __.test")),
        (".travis.yml", "install: pip install -r r.txt\nscript:\n  - flake8\n  - pytest\n",
        ("pip install -r r.txt", "", "pytest")),
        (".circleci/config.yml", "jobs: {b: {steps: [checkout, {run: npm ci}, {run: {command: npm test}}]}}",
         ("npm ci", "", "npm test")),
        (".circleci/config.yml",
         "jobs: {b: {steps: [{run: npm i}, {run: npm i --global nyc@13}, {run: nyc npm test}]}}",
         ('npm i && npm --prefix "$VIRTUAL_ENV" i --global nyc@13', "", "nyc npm test")),
        ("azure-pipelines.yml", "stages: [{jobs: [{job: a, steps: [{script: cargo test}]}]}]", ("", "",
        "cargo test")),
        (".cirrus.yml", "t_task: {container: {image: x}, build_script: make, test_script: [make test]}",
        ("", "make", "make test")),
    ]  # fmt: skip
    for path, text, commands in table:
        assert [one.commands for one in ci(path, text)] == [commands], text


def test_a_job_whose_machines_are_all_of_another_system_is_left_out() -> None:
    job = "jobs: {t: {runs-on: '${{ matrix.os }}', strategy: {matrix: %s}, steps: [{run: pytest}]}}"
    nested = job.replace("matrix.os", "matrix.on.os")
    table = [
        (job % "{os: [windows-2022, windows-2025]}", 0),
        (job % "{os: [macos-14, windows-2025]}", 0),
        (job % "{include: [{os: windows-2022}, {os: macos-14}]}", 0),
        (nested % "{on: [{os: windows-2022}]}", 0),
        (job % "{os: [windows-2022, ubuntu-24.04]}", 1),
        (job % "{os: [windows-2022], include: [{os: ubuntu-24.04}]}", 1),
        (job % "'${{ fromJSON(needs.a.outputs.b) }}'", 1),
        (job % "{python: ['3.12']}", 1),
        ("""jobs: {t: {steps: [{run: pytest, shell: 'script -q -c "bash {0}"'}]}}""", 1),
        ("jobs: {t: {steps: [{run: pytest, shell: 'alpine.sh {0}'}]}}", 0),
    ]  # fmt: skip
    for text, count in table:
        assert len(ci(".github/workflows/ci.yml", text)) == count, text


def test_the_first_plain_value_of_a_matrix_is_taken_and_versions_stay_unknown() -> None:
    job = "jobs: {t: {strategy: {matrix: %s}, steps: [{run: '%s'}]}}"
    for matrix, run, test in (
        ("{suite: [unit, all]}", "pytest ${{ matrix.suite }}", ["pytest unit"]),
        ("{set: [{dir: a}, {dir: c}]}", "make -C ${{matrix.set.dir}} test", ["make -C a test"]),
        ("{os: [macos-14, ubuntu-24.04]}", "make test OS=${{ matrix.os }}", ["make test OS=ubuntu-24.04"]),
        ("{include: [{os: windows-2025, s: w}, {os: ubuntu-24.04, s: u}]}", "pytest ${{ matrix.s }}",
         ["pytest u"]),
        ("{s: [u, v], include: [{s: v, t: b}, {s: u, t: a}]}", "pytest ${{ matrix.s }} ${{ matrix.t }}",
         ["pytest u a"]),
        ("{python: ['3.9']}", "tox -e ${{ matrix.python }}", []),
        ("{py: [pypy-3.9, '3.9']}", "tox -e ${{ matrix.py }}", []),
        ("{s: ['a; id', '$(id)', [b]]}", "pytest ${{ matrix.s }}", []),
        ("{s: '${{ fromJSON(needs.a.outputs.b) }}'}", "pytest ${{ matrix.s }}", []),
        ("{s: [u]}", "pytest ${{ matrix.t }}", []),
        # What only other combinations set is empty in this one.
        ("{s: [u, win], include: [{s: u, c: gcc}, {s: win, o: -T x}]}", "make test CC=${{ matrix.c }} ${{ matrix.o }}",
         ["make test CC=gcc"]),
    ):  # fmt: skip
        found = ci(".github/workflows/ci.yml", job % (matrix, run))
        assert [one.test.removeprefix("pip install tox") for one in found] == test, (matrix, run)
    rows = "{s: [u, v], include: [{s: v, lint: yes}]}"
    lint = "{run: make lint, if: '${{ matrix.lint }}'}, {run: make test-lint, if: '${{ matrix.lint }}'}"
    text = f"jobs: {{t: {{strategy: {{matrix: {rows}}}, steps: [{lint}, {{run: make check}}]}}}}"
    assert [one.test for one in ci(".github/workflows/ci.yml", text)] == ["make check"], (
        "an empty condition is false"
    )
    settings = "{matrix: {d: [lib], v: [fast, slow]}}, env: {MODE: '${{ matrix.v }}'}"
    step = "{run: make check, name: 'In ${{ matrix.d }}', working-directory: '${{ matrix.d }}'}"
    (found,) = ci(".github/workflows/ci.yml", f"jobs: {{t: {{strategy: {settings}, steps: [{step}]}}}}")
    assert found.test == "(cd lib && export MODE=fast && make check)"
    assert found.source == ".github/workflows/ci.yml, step In lib"


def test_servers_that_a_service_starts_are_told_where_tests_asked_for_one_in_vain() -> None:
    refused = (
        "E   redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused."
    )
    for path, text, names in (
        (".github/workflows/a.yml", "jobs: {t: {services: {db: {image: 'docker.io/library/postgres:16'}}}}",
         "postgres"),
        (".github/workflows/a.yml", "jobs: {t: {services: {redis: {image: 'redis:${{ matrix.r }}'}}}}", "redis"),
        (".github/workflows/a.yml", "jobs: {t: {services: {'a; b': {image: '[x](y)'}}}}", ""),
        (".gitlab-ci.yml", "services: ['redis:7']\nt: {services: [{name: postgres}, mysql], script: [make]}",
         "redis, postgres and mysql"),
        (".travis.yml", "services: [docker, redis-server]", "redis-server"),
        (".travis.yml", "services: mongodb", "mongodb"),
        (".circleci/config.yml", "jobs: {t: {docker: [{image: 'cimg/node:1'}, {image: 'mysql:8'}]}}", "mysql"),
        (".circleci/config.yml", "jobs: {t: {docker: [{image: 'cimg/node:1'}]}}", ""),
        ("ci.yml", "jobs: {t: {services: {redis: {image: redis}}}}", ""),
    ):  # fmt: skip
        tree = Tree(Files({path: text}))
        said = beside.lacking(tree, refused)
        told = f"The repository's own CI starts {names} beside its tests ({path})."
        assert said.startswith(told) if names else not said, (text, said)
        assert not beside.lacking(tree, "E   assert redis == 1"), text


def test_a_workflow_that_runs_for_no_change_tells_no_tests() -> None:
    for events, count in (
        ("push", 1), ("[pull_request, workflow_dispatch]", 1), ("{merge_group: , schedule: []}", 1),
        ("workflow_call", 1), ("{workflow_run: {workflows: [a]}}", 0), ("[schedule]", 0), ("issues", 0),
    ):  # fmt: skip
        text = f"on: {events}\njobs: {{t: {{steps: [{{run: nox -s translation}}]}}}}"
        assert len(ci(".github/workflows/ci.yml", text)) == count, events


def test_an_environment_of_hatch_for_many_pythons_is_run_with_the_one_there_is() -> None:
    settings = PROJECT + '[tool.hatch.envs.check.scripts]\ntest = "python -m unittest"\n'
    for more, call in (
        ("", "hatch run check:test"),
        ('[[tool.hatch.envs.check.matrix]]\nkind = ["a"]\n', "hatch run check:test"),
        ('[[tool.hatch.envs.check.matrix]]\npython = ["3.8", "3.99"]\n', f"hatch run {THIS_PYTHON} check:test"),
        ('[[tool.hatch.envs.check.matrix]]\nkind = ["a"]\n[[tool.hatch.envs.check.matrix]]\npy = ["3.8"]\n',
         f"hatch run {THIS_PYTHON} check:test"),
    ):  # fmt: skip
        tests = [one.test for one in of({"pyproject.toml": settings + more} | A_TEST)]
        assert call in tests, tests


def test_documents_with_sessions_of_nox_are_built_by_them() -> None:
    session = "import nox\n@nox.session()\ndef {}(session):\n    session.install('sphinx')\n"
    for names, chosen in ((("preview", "build", "linkcheck"), "build"), (("lint", "docs"), "docs")):
        texts = {"noxfile.py": "".join(map(session.format, names)), "source/index.rst": ""}
        texts |= {"source/conf.py": "", "source/own/__init__.py": "", "requirements.txt": "sphinx\n"}
        assert first(texts) == ("pip install nox", f"nox --force-python python3 -s {chosen}", "")
    assert of({"noxfile.py": session.format("lint"), "source/index.rst": ""}) == []
    assert first({"noxfile.py": session.format("docs") + session.format("tests")} | A_TEST)[2] != ""


def test_a_file_that_is_about_style_tells_no_tests() -> None:
    text = "jobs: {test_names: {steps: [{run: ./rename_test.sh --check}]}}"
    for name, count in (("lint", 0), ("code-style", 0), ("linting", 0), ("lint-and-test", 1), ("ci", 1)):
        assert len(ci(f".github/workflows/{name}.yml", text)) == count, name


def test_a_step_that_goes_to_a_place_outside_the_repository_is_left_out_from_there_on() -> None:
    steps = "jobs: {t: {steps: [{run: pip install x}, {run: %s}, {run: pytest}]}}"
    for place in ("/tmp", "~/other", "'/opt/x y'"):
        text = steps % json.dumps(f"cd {place}\ngit clone https://example.org/b\ncd b\nmake")
        assert [one.commands for one in ci(".github/workflows/ci.yml", text)] == [
            ("pip install x", "", "pytest")
        ]


def test_scripts_of_the_repository_that_install_are_called_before_the_tests() -> None:
    for line in (
        "scripts/install",
        "./script/bootstrap",
        "bash ci/install-deps.sh",
        "bin/setup",
        "make install-deps",
    ):
        (found,) = ci(
            ".github/workflows/ci.yml", f"jobs: {{t: {{steps: [{{run: {line}}}, {{run: scripts/test}}]}}}}"
        )
        assert (found.prepare, found.build, found.test) in (
            (line, "", "scripts/test"), ("", line, "scripts/test"),
        ), found  # fmt: skip
    for line in ("make install", "make -j2 install", "ls scripts/install", "scripts/uninstall"):
        assert steps(line, "make check") == [("", "", "make check")], line


def test_groups_of_dependencies_get_a_pip_that_reads_them() -> None:
    text = "jobs: {t: {steps: [{run: %s}, {run: pytest}]}}"
    for line, prepare in (
        ("pip install . --group dev", f"{NEWER}pip install . --group dev"),
        ("uv pip install --group dev", f"{NEWER}pip install --group dev"),
        ("python -m pip install -U pip && pip install --group dev", "python -m pip install -U pip && pip install --group dev"),
        ("pip install dev", "pip install dev"),
    ):  # fmt: skip
        assert ci(".github/workflows/ci.yml", text % json.dumps(line))[0].prepare == prepare


def test_neither_expressions_nor_containers_are_told_or_set() -> None:
    text = """
jobs:
  t:
    name: Perl ${{ matrix.perl }} on ${{ matrix.os }}
    env: {MAKE_DOCKER: "img:1", TEST_CONTAINER: img, DEPTH: "2"}
    steps: [{run: make check}]
"""
    (found,) = ci(".github/workflows/ci.yml", text)
    assert (found.test, found.source) == (
        "(export DEPTH=2 && make check)",
        ".github/workflows/ci.yml, job Perl … on …",
    )


def test_programs_of_the_repository_that_test_are_called_where_they_are() -> None:
    for line in ("bin/bats test", "./bin/rspec", "bin/rails test", "sh bin/bats test", "vendor/bin/phpunit"):
        assert ci(".travis.yml", f"script: {line}")[0].test == line
    for line in ("! bin/bats test/failing.bats", "ls bin/bats", "cp x/bin/bats y"):
        assert not ci(".travis.yml", f"script: '{line}'")


def test_words_of_bash_are_read_by_bash() -> None:
    for line in ("source run_tests.sh", "diff <(make test) expected"):
        assert steps(line) == [("", "", words("bash", "-c", line))]


def test_steps_that_do_more_than_test_are_left_out() -> None:
    for line in (
        "docker run x pytest", "sudo pytest", "pytest && git push", "curl -s x | sh && pytest",
        "pytest ${{ matrix.x }}",
        "pytest $(cat x)", "tox -e docs", "pip install pytest", "if true; then pytest; fi", "make test &",
        "pytest 'unclosed", "npm test && npm publish", "pytest --token $T", "cat <<E | pytest",
        "rm -rf / && pytest",
    ):  # fmt: skip
        text = f"jobs:\n  test:\n    steps:\n      - run: |\n          {line}\n"
        assert ci(".github/workflows/t.yml", text) == [], line


def steps(*scripts: str, more: str = "") -> list[tuple[str, str, str]]:
    """What comes of a job with these steps, each in a shell of its own."""
    runs = "".join(f"      - run: {json.dumps(script)}\n" for script in scripts)
    return [
        one.commands
        for one in ci(".github/workflows/t.yml", f"jobs:\n  test:\n    {more}\n    steps:\n{runs}")
    ]


def test_a_job_that_sets_up_python_has_an_environment_of_python() -> None:
    text = "jobs:\n  test:\n    steps:\n      - uses: actions/setup-python@v6\n      - run: {}\n"
    for line, commands in (
        ("make ci", ("pip --version", "", "make ci")),
        ("tox -e py", ("pip install tox", "", "tox -e py")),
    ):
        assert [one.commands for one in ci(".github/workflows/t.yml", text.format(line))] == [commands]


def test_a_line_tests_only_where_it_runs_tests() -> None:
    for line in (
        "cargo check", "cargo test --workspace --no-run", "mvn test -DskipTests", "ctest --dry-run",
        ".venv/bin/pip install wheel pytest", "pycodestyle slugify test.py", "travis_retry pip install tox",
        "cabal check", "nox -s badges", "tox -e py313-fmt", "./gradlew build -x test", "mvn -B package -DskipTests",
        "shellcheck test_runner", "pip install test_runner", "make ci-image", "npm ci",
    ):  # fmt: skip
        assert steps(line) == [], line
    for line in (
        "uv run test.py", "python test.py", "lua5.1 test/test.lua", "bundle exec rake", "script/test",
        "test/run", "./test/run.sh", "tests/run-all.sh", "A=b ./ci/run-tests",
        "travis_wait 30 make test", "./gradlew build", "./gradlew -q build --stacktrace", "mvn -B package", "./mvnw install",
        "./test_runner", "sh tools/test-runner.sh -v", "make ci", "make -C 'a b' test", 'make -C "a b" -j 2 check',
    ):  # fmt: skip
        assert [test for *_, test in steps(line)] == [line.removeprefix("travis_wait 30 ")], line


def test_a_failure_that_a_service_forgives_is_one_here() -> None:
    for forgiven in ("pytest -x || true", "pytest -x || :", "pytest -x || exit 0", "pytest -x || echo oh"):
        assert steps("pip install pytest", forgiven) == [("pip install pytest", "", "pytest -x")], forgiven
    assert steps("pytest a || pytest b") == [("", "", "(pytest a || pytest b)")]


def test_a_look_at_what_the_tests_wrote_belongs_to_them() -> None:
    look = "git diff --exit-code"
    assert steps(f"cd tests\n./cpptest.sh\n{look}") == [("", "", f"(cd tests && ./cpptest.sh && {look})")]
    assert steps(f"black .\n{look}") == []
    assert steps("./latest.sh") == []


def test_a_step_runs_in_the_folder_that_its_script_names_or_not_at_all() -> None:
    table = [
        (("cd tests/ && pytest",), "", [("", "", "(cd tests/ && pytest)")]),
        (("cd web && npm ci", "cd web && npm test"), "", [("(cd web && npm ci)", "", "(cd web && npm test)")]),
        # A variable of the job has a value that is known; any other could be any folder.
        (("cd ${OLC} && dart test",), "env: {OLC: dart}",
         [("", "", "(export OLC=dart && cd ${OLC} && dart test)")]),
        (("cd $WHERE\npytest",), "", []),
        (("pytest",), "defaults: {run: {working-directory: '${{ matrix.folder }}'}}", []),
        (("pytest",), "defaults: {run: {working-directory: ../other}}", []),
        # A folder that is not in the repository, and that nothing which is kept could have made.
        (("cd fetched && ./run_tests",), "", []),
        (("pip install x", "cd x-*/ && ./run_tests"), "", []),
        (("pytest",), "defaults: {run: {working-directory: ./fetched}}", []),
        (("npm ci --prefix made", "cd made && ./run_tests"), "",
         [("npm ci --prefix made", "", "(cd made && ./run_tests)")]),
        (("make", "cd out/bin && ./run_tests"), "", [("", "make", "(cd out/bin && ./run_tests)")]),
    ]  # fmt: skip
    for scripts, more, commands in table:
        assert steps(*scripts, more=more) == commands, scripts


def test_what_a_service_installs_for_the_whole_machine_stays_in_the_environment() -> None:
    beside = 'npm --prefix "$VIRTUAL_ENV" '
    for line, prepare in (
        ("npm i -fg nyc", f"{beside}i -fg nyc"),
        ("npm install nyc --global", f"{beside}install nyc --global"),
        ("corepack enable", ""),
        ("npm i -g corepack && corepack enable", ""),
    ):
        assert steps(line, "npm test") == [(prepare, "", "npm test")], line
    made = ("python -m venv .venv", ". .venv/bin/activate", ".venv/bin/pip install x", ".venv/bin/pytest -q")
    assert steps(*made) == [("python -m venv .venv && pip install x", "", "pytest -q")]
    assert steps("make lint", "make", "make test") == [("", "make", "make test")]  # a linter builds nothing


def test_hostile_files_never_raise_and_stay_bounded() -> None:
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    merges = "a: &a {k: v}\n" + "".join(
        f"{b}: &{b} {{<<: [{','.join([f'*{a}'] * 9)}]}}\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    texts = [
        laughs, merges, "jobs: &j\n  t: *j", "[" * 50_000, "{" * 50_000, "- " * 50_000, "\x00", "\ufeff",
        "jobs: 1",
        "jobs: [1]", "jobs: {t: 1}", "jobs: {t: {steps: 1}}", "jobs: {t: {steps: [1, [], {run: []}, {run: {a: b}}]}}",
        "jobs: {t: {steps: [{run: pytest, env: [1], working-directory: {a: 1}, shell: [], if: []}], runs-on: {}}}",
        "jobs: {t: {steps: [{run: pytest, working-directory: '../..', name: {}}]}}",
        "!!python/object/apply:os.system [x]",
        "t: {script: [[[pytest]]], extends: t, variables: 1}",
        "script: {a: b}\nt_task: 1\ntask: {a_script: 1}",
        "jobs:\n  t:\n    steps:\n" + "      - run: make " + "-a " * 30_000 + "\n",
        "jobs:\n  t:\n    steps:\n" + "      - run: pytest\n" * 5_000,
        "jobs:\n" + "".join(f"  t{n}: {{steps: [{{run: pytest {n}}}]}}\n" for n in range(5_000)),
        "option(" * 20_000, "test:" * 40_000, '{"scripts": ' * 20_000, "a." * 50_000 + "b = 1",
        "@nox.session\n" * 9_000,
        "setup(" + "-" * 30_000 + "1)", "x = " + "(" * 3_000,
        "[dependency-groups]\na=[{include-group='a'}]\nb=[1]",
        "-r requirements.txt\n" * 300, '{"scripts": {"test": 1}, "workspaces": {"packages": {}}, "packageManager": []}',
        "[project]\nname=1\n[project.optional-dependencies]\n'; rm -rf ~; '=['x']\ntest='x'\n", "a" * 300_000,
        "[testenv]\ndeps=" + "x\n " * 20_000, "<target " * 20_000, "FROM " * 10_000, " " * 150_000 + "x:",
        "import x\n" * 20_000, "def test(" * 20_000, "option (A_TEST" + " " * 90_000,
        ":test " * 40_000,
    ]  # fmt: skip
    names = [
        ".github/workflows/ci.yml", ".gitlab-ci.yml", ".travis.yml", ".circleci/config.yml",
        "azure-pipelines.yml",
        ".cirrus.yml", ".build.yml", "pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "noxfile.py",
        "requirements.txt", "Pipfile", "package.json", "Makefile", "CMakeLists.txt", "meson.build",
        "Rakefile",
        "Cargo.toml", "go.mod", "composer.json", "build.xml", "justfile", "Taskfile.yml", "pnpm-lock.yaml",
        "tests/test_a.py", "t/a.t", "a.gemspec", "test/a.js", "configure.ac", "Makefile.am", "phpunit.xml",
        "deps.edn", "pubspec.yaml", "elm.json", "mill", "test/a.clj",
    ]  # fmt: skip
    for text in texts:
        began = time.monotonic()
        found = of(dict.fromkeys(names, text))
        assert time.monotonic() - began < 30, text[:60]
        assert len(found) <= MOST
        assert all(len(command) <= LONGEST for one in found for command in one.commands)
        assert not any(
            "rm -rf" in command or "../.." in command for one in found for command in one.commands
        ), text[:60]


def test_hostile_names_reach_no_command_unquoted() -> None:
    evil = "a;touch x;$(id)`id`'\"\n"
    found = of(
        {
            f"{evil}/pyproject.toml": PROJECT,
            f"{evil}/test_a.py": "",
            "b;touch y/setup.py": "",
            "b;touch y/test_b.py": "",
        }
        | {f"{'n' * 60_000}/test_x.py": "", "requirements-$(id).txt": "pytest", "x y.gemspec": ""}
    )

    assert found
    assert {one.test for one in found if "touch y" in one.test} >= {"cd 'b;touch y' && python -m pytest"}
    assert not any("touch x" in command or "$(id)" in command for one in found for command in one.commands)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "pyproject.toml",
                "setup.cfg",
                "package.json",
                ".github/workflows/a.yml",
                "Makefile",
                "tests/test_a.py",
            ]
        )
        | st.text(),
        st.text(),
    )
)
def test_any_repository_has_a_few_recipes_or_none(texts: dict[str, str]) -> None:
    found = of(texts)

    assert len(found) <= MOST
    assert all(one.source and any(one.commands) for one in found)
    assert len({one.commands for one in found}) == len(found)


# --- Programs ---------------------------------------------------------------------------------------------


def test_commands_that_want_a_python_environment_are_known() -> None:
    for text in (
        "pip install .",
        "python3 -m x",
        "cd a && pytest",
        "A=b tox",
        "uv sync",
        "poetry run x",
        "hatch test",
    ):
        assert needs_python(text), text
    for text in (
        "make test",
        "go test ./...",
        "npm test",
        "/usr/bin/python3 x",
        "cat python-notes",
        "cargo nextest run",
        "A=b /opt/x/bin/python3 -I -m pytest tests",
        ".venv/bin/python -m pytest",
    ):
        assert not needs_python(text), text
        assert not needs_pytest(text), text
    assert needs_pytest("python -m pytest")
    assert needs_pytest("$VIRTUAL_ENV/bin/python -m pytest")


def test_a_program_that_is_missing_is_named_with_how_to_get_it() -> None:
    found = missing(("go", "cc", "never-heard-of-it"), lambda name: "/usr/bin/cc" if name == "cc" else None)

    assert [one.tool for one in found] == ["go", "never-heard-of-it"]
    assert "golang-go" in found[0].hint
    assert found[1].hint


def test_what_a_recipe_installs_itself_is_not_looked_for_on_the_host() -> None:
    for commands, tools in (
        (("pip install 'meson>=1' ninja", "meson setup b", "meson test -C b"), ("cc",)),
        (("python -m pip install --upgrade meson", "meson setup b && ninja -C b", ""), ("ninja", "cc")),
        (("luarocks install busted", "", "busted"), ("luarocks",)),
        (('npm --prefix "$VIRTUAL_ENV" install --global pnpm@10 && pnpm install', "", "pnpm test"), ("npm",)),
        (("pip install -r meson && npm install", "", "meson test"), ("npm", "meson", "ninja", "cc")),
        (("", "", "meson test && pip install meson"), ("meson", "ninja", "cc")),
    ):  # fmt: skip
        assert set(programs(*commands)) == set(tools), commands


def test_a_recipe_is_not_changed_once_it_is_made() -> None:
    with pytest.raises(AttributeError):
        Recipe().test = "make"  # type: ignore[misc]
