"""What stands between a user and a compiled program: looked at part by part, with what to do about each."""

from .examine import examine as examine
from .finding import Finding as Finding
from .finding import Status as Status
