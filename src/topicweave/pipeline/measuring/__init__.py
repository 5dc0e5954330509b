"""All measures of runs from telemetry of any size; see `topicweave.pipeline.measure` and
`topicweave.pipeline.measuring.api`.
"""
