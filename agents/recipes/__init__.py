"""Which commands could prepare, build and test a repository, proposed by what lies in it."""
