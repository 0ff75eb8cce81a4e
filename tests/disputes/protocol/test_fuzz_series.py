"""Ten thousand documents by seed: every reader takes each of them, and what is known of one holds."""

import pytest

from tests.cases import for_each
from tests.fuzzing import SEED
from tests.oracles import faults_of_series

pytestmark = pytest.mark.slow

CHUNK = 2_500


@for_each("first", range(0, 10_000, CHUNK))
def test_no_document_of_the_series_is_read_wrongly(first: int) -> None:
    assert faults_of_series(SEED, range(first, first + CHUNK)) == []
