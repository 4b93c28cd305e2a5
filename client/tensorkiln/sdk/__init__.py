"""The client: sends graphs to a compile service and receives programs that run on this machine.

`calls` has the methods of every client, as coroutines. `async_client` runs them in the caller's event loop;
`client` runs them in the loop of `tensorkiln.portal` and blocks until they are done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..on_first_use import on_first_use

if TYPE_CHECKING:
    from .asked import NATIVE as NATIVE
    from .asked import OptionsSource as OptionsSource
    from .asked import TargetSource as TargetSource
    from .client import Client as Client
    from .job import Job as Job
    from .job_records import JobEvent as JobEvent
    from .job_records import JobStatus as JobStatus
    from .outcome import Outcome as Outcome

__getattr__ = on_first_use(
    __name__,
    {
        "asked": "NATIVE OptionsSource TargetSource",
        "client": "Client",
        "job": "Job",
        "job_records": "JobEvent JobStatus",
        "outcome": "Outcome",
    },
)

__all__ = ["NATIVE", "Client", "Job", "JobEvent", "JobStatus", "OptionsSource", "Outcome", "TargetSource"]
