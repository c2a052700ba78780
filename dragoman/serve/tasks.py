"""Tasks of the event loop that are not wanted any more."""

from __future__ import annotations

import asyncio
from typing import Any


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they are gone; how they ended is known already or moot."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
