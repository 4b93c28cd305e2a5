"""The client: graphs go to a compile service, programs that run here come back.

`calls` says what a client does, once, in coroutines. `client` runs them over blocking connections, `async_client` in
an event loop.
"""

from __future__ import annotations

from .asked import NATIVE, OptionsSource, TargetSource
from .client import Client
from .job import Job
from .job_records import JobEvent, JobStatus
from .outcome import Outcome

__all__ = ["NATIVE", "Client", "Job", "JobEvent", "JobStatus", "OptionsSource", "Outcome", "TargetSource"]
