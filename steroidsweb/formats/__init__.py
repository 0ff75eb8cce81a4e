"""How times are said, one module a language: where Django looks for them."""
