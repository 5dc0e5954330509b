"""What grows with the data, on Spark: embedded in this process by default, on a cluster by its master's URL.

Importing this package does not import Spark; `topicweave.pipeline.session` does, when a session is started.
"""
