from __future__ import annotations

from wholefeed.server.listening import Listeners


def test_the_addresses_it_listens_on_are_its_own() -> None:
    """docs/faults.md row 19."""
    listeners = Listeners()
    listeners.add([("127.0.0.1", 8080), ("::1", 8080, 0, 0)])
    assert listeners.include("127.0.0.1", 8080)
    assert listeners.include("::1", 8080)
    assert not listeners.include("127.0.0.1", 8081)
    assert not listeners.include("127.0.0.2", 8080)


def test_one_that_listens_everywhere_is_reached_by_any_loopback_address() -> None:
    """docs/faults.md row 19."""
    listeners = Listeners()
    listeners.add([("0.0.0.0", 8080)])
    assert listeners.include("127.0.0.9", 8080)
    assert not listeners.include("192.0.2.1", 8080)
