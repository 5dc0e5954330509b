"""Three nodes in the simulator: who gets what, and when."""

import topicweave

swarm = topicweave.simulate(
    {"ann": ["news", "go"], "bob": ["news"], "eve": ["go", "news"]}, "spidercast", seed=1
)
swarm.on_delivery(lambda got: print(got.time, got.node, got.payload))
swarm.run(until=5.0)
swarm.publish("ann", "news", b"hello")
swarm.run(until=10.0)
