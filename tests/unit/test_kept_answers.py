from __future__ import annotations

from service.api.kept_answers import KeptAnswers


def test_the_answers_asked_for_last_are_kept() -> None:
    kept = KeptAnswers(size_bytes=10)
    kept.put("a", b"1234")
    kept.put("b", b"5678")
    assert kept.get("a") == b"1234"
    kept.put("c", b"90")
    kept.put("d", b"x")
    assert [kept.get(tag) for tag in "abcd"] == [b"1234", None, b"90", b"x"]


def test_one_that_is_too_large_displaces_nothing() -> None:
    kept = KeptAnswers(size_bytes=4)
    kept.put("a", b"1234")
    kept.put("a", b"1234")
    kept.put("b", b"12345")
    assert (kept.get("a"), kept.get("b")) == (b"1234", None)
