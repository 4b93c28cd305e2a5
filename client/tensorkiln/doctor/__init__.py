"""Diagnosis of an installation, part by part, with advice for each problem."""

from .examine import examine as examine
from .finding import Finding as Finding
from .finding import Status as Status
