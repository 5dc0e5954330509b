"""Graphs of any size in rounds on arrays (`topicweave.pipeline.rounds`): linear in links, the same at any
number of tasks.

links           edges of an overlay, or of all topics' shares of one, from telemetry and subscriptions
components      connected components by large and small stars
diameters       distances by HyperANF
similar         nodes with like interests by MinHash
cooccurrence    topics that are wanted together, and their communities
survival        how long sessions last, by Kaplan and Meier
"""
