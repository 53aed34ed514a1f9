"""What is asked for in words: times and pages."""

from postern.usecases.answers import first_page


def test_a_page_tells_where_the_next_one_goes_on_and_the_last_one_nothing() -> None:
    assert first_page(["a", "b", "c"], 2, str) == (["a", "b"], "b")
    assert first_page(["a", "b"], 2, str) == (["a", "b"], None)
    assert first_page([], 2, str) == ([], None)
