"""What the errors of the database say about it as a whole (docs/faults.md rows 68 to 70).

SOUND    -> FULL      a write found the volume full or read-only         FULL -> SOUND  a write went through
any      -> DAMAGED   the database was found malformed; nothing is written to it any more until a restart,
                      since writing on could spread the damage; what can still be read is served
"""

from __future__ import annotations

from wholefeed.errors import StorageFullError, StoreDamagedError
from wholefeed.loggers import get_logger

_log = get_logger()


class Condition:
    """Belongs to one store: its connections tell it how they fared."""

    def __init__(self) -> None:
        self.is_full = False
        """Whether the last write found the volume full or read-only."""
        self._damage = ""

    @property
    def is_sound(self) -> bool:
        """Whether it can be written, as far as is known."""
        return not (self.is_full or self._damage)

    def require_sound(self) -> None:
        """Make sure that the database is not known to be damaged.

        Raises:
            StoreDamagedError: It is.
        """
        if self._damage:
            raise StoreDamagedError(self._damage)

    def has_written(self) -> None:
        """Take note that something was written."""
        if self.is_full:
            _log.info("store.recovered")
        self.is_full = False

    def judge(self, error: Exception) -> None:
        """Take note of what a connection failed with."""
        if isinstance(error, StorageFullError) and not self.is_full:
            self.is_full = True
            _log.error("store.full", error=str(error))
        if isinstance(error, StoreDamagedError) and not self._damage:
            self._damage = str(error)
            _log.error("store.damaged", error=self._damage)
