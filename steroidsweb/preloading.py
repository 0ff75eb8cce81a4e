"""What a process does before it forks others that stay: what they will need is loaded once, and shared."""

import gc

from django.urls import get_resolver

from tasks.text.regex import compile_all


def load_everything() -> None:
    """Load all pages and compile all patterns; a garbage collection in a child touches nothing of that."""
    list(get_resolver().url_patterns)
    compile_all()
    gc.collect()
    gc.freeze()
