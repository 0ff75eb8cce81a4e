"""Core: what every reader of documents needs: lines, ids, places, words, quotes."""
