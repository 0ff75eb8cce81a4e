"""Install the toolchains that the repositories are built with, from the machine's own Debian archive.

`python -m tests.real_repositories.install`; as root, by apt-get. Anybody else is told what is missing.
"""

import os
import shutil
import subprocess
import sys

# What a look in the PATH tells, and the packages that bring it.
TOOLCHAINS = {
    "go": ("golang-go",),
    "cargo": ("cargo",),
    "cmake": ("cmake",),
    "meson": ("meson", "ninja-build"),
    "nasm": ("nasm",),
    "ruby": ("ruby", "rake", "ruby-minitest", "ruby-test-unit", "ruby-rspec"),
    "bundle": ("bundler",),
    "php": ("php-cli", "php-xml", "php-mbstring"),
    "phpunit": ("phpunit",),
    "composer": ("composer",),
    "autoreconf": ("autoconf", "automake", "libtool", "gettext", "texinfo"),
    "autopoint": ("autopoint",),
    "help2man": ("help2man",),
    "pkg-config": ("pkg-config",),
    "cc": ("gcc", "libc6-dev"),
    "c++": ("g++",),
    "make": ("make",),
    "perl": ("perl",),
    "dpkg-source": ("dpkg-dev",),
    "dpkg-parsechangelog": ("dpkg-dev",),
    "npm": ("npm",),
}
APT = ("apt-get", "-o", "DPkg::Lock::Timeout=300", "--quiet=2")


def missing() -> list[str]:
    """The tools that are not in the PATH."""
    return [tool for tool in TOOLCHAINS if shutil.which(tool) is None]


def main() -> int:
    lacking = missing()
    if not lacking:
        return 0
    packages = sorted({package for tool in lacking for package in TOOLCHAINS[tool]})
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(
            f"Missing: {', '.join(lacking)}. As root: apt-get install {' '.join(packages)}", file=sys.stderr
        )
        return 1
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update",), ("install", "--yes", "--no-install-recommends", *packages)):
        if subprocess.run([*APT, *words], env=environment, check=False).returncode:
            print(f"apt-get {words[0]} failed; see above.", file=sys.stderr)
            return 1
    if lacking := missing():
        print(f"Still missing: {', '.join(lacking)}.", file=sys.stderr)
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
