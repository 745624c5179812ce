"""What the errors of SQLite say about the database as a whole (FAULTS, rows 68 to 70).

SOUND    -> FULL      a write found the volume full or read-only         FULL -> SOUND  a write went through
any      -> DAMAGED   SQLite found the file malformed; nothing is written to it any more until a restart,
                      since writing on could spread the damage; what can still be read is served
"""

from __future__ import annotations

import structlog

from proxy.errors import StorageFullError, StoreDamagedError

_log = structlog.get_logger()


class Condition:
    """Belongs to one store: its connections tell it how they fared."""

    def __init__(self) -> None:
        self.is_full = False
        """Whether the last write found the volume full or read-only."""
        self._damage = ""

    def require_sound(self) -> None:
        """Make sure that the database is not known to be damaged.

        Raises:
            StoreDamagedError: It is.
        """
        if self._damage:
            raise StoreDamagedError(self._damage)

    def judge_write(self, error: Exception | None) -> None:
        """Take note of how a transaction that writes ended."""
        self.judge_read(error)
        is_full = isinstance(error, StorageFullError)
        if error is not None and not is_full:
            return
        if is_full and not self.is_full:
            _log.error("store.full", error=str(error))
        elif self.is_full and not is_full:
            _log.info("store.recovered")
        self.is_full = is_full

    def judge_read(self, error: BaseException | None) -> None:
        """Take note of how a read ended."""
        if isinstance(error, StoreDamagedError) and not self._damage:
            self._damage = str(error)
            _log.error("store.damaged", error=self._damage)
