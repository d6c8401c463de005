"""An unreachable server, and answers that are lost or cut off."""

import random

import pytest

from tests.support.faults.proxy import Fault, Proxy
from tests.support.faults.site import Site, wait_until

pytestmark = pytest.mark.slow


@pytest.mark.sampled("executor in trouble", 2)
def test_server_outage_and_executor_restart_lose_no_call(
    far_site: Site, proxy: Proxy, full: bool
) -> None:
    # The long form is ten minutes with the SDK's own pauses, the short one goes by calls.
    per_executor = 300 * 100 if full else 300
    arguments: tuple[str, ...] = ("--burst", "10", "--pause", "0.1" if full else "0.01")
    arguments += ("--backoff", "60") if full else ()
    first = far_site.start("alone", *arguments)
    far_site.wait_for_calls(first, 50)
    proxy.go_away()
    far_site.wait_for_calls(first, per_executor)
    first.kill()
    first.communicate()
    second = far_site.start("alone", *arguments)
    far_site.wait_for_calls(second, per_executor)
    proxy.come_back()
    wait_until(lambda: proxy.struck[Fault.NONE] > 3)
    far_site.finish(second)
    far_site.drain()
    balance = far_site.balance()
    assert balance.calls_lost == 0
    assert balance.lost <= 1, "at most the line the first was writing when it was killed"


@pytest.mark.sampled("executor in trouble", 2)
def test_dropped_truncated_delayed_and_reset_answers_lose_no_events(
    far_site: Site, proxy: Proxy, full: bool
) -> None:
    faults = [fault for fault in Fault if fault is not Fault.NONE]
    proxy.choose = lambda: random.choice([*faults, Fault.NONE, Fault.NONE])
    wanted = 50 if full else 3
    executor = far_site.start("alone", "--burst", "50", "--pause", "0.05", "--read-timeout", "0.5")
    wait_until(lambda: all(proxy.struck[fault] >= wanted for fault in faults))
    far_site.finish(executor)
    proxy.choose = lambda: Fault.NONE
    far_site.drain()
    assert far_site.balance().lost == 0
