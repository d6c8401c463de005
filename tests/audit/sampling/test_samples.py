"""A sample from its first action to a bundle that verifies."""

from pathlib import Path

from tests.support.factories import Cast, make_call, send_events
from tests.support.samples import read_sample, result_of, sample_bundle, signed_sample, verified


def test_signed_sample_verifies_offline(acme: Cast, tmp_path: Path) -> None:
    for number in range(20):
        send_events(acme.tenant, make_call(tool_name="refund" if number % 2 else "other"))
    pk = signed_sample(acme, "tool:refund")
    sample, calls = read_sample(acme, pk)
    assert (sample.state, sample.call_count, len(calls)) == ("signed", 10, 5)
    verdict = verified(sample_bundle(acme, pk, tmp_path))
    assert verdict.is_genuine
    assert not verdict.is_undecided
    assert result_of(verdict, "population").startswith("verified: 10 calls")
    assert result_of(verdict, "selection") == "verified: the seed draws these 5 of 10 calls"
    assert "1 errors in 5 calls" in result_of(verdict, "sign-offs")
