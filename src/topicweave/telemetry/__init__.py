"""Telemetry: the tables that a run writes. The simulator and live nodes write the same ones."""

from topicweave.telemetry.parts import PartsTelemetry
from topicweave.telemetry.schema import event_key
from topicweave.telemetry.tables import Tables
from topicweave.telemetry.writer import MemoryTelemetry, ParquetTelemetry, Telemetry

__all__ = ["MemoryTelemetry", "ParquetTelemetry", "PartsTelemetry", "Tables", "Telemetry", "event_key"]
