"""Overlays mended under churn, event by event, as arrays: OMen beside LowODA and SpiderCast."""
