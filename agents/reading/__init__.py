"""What a build-and-test run left behind, read: which tests failed, and what was not the work's own fault."""
