"""Problems: what is refused has a code that there is."""

import pytest

from postern.core.calls.content import MOST_ELEMENTS
from postern.core.problems import PROBLEMS, Refused


def test_what_is_refused_has_a_code_that_there_is() -> None:
    assert str(Refused("conflict", "it is there already")) == "conflict: it is there already"
    assert str(Refused("conflict")) == f"conflict: {PROBLEMS['conflict'].help}"
    with pytest.raises(LookupError, match="conflit"):
        Refused("conflit")


def test_a_call_that_is_too_large_may_be_an_array_of_too_many_elements() -> None:
    assert f"more than {MOST_ELEMENTS:,} elements" in PROBLEMS["payload_too_large"].help
