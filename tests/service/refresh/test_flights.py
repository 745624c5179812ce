"""wholefeed.service.running: whoever wants the same thing joins it while it goes on."""

from __future__ import annotations

import asyncio

from wholefeed.service.running import Flights


async def test_a_flight_that_has_ended_is_not_joined() -> None:
    """Not even before the loop has told so: what is wished for then would wait for ever."""
    flights: Flights[str, int] = Flights()
    at_the_end: list[asyncio.Task[int] | None] = []

    async def fly(number: int) -> int:
        asyncio.get_running_loop().call_soon(lambda: at_the_end.append(flights.running("key")))
        return number

    assert await flights.join("key", lambda: fly(1)) == 1
    assert await flights.join("key", lambda: fly(2)) == 2
    await asyncio.sleep(0)
    assert at_the_end == [None, None]
    assert len(flights) == 0
