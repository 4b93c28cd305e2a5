"""The engine of a service whose settings name a broker."""

from __future__ import annotations

from obstore.store import LocalStore

from service.engine.protocol import CompileEngine
from service.settings import Settings
from service.store.blobs import Blobs
from service.store.location import ObjectStore
from service.store.programs import Programs
from service.store.records import Records
from service.trust.notary import Notary
from tensorkiln.errors import UnavailableError

from .ledger import Ledger
from .roster import Roster
from .statements import Statements


def farm_engine(
    settings: Settings, store: ObjectStore, records: Records, blobs: Blobs, programs: Programs, notary: Notary
) -> CompileEngine:
    """An engine on KILN_BROKER. UnavailableError when Celery is not installed, or the URL is none."""
    try:
        from .app import farm_app
        from .broker import Broker
        from .engine import CeleryEngine
    except ModuleNotFoundError as error:
        raise UnavailableError(f"KILN_BROKER is set, but {error}: install tensorkiln-server[farm].") from None
    statements = Statements(notary)
    return CeleryEngine(
        Ledger(store, records, statements),
        Roster(store, records, statements),
        Broker(farm_app(settings)),
        programs,
        blobs,
        deadline_s=settings.compile_deadline_s,
        ahead=settings.farm_ahead,
        is_near=isinstance(store, LocalStore),
    )
