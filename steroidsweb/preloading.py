"""What a process loads before it forks others that live long, so that they share it."""

import gc

from django.urls import get_resolver

from tasks.text.regex import compile_all


def load_everything() -> None:
    """Load all pages, compile all patterns, and keep both away from garbage collection in the children."""
    list(get_resolver().url_patterns)
    compile_all()
    gc.collect()
    gc.freeze()
