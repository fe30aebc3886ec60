"""A small engine for tests: it speaks the HTTP surface of SGLang and hands requests from prefill to decode with real
pages, so that what leaks there leaks here, and what is fixed there is fixed here. Loopback only."""

from __future__ import annotations

from tests.engine.cluster import Cluster, Engine
from tests.engine.faults import Faults
from tests.engine.server import Running, serve

__all__ = ["Cluster", "Engine", "Faults", "Running", "serve"]
