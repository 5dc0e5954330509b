"""Live nodes beside other meshes and brokers, in one run: `make bench-live`."""
