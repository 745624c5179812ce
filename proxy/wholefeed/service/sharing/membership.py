"""This process among the replicas: its name, its signs of life, and what it holds.

    member = Membership(leases)
    await member.beat()
    await member.run()          # until it is cancelled; `leave` at the end

A replica that could give no sign of life for `CUT_OFF_SECONDS` by its own clock takes itself for dead, a
second before the others do: it stops what it does, writes nothing of it any more, and begins again under a
new name. A process may be stopped in the middle of a transaction, too, where it looks at no clock: so each
one makes sure that the lease is still its own (`Membership.require_held`).
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from wholefeed.errors import LeaseLostError, OverloadedError, StorageFullError, StoreError
from wholefeed.loggers import get_logger
from wholefeed.service.sharing.holdings import Claim, Holding
from wholefeed.service.sharing.leases import Leases
from wholefeed.service.sharing.pulse import BEAT_SECONDS, CUT_OFF_SECONDS, Pulse
from wholefeed.store.database import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables.leases import Beat, End

log = get_logger()

RETRY_SECONDS: Final = 0.5
"""After the database could not be reached."""
CLAIM_SECONDS: Final = 10.0
"""For so long a claim waits for its refresh to begin."""


class Membership:
    """Belongs to one process.

    Args:
        leases: Where the replicas keep who does what.
        clock: Monotonic seconds.
    """

    def __init__(self, leases: Leases, clock: Callable[[], float] = time.monotonic) -> None:
        self._leases = leases
        self._clock = clock
        self.name = _new_name()
        self.replicas = 1
        """How many are alive, as far as is known."""
        self.on_loss: Callable[[], None] = lambda: None
        """Called when the database has lost what the replicas have told each other."""
        self._pulse = Pulse(leases.beat_in_thread, clock)
        self._is_known = False
        """Whether the others know this one by its name."""
        self._numbers = itertools.count(1)
        self._holdings: dict[str, Holding] = {}
        self._claims: dict[str, Claim] = {}
        self._kept: dict[str, str] = {}
        """Tokens of what was cancelled here, by name."""
        self._ends: dict[str, End] = {}
        """What is to be given back, by token."""
        self._has_ended = asyncio.Event()
        self._strays: Mapping[str, str] = {}
        self._failure: StoreError | OverloadedError | None = None
        """Why the last sign of life could not be given."""

    @property
    def is_cut_off(self) -> bool:
        """Whether the others may take this one for dead."""
        return not self._is_known or self._pulse.silent_seconds > CUT_OFF_SECONDS

    def require(self) -> None:
        """Make sure that the others take this one for alive.

        Raises:
            LeaseLostError: They may not.
        """
        if self.is_cut_off:
            why = f": {self._failure}" if self._failure is not None else ""
            slug = self._failure.slug if isinstance(self._failure, StorageFullError) else ""
            raise LeaseLostError(f"cut off from the database that the replicas share{why}", slug=slug)

    def require_held(self, db: Database, holding: Holding) -> None:
        """Make sure, within a transaction, that a lease is still this one's.

        Raises:
            LeaseLostError: It is not.
        """
        self.require()
        if holding.is_lost or not self._leases.is_held(db, holding.name, holding.token):
            raise LeaseLostError(f"another replica has taken over: {holding.name}")

    # What it holds

    def new_token(self) -> str:
        """Return a token for the taking of a lease."""
        return f"{self.name}.{next(self._numbers)}"

    def held(self, name: str) -> Holding | None:
        """Return what is held by a name."""
        return self._holdings.get(name)

    def hold(
        self, name: str, token: str, tell: Callable[[], str], task: asyncio.Task[Any] | None = None
    ) -> Holding:
        """Note that a lease was taken, and what works under it."""
        self._claims.pop(name, None)
        self._kept.pop(name, None)
        holding = self._holdings[name] = Holding(name, token, tell, task)
        return holding

    def drop(self, holding: Holding) -> None:
        """Note that nothing works under a lease any more; it is not given back by that."""
        if self._holdings.get(holding.name) is holding:
            del self._holdings[holding.name]

    def end(self, name: str, token: str, outcome: str = "") -> None:
        """Have a lease given back, as soon as the database can be reached."""
        self._ends[token] = End(name, token, outcome)
        self._has_ended.set()

    def keep(self, name: str, token: str) -> None:
        """Note that what worked under a lease was cancelled: it is given back, or left at the end."""
        self._kept[name] = token

    def give_back(self, name: str) -> None:
        """Give back what was claimed or kept by a name."""
        token = self._kept.pop(name, None)
        claim = self.claimed(name)
        token = token if claim is None else claim.token
        if token is not None:
            self.end(name, token)

    def claim(self, name: str, token: str, feed: FeedRow | None) -> None:
        """Note that a lease was taken for a refresh that is about to begin."""
        self._claims[name] = Claim(token, feed)

    def claimed(self, name: str) -> Claim | None:
        """Return what was claimed, once."""
        return self._claims.pop(name, None)

    # Its life

    async def run(self) -> None:
        """Give signs of life, and give back what has ended, until cancelled."""
        with self._pulse.beating():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_beating())
                tasks.create_task(self._keep_ending())

    async def leave(self) -> None:
        """Tell the others at once that this one has ended."""
        self._is_known = False
        self._pulse.stop()
        if self._ends:
            await self._leases.end(list(self._ends.values()))
        await self._leases.leave(self.name)

    async def beat(self) -> None:
        """Give a sign of life; what turns out to be somebody else's is stopped.

        Raises:
            StoreError: The database failed.
            OverloadedError: It could not be reached.
        """
        sent_at, name, holdings = self._clock(), self.name, list(self._holdings.values())
        news = [(each, text) for each in holdings if (text := each.tell()) != each.told]
        beat = await self._leases.beat(name, [(text, each.name, each.token) for each, text in news])
        if name != self.name:
            return
        for each, text in news:
            each.told = text
        if self._is_known and not beat.was_known:
            log.warning("replica.forgotten", replica=name)
            self.on_loss()
        self._pulse.given(name, at=sent_at)
        self._is_known, self.replicas = True, beat.replicas
        for each in holdings:
            if self._holdings.get(each.name) is each and beat.held.get(each.name) != each.token:
                self._lose(each)
        self._end_strays(beat)

    def _end_strays(self, beat: Beat) -> None:
        """Give back what nothing here works under: whoever was to begin it was cancelled."""
        expired_at = time.monotonic() - CLAIM_SECONDS
        self._claims = {name: each for name, each in self._claims.items() if each.claimed_at > expired_at}
        busy = {*self._kept.values(), *(each.token for each in self._holdings.values())}
        busy.update(each.token for each in self._claims.values())
        strays = {name: token for name, token in beat.held.items() if token not in busy}
        for name, token in strays.items():
            if self._strays.get(name) == token:
                self.end(name, token)
        self._strays = strays

    async def _keep_beating(self) -> None:
        while True:
            pause_seconds = BEAT_SECONDS
            self._pulse.seen()
            left_seconds = CUT_OFF_SECONDS - (self._pulse.silent_seconds if self._is_known else 0.0)
            try:
                async with asyncio.timeout(left_seconds):
                    await self.beat()
                self._failure = None
            except (StoreError, OverloadedError, TimeoutError) as exc:
                self._failure = None if isinstance(exc, TimeoutError) else exc
                log.warning("replica.unheard", replica=self.name, reason=str(exc))
                pause_seconds = RETRY_SECONDS
            if self._is_known and self.is_cut_off:
                self._begin_again()
                continue
            await asyncio.sleep(pause_seconds)
            if self._is_known and self.is_cut_off:  # the process was stopped
                self._begin_again()

    async def _keep_ending(self) -> None:
        while True:
            await self._has_ended.wait()
            self._has_ended.clear()
            ends = dict(self._ends)
            try:
                await self._leases.end(list(ends.values()))
            except (StoreError, OverloadedError):
                await asyncio.sleep(RETRY_SECONDS)
                self._has_ended.set()
                continue
            for token in ends:
                self._ends.pop(token, None)

    def _begin_again(self) -> None:
        """Stop everything, and be another one from now on."""
        name, self.name = self.name, _new_name()
        self._is_known = False
        self._pulse.stop()
        log.warning("replica.isolated", replica=name, stopped=len(self._holdings))
        for each in list(self._holdings.values()):
            self._lose(each)
        self._claims.clear()
        self._kept.clear()
        self._strays = {}

    def _lose(self, holding: Holding) -> None:
        self.drop(holding)
        holding.lose()


def _new_name() -> str:
    return secrets.token_hex(8)
