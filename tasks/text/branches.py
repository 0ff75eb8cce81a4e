"""Core: which names a branch may have."""

from tasks.text.regex import regex

# What git's own check accepts, except full names of refs, which git would take for branches of that name.
_NAME = regex(
    r"(?!HEAD$|@$|-|refs/|/)(?!.*(\.\.|//|/\.|@\{|\.lock(/|$)))(?!\.)[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])"
)
BRANCH_SAYS = "the name of a branch such as main or release/2.0"


def is_branch_name(name: str) -> bool:
    """Whether git takes this for the name of a branch."""
    return _NAME.fullmatch(name) is not None
